//! Matrix products of every type in the tables, against products made from the manual's pictures of registers.
//!
//! Source: ISA §7.1.4, the pictures of each shape. They say, for a lane and a register, which element it holds; the
//! emulator computes the other way round, from a formula. All numbers are short, so that sums are exact.

use crate::harness::records;
use half::{bf16, f16};
use titan_amd::emu::Options;
use titan_amd::isa::{Elem, Unit, all};
use titan_sim::engine::Rng;

/// Rows, columns, depth, blocks.
type Dims = (usize, usize, usize, usize);

fn dims(name: &str) -> Dims {
    let parts: Vec<&str> = name.split('_').collect();
    let d: Vec<usize> = parts[3].split('x').map(|d| d.parse().unwrap()).collect();
    let blocks = parts[4].strip_suffix('b').map_or(1, |b| b.parse().unwrap());
    (d[0], d[1], d[2], blocks)
}

/// Which block, row (or column) and depth an item of a lane of an input is.
fn input((m, _, _, blocks): Dims, per_lane: usize, lane: usize, item: usize) -> (usize, usize, usize) {
    match (m, blocks) {
        (32, 1) => (0, lane % 32, lane / 32 * per_lane + item),
        (16, 1) => (0, lane % 16, lane / 16 * per_lane + item),
        (32, 2) => (lane / 32, lane % 32, item),
        (16, 4) => (lane / 16, lane % 16, item),
        (4, 16) => (lane / 4, lane % 4, item),
        // f64: four blocks of four rows, then the depth.
        (4, 4) => (lane / 4 % 4, lane % 4, lane / 16),
        other => panic!("no picture of {other:?}"),
    }
}

/// Which block, row and column an item of a lane of the output is.
fn output((m, _, _, blocks): Dims, double: bool, lane: usize, item: usize) -> (usize, usize, usize) {
    match (m, blocks, double) {
        (32, _, false) => (item / 16, item % 16 / 4 * 8 + lane / 32 * 4 + item % 4, lane % 32),
        (16, 1, false) => (0, lane / 16 * 4 + item, lane % 16),
        (16, 4, false) => (item / 4, lane / 16 * 4 + item % 4, lane % 16),
        (4, 16, false) => (lane / 4, item, lane % 4),
        (16, 1, true) => (0, item * 4 + lane / 16, lane % 16),
        (4, 4, true) => (lane / 4 % 4, lane / 16, lane % 4),
        other => panic!("no picture of {other:?}"),
    }
}

/// A short number of an element: its bits and its value.
fn number(rng: &mut Rng, elem: Elem) -> (u64, f64) {
    let small = (rng.next_u64() % 17) as f64 - 8.0;
    let quarter = small / 4.0;
    match elem {
        Elem::F(64) => (quarter.to_bits(), quarter),
        Elem::F(32) | Elem::Xf32 => ((quarter as f32).to_bits().into(), quarter),
        Elem::F(16) => (f16::from_f64(quarter).to_bits().into(), quarter),
        Elem::Bf16 => (bf16::from_f64(quarter).to_bits().into(), quarter),
        Elem::I(8) => {
            let x = rng.next_u64() as i8;
            (x.cast_unsigned().into(), x.into())
        }
        Elem::I(32) => {
            let x = rng.next_u64() as i32 >> 4;
            (x.cast_unsigned().into(), x.into())
        }
        // Bias 8 with three bits of fraction, bias 16 with two: exponents of a few octaves, and subnormal numbers.
        Elem::Fp8 => small_float(rng, 3, 8),
        Elem::Bf8 => small_float(rng, 2, 16),
        other => panic!("no numbers of {other:?}"),
    }
}

fn small_float(rng: &mut Rng, fraction: u32, bias: i32) -> (u64, f64) {
    let f = rng.next_u64() & ((1 << fraction) - 1);
    let near = rng.next_u64() % 4;
    let exponent = if near == 0 && fraction == 3 { 0 } else { (bias as u64) - 2 + near };
    let part = f as f64 / f64::from(1 << fraction);
    let value =
        if exponent == 0 { part * 2_f64.powi(1 - bias) } else { (1.0 + part) * 2_f64.powi(exponent as i32 - bias) };
    let negative = rng.next_u64() & 1 == 1 && (exponent, f) != (0, 0);
    (u64::from(negative) << 7 | exponent << fraction | f, if negative { -value } else { value })
}

/// Random registers: words by lane, and each item's value.
fn registers(rng: &mut Rng, elem: Elem, items: usize) -> (Vec<Vec<u32>>, Vec<Vec<f64>>) {
    let bits = elem.bits() as usize;
    let lane = |_| {
        let numbers: Vec<(u64, f64)> = (0..items).map(|_| number(rng, elem)).collect();
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|(b, _)| b.to_le_bytes()[..bits / 8].to_vec()).collect();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let words = bytes.chunks(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
        (words, numbers.iter().map(|(_, v)| *v).collect())
    };
    (0..64).map(lane).unzip()
}

fn tuple(file: char, first: usize, n: usize) -> String {
    if n == 1 { format!("{file}{first}") } else { format!("{file}[{first}:{}]", first + n - 1) }
}

/// What the product should be, by block, row, column.
struct Product {
    dims: Dims,
    a: Vec<f64>,
    b: Vec<f64>,
}

impl Product {
    fn new(dims: Dims, a: &[Vec<f64>], b: &[Vec<f64>]) -> Product {
        let (m, n, k, blocks) = dims;
        let fill = |values: &[Vec<f64>], rows: usize| {
            let mut all = vec![f64::NAN; blocks * rows * k];
            for (lane, items) in values.iter().enumerate() {
                for (item, v) in items.iter().enumerate() {
                    let (block, row, depth) = input(dims, items.len(), lane, item);
                    all[(block * rows + row) * k + depth] = *v;
                }
            }
            assert!(all.iter().all(|x| !x.is_nan()), "the picture leaves elements out");
            all
        };
        Product { dims, a: fill(a, m), b: fill(b, n) }
    }

    fn at(&self, (block, i, j): (usize, usize, usize)) -> f64 {
        let (m, n, k, _) = self.dims;
        let (row, column) = (&self.a[(block * m + i) * k..][..k], &self.b[(block * n + j) * k..][..k]);
        row.iter().zip(column).map(|(x, y)| x * y).sum()
    }
}

/// One product of a row: vector registers or accumulators for the factors (`acc`), and for the sum.
fn check(rng: &mut Rng, row: &titan_amd::isa::Row, (acc, file): (bool, char)) {
    let args = row.args();
    let (d, a, b) = (args[0].ty, args[1].ty, args[2].ty);
    let double = d.elem.bits() == 64;
    let shape = dims(row.name);
    let (left, left_values) = registers(rng, a.elem, a.count.into());
    let (right, right_values) = registers(rng, b.elem, b.count.into());
    let (sum, sum_values) = registers(rng, d.elem, d.count.into());
    let (na, nb, nd) = (left[0].len(), right[0].len(), sum[0].len());
    // Tuples begin at even registers.
    let pad = |n: usize| n.next_multiple_of(2);
    let (at_a, at_b, at_c) = (8, 8 + pad(na), 8 + pad(na) + pad(nb));
    let inputs = at_c - 8 + pad(nd);
    let words: Vec<u32> = (0..64)
        .flat_map(|l| {
            let mut all = vec![0; inputs];
            all[..na].copy_from_slice(&left[l]);
            all[at_b - 8..][..nb].copy_from_slice(&right[l]);
            all[at_c - 8..][..nd].copy_from_slice(&sum[l]);
            all
        })
        .collect();
    let at_d = 8 + inputs;
    let mut body = String::from("s_nop 4\n");
    let mut factors = (tuple('v', at_a, na), tuple('v', at_b, nb));
    if acc {
        for (i, from) in (at_a..at_a + na).chain(at_b..at_b + nb).enumerate() {
            body.push_str(&format!("v_accvgpr_write_b32 a{}, v{from}\n", 200 + i));
        }
        factors = (tuple('a', 200, na), tuple('a', 200 + na, nb));
    }
    if file == 'v' {
        body.push_str(&format!(
            "s_nop 4\n{} {}, {}, {}, {}",
            row.name,
            tuple('v', at_d, nd),
            factors.0,
            factors.1,
            tuple('v', at_c, nd)
        ));
    } else {
        (0..nd).for_each(|i| body.push_str(&format!("v_accvgpr_write_b32 a{i}, v{}\n", at_c + i)));
        let acc = tuple('a', 0, nd);
        body.push_str(&format!(
            "s_nop 4\n{} {acc}, {}, {}, {acc}\ns_nop 15\ns_nop 7\n",
            row.name, factors.0, factors.1
        ));
        (0..nd).for_each(|i| body.push_str(&format!("v_accvgpr_read_b32 v{}, a{i}\n", at_d + i)));
    }
    let got = records(&body, (inputs, nd), &words, &Options::default()).unwrap_or_else(|e| panic!("{}: {e}", row.name));
    let product = Product::new(shape, &left_values, &right_values);
    for (lane, got) in got.chunks(nd).enumerate() {
        for item in 0..usize::from(d.count) {
            let place = output(shape, double, lane, item);
            let want = product.at(place) + sum_values[lane][item];
            let got = match d.elem {
                Elem::I(_) => got[item].cast_signed().into(),
                Elem::F(64) => f64::from_bits(u64::from(got[2 * item]) | u64::from(got[2 * item + 1]) << 32),
                _ => f64::from(f32::from_bits(got[item])),
            };
            // The least part of fp8 is below what one rounding keeps; everything else is exact.
            let bound = if matches!(d.elem, Elem::F(32)) { want.abs() * 2_f64.powi(-24) } else { 0.0 };
            assert!((got - want).abs() <= bound, "{} lane {lane} item {item} {place:?}: {got}, not {want}", row.name);
        }
    }
}

#[test]
fn products_of_every_type_are_those_of_the_pictures() {
    let mut rng = Rng::new(7);
    let rows = all().filter(|r| r.name.starts_with("v_mfma"));
    let mut n = 0;
    for row in rows {
        check(&mut rng, row, (false, 'v'));
        check(&mut rng, row, (true, 'a'));
        n += 1;
    }
    assert!(n >= 30, "{n}");
}

#[test]
fn sparse_products_are_refused_by_name() {
    for row in all().filter(|r| matches!(r.unit, Unit::Xdl) && r.name.starts_with("v_smfmac")) {
        let (d, a, b) = (row.args()[0].ty.dwords(), row.args()[1].ty.dwords(), row.args()[2].ty.dwords());
        let text = format!(
            "{} {}, {}, {}, v60",
            row.name,
            tuple('v', 8, d.into()),
            tuple('v', 40, a.into()),
            tuple('v', 50, b.into())
        );
        let error = records(&text, (0, 0), &[], &Options::default()).unwrap_err().to_string();
        assert!(error.contains("emu::unsupported") && error.contains(row.name), "{error}");
    }
}

#[test]
fn eight_bit_factors_with_subnormal_sums_and_special_numbers() {
    // fp8 0x80 is no number; bf8 0x80 too; f16 infinities and their difference.
    let product = |name: &str, a: u32, b: u32| {
        let words: Vec<u32> = (0..64).flat_map(|_| [a, a, b, b]).collect();
        let body = format!("s_nop 4\n{name} v[12:15], v[8:9], v[10:11], 0");
        let got = records(&body, (4, 4), &words, &Options::default()).unwrap();
        f32::from_bits(got[0])
    };
    assert!(product("v_mfma_f32_16x16x32_fp8_fp8", 0x8040_4040, 0x4040_4040).is_nan());
    assert!(product("v_mfma_f32_16x16x32_bf8_bf8", 0x8040_4040, 0x4040_4040).is_nan());
    // 240 is the largest: 32 times its square.
    assert_eq!(product("v_mfma_f32_16x16x32_fp8_fp8", 0x7F7F_7F7F, 0x7F7F_7F7F), 32.0 * 240.0 * 240.0);
    assert_eq!(product("v_mfma_f32_16x16x32_bf8_bf8", 0x7F7F_7F7F, 0x7F7F_7F7F), 32.0 * 57344.0 * 57344.0);
    assert_eq!(product("v_mfma_f32_16x16x16_f16", 0x7C00_3C00, 0x3C00_3C00), f32::INFINITY);
    assert!(product("v_mfma_f32_16x16x16_f16", 0x7C00_FC00, 0x3C00_3C00).is_nan());
    // Subnormal factors count.
    assert_eq!(product("v_mfma_f32_16x16x16_f16", 0x0001_0001, 0x3C00_3C00), 16.0 * 2_f32.powi(-24));
}
