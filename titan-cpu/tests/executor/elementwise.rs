//! Every elementwise operation on every element type it has: special values against each other, and tiles of every rank on
//! tensors that they do not divide.
#![expect(clippy::cast_sign_loss, reason = "test data are small")]

use crate::common::{K, Rng, Tensor, all_options, bits_of, decode_ints, encode_ints, run, shape_of};
use crate::scalar::{self, Want};
use titan_core::ir::{BinOp, Elem, OpKind, Pred, Ty, UnOp, Value};
use titan_cpu::Options;

/// Tile shapes of each rank, and extents of tensors that they do not divide.
const SHAPES: [(&[i32], &[i32]); 5] = [
    (&[37], &[100]),
    (&[5, 19], &[13, 19]),
    (&[3, 4, 7], &[7, 9, 7]),
    (&[2, 3, 4, 6], &[3, 7, 5, 6]),
    (&[2, 1100], &[3, 1050]),
];

/// Bits of values on which operations often differ, and of random ones.
fn special(e: Elem, seed: u64) -> Vec<i64> {
    let mut rng = Rng(seed);
    if e == Elem::Bool {
        return vec![0, 1];
    }
    if e.is_float() {
        let mut values =
            vec![0.0, 1.0, 1.5, 2.5, 0.5, 3.0, 7.7, 0.1, 100.25, 1e-3, 1e30, 1e-30, f64::INFINITY, f64::NAN];
        values
            .extend([1e-42, 5e-324, 65504.0, 65536.0, 448.0, 88.9, 3e5, 4e9, 1e19, 127.5, 255.0, 128.0, 32768.0, 1e8]);
        values.extend((0..12).map(|_| rng.unit() * 20.0));
        let negative: Vec<f64> = values.iter().map(|v| -v).collect();
        return values.into_iter().chain(negative).map(|v| bits_of(e, v)).collect();
    }
    let mut values =
        vec![0i64, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, -1, -2, -7, -8, -9, -128, i64::MAX, i64::MIN];
    values.extend((0..8).map(|_| rng.next() as i64));
    values.into_iter().map(|v| titan_core::ir::fold::wrap(e, v)).collect()
}

fn legal(kind: &OpKind, elems: &[Elem]) -> Option<Elem> {
    let tys: Vec<Ty> = elems.iter().map(|e| Ty::Tile(*e, shape_of(&[4]))).collect();
    Some(titan_core::ir::infer::infer(kind, &tys).ok()?[0].elem())
}

/// Runs an operation on tiles over whole tensors, element by element.
fn apply(
    kind: &OpKind,
    elems: &[Elem],
    tile: &[i32],
    extents: &[i32],
    inputs: &[Vec<i64>],
    options: Options,
) -> Vec<i64> {
    let out = legal(kind, elems).unwrap();
    let mut k = K::new("elementwise");
    let rank = extents.len();
    let tensors: Vec<Value> = elems.iter().enumerate().map(|(i, e)| k.input(&format!("x{i}"), *e, rank)).collect();
    let result = k.output("y", out, rank);
    let zero = k.i32(0);
    let at: Vec<Value> = (0..rank).map(|axis| if axis < 3 { k.pid(axis as u8) } else { zero }).collect();
    let args: Vec<Value> = tensors.iter().map(|t| k.load(*t, &at, tile)).collect();
    let value = k.op(kind.clone(), &args);
    k.store(result, &at, value);
    let program = k.compile(options);
    let inputs: Vec<Tensor> = elems.iter().zip(inputs).map(|(e, bits)| Tensor::ints(*e, extents, bits)).collect();
    let y = Tensor::zeros(out, extents);
    let mut args: Vec<_> = inputs.iter().map(Tensor::arg).collect();
    args.push(y.arg());
    let mut grid = [1u32; 3];
    for axis in 0..rank.min(3) {
        grid[axis] = (extents[axis] as u32).div_ceil(tile[axis] as u32);
    }
    run(&program, &args, grid);
    y.int_values()
}

/// Runs an operation on scalars: the first element of each input.
fn apply_scalar(kind: &OpKind, elems: &[Elem], inputs: &[i64]) -> i64 {
    let out = legal(kind, elems).unwrap();
    let mut k = K::new("scalar");
    let tensors: Vec<Value> = elems.iter().enumerate().map(|(i, e)| k.input(&format!("x{i}"), *e, 1)).collect();
    let result = k.output("y", out, 1);
    let zero = k.i32(0);
    let args: Vec<Value> = tensors.iter().map(|t| k.op(OpKind::Get, &[*t, zero])).collect();
    let value = k.op(kind.clone(), &args);
    let result = k.shared(result);
    k.run(OpKind::Set, &[result, zero, value]);
    let program = k.compile(Options::default());
    let pair = |e: &Elem, v: i64| Tensor::ints(*e, &[2], &[v, 0]);
    let y = Tensor::zeros(out, &[2]);
    let mut args: Vec<_> = elems.iter().zip(inputs).map(|(e, v)| pair(e, *v).arg()).collect();
    args.push(y.arg());
    run(&program, &args, [1, 1, 1]);
    y.int_values()[0]
}

/// Checks an operation on these inputs, on tiles and on some scalars.
fn check(kind: &OpKind, elems: &[Elem], inputs: &[Vec<i64>], want: &dyn Fn(&[i64]) -> Want) {
    let out = legal(kind, elems).unwrap();
    let n = inputs[0].len();
    let what = |i: usize| {
        let args: Vec<String> =
            inputs.iter().zip(elems).map(|(x, e)| format!("{:e}", crate::common::of_bits(*e, x[i]))).collect();
        format!("{kind:?} {elems:?} ({})", args.join(", "))
    };
    let operands = |i: usize| inputs.iter().map(|x| x[i]).collect::<Vec<i64>>();
    let even = n + n % 2;
    let padded: Vec<Vec<i64>> = inputs.iter().map(|x| x.iter().copied().chain([x[0]]).take(even).collect()).collect();
    let got = apply(kind, elems, &[96], &[i32::try_from(even).unwrap()], &padded, Options::default());
    for i in 0..n {
        want(&operands(i)).check(out, got[i], &what(i));
    }
    for i in (0..n).step_by(n / 5 + 1) {
        let got = apply_scalar(kind, elems, &operands(i));
        want(&operands(i)).check(out, got, &format!("scalar {}", what(i)));
    }
}

/// Checks an operation on tiles of every rank and with every option; in the quick depth, not with every option for every rank.
fn check_ranks(kind: &OpKind, elems: &[Elem], want: &dyn Fn(&[i64]) -> Want) {
    let out = legal(kind, elems).unwrap();
    let options: Vec<Options> = all_options().into_iter().take(2).collect();
    for (number, (tile, extents)) in SHAPES.into_iter().enumerate() {
        let packed = elems.iter().chain([&out]).any(|e| e.bits() == 4);
        let mut extents = extents.to_vec();
        if packed {
            // The last extent of a packed tensor is even, and one program stores all of it: neighbours share no byte.
            let last = extents.len() - 1;
            extents[last] += extents[last] % 2;
        }
        let n: usize = extents.iter().map(|n| *n as usize).product();
        let inputs: Vec<Vec<i64>> = elems
            .iter()
            .zip(1u64..)
            .map(|(e, seed)| {
                let pool = special(*e, seed);
                let mut rng = Rng(seed + 77);
                (0..n).map(|_| pool[rng.below(pool.len() as u64) as usize]).collect()
            })
            .collect();
        let is_meant = |option: usize| test_depth::is_full() || option == number % options.len();
        for (_, options) in options.iter().enumerate().filter(|(option, _)| is_meant(*option)) {
            let got = apply(kind, elems, tile, &extents, &inputs, *options);
            for (i, got) in got.iter().enumerate() {
                let operands: Vec<i64> = inputs.iter().map(|x| x[i]).collect();
                want(&operands).check(out, *got, &format!("{kind:?} {elems:?} {tile:?} of {extents:?}, element {i}"));
            }
        }
    }
}

/// All pairs of two lists.
fn pairs(a: &[i64], b: &[i64]) -> Vec<Vec<i64>> {
    vec![a.iter().flat_map(|x| b.iter().map(|_| *x)).collect(), a.iter().flat_map(|_| b.iter().copied()).collect()]
}

#[test]
fn unary_operations() {
    let mut count = 0;
    for op in UnOp::ALL {
        for e in Elem::ALL {
            let kind = OpKind::Unary(*op);
            if legal(&kind, &[e]).is_some() {
                check(&kind, &[e], &[special(e, 5)], &|x| scalar::unary(*op, e, x[0]));
                check_ranks(&kind, &[e], &|x| scalar::unary(*op, e, x[0]));
                count += 1;
            }
        }
    }
    assert_eq!(count, 2 * 12 + 9 + 18 * 4 + 2 * 8);
}

#[test]
fn binary_operations() {
    let mut count = 0;
    for op in BinOp::ALL {
        for e in Elem::ALL {
            let kind = OpKind::Binary(*op);
            if legal(&kind, &[e, e]).is_some() {
                let want = |x: &[i64]| match op {
                    BinOp::Powf => scalar::power(e, x[0], x[1]),
                    _ => Want::Bits(scalar::binary(*op, e, x[0], x[1])),
                };
                check(&kind, &[e, e], &pairs(&special(e, 5), &special(e, 6)), &want);
                check_ranks(&kind, &[e, e], &want);
                count += 1;
            }
        }
    }
    assert_eq!(count, 7 * 12 + 3 * 8 + 3 * 9 + 4);
}

#[test]
fn comparisons() {
    let mut count = 0;
    for pred in Pred::ALL {
        for e in Elem::ALL {
            let kind = OpKind::Cmp(*pred);
            if legal(&kind, &[e, e]).is_some() {
                let want = |x: &[i64]| Want::Bits(scalar::compare(*pred, e, x[0], x[1]));
                check(&kind, &[e, e], &pairs(&special(e, 5), &special(e, 6)), &want);
                check_ranks(&kind, &[e, e], &want);
                count += 1;
            }
        }
    }
    assert_eq!(count, 6 * 13);
}

#[test]
fn selects() {
    for e in Elem::ALL {
        let [a, b] = [special(e, 5), special(e, 6)];
        let n = a.len();
        let mask = (0..n as i64).map(|i| i % 3 % 2).collect();
        let want = |x: &[i64]| Want::Bits(if x[0] != 0 { x[1] } else { x[2] });
        check(&OpKind::Select, &[Elem::Bool, e, e], &[mask, a, b], &want);
        check_ranks(&OpKind::Select, &[Elem::Bool, e, e], &want);
    }
}

#[test]
fn multiply_add_rounds_once() {
    for e in [Elem::F64, Elem::F32, Elem::F16, Elem::Bf16] {
        let mut rng = Rng(9);
        let digits = match e {
            Elem::F64 => 52,
            Elem::F32 => 23,
            Elem::F16 => 10,
            _ => 7,
        };
        // Products that lie near the middle between two numbers, and a small or a tiny term that decides.
        let near_one = |rng: &mut Rng| 1.0 + rng.below(1 << digits) as f64 / 2f64.powi(digits);
        let (mut a, mut b, mut c) = (vec![], vec![], vec![]);
        for i in 0..4000 {
            a.push(bits_of(e, near_one(&mut rng)));
            b.push(bits_of(e, near_one(&mut rng)));
            c.push(bits_of(e, rng.unit() * 2f64.powi(-(i % (2 * digits.min(12))))));
        }
        if matches!(e, Elem::Bf16 | Elem::F16) {
            // Exactly the middle, and a hair beside it: a sum rounded on the way would lose the hair.
            let half = 1.0 + 2f64.powi(-digits - 1);
            for hair in [-2f64.powi(-24), 2f64.powi(-24)] {
                a.push(bits_of(e, 1.0 + 2f64.powi(-digits)));
                b.push(bits_of(e, 1.0));
                c.push(bits_of(e, hair));
                a.push(bits_of(e, half * 2.0));
                b.push(bits_of(e, 0.5));
                c.push(bits_of(e, hair));
            }
        }
        check(&OpKind::MulAdd, &[e, e, e], &[a, b, c], &|x| Want::Bits(scalar::mul_add(e, x[0], x[1], x[2])));
    }
}

#[test]
fn a_tiny_term_decides_a_tie_of_bf16() {
    // 1.0078125 · 1.5 = 1.51171875 is halfway between two `bf16`s; 2⁻¹²⁰ is lost when added in `f64`.
    let e = Elem::Bf16;
    let (a, b) = (bits_of(e, 1.007_812_5), bits_of(e, 1.5));
    for (tiny, want) in [(2f64.powi(-120), 1.515_625), (-2f64.powi(-120), 1.507_812_5)] {
        let got = apply_scalar(&OpKind::MulAdd, &[e, e, e], &[a, b, bits_of(e, tiny)]);
        assert_eq!(crate::common::of_bits(e, got), want);
    }
}

#[test]
fn casts_between_all_types() {
    for from in Elem::ALL {
        for to in Elem::ALL {
            let want = |x: &[i64]| Want::Bits(scalar::cast(from, to, x[0]));
            check(&OpKind::Cast(to), &[from], &[special(from, 5)], &want);
        }
    }
}

#[test]
fn casts_of_every_code() {
    for from in [Elem::F16, Elem::Bf16, Elem::E4m3, Elem::E5m2, Elem::I16, Elem::U16, Elem::I8, Elem::U4, Elem::I4] {
        // In the quick depth every 13th of 16 bits.
        let step = if from.bits() == 16 { test_depth::cases(1, 13) } else { 1 };
        let codes: Vec<i64> = (0..1i64 << from.bits())
            .step_by(step)
            .map(|c| if from.is_int() { titan_core::ir::fold::wrap(from, c) } else { c })
            .collect();
        for to in [Elem::F32, Elem::F16, Elem::Bf16, Elem::E4m3, Elem::E5m2, Elem::I8, Elem::I4, Elem::U4, Elem::F64] {
            check(&OpKind::Cast(to), &[from], &[codes.clone()], &|x| Want::Bits(scalar::cast(from, to, x[0])));
        }
    }
}

#[test]
fn casts_on_tiles_of_every_rank() {
    for (from, to) in [
        (Elem::F32, Elem::F16),
        (Elem::I4, Elem::F16),
        (Elem::F32, Elem::U4),
        (Elem::U8, Elem::I64),
        (Elem::F64, Elem::Bool),
    ] {
        check_ranks(&OpKind::Cast(to), &[from], &|x| Want::Bits(scalar::cast(from, to, x[0])));
    }
}

#[test]
fn bitcasts_keep_the_bits() {
    for from in Elem::ALL {
        for to in Elem::ALL {
            if legal(&OpKind::Bitcast(to), &[from]).is_some() {
                // Signalling NaNs included: nothing is computed.
                let mut bits = special(from, 5);
                bits.push(bits_of(from, 1.0) ^ 0x7F);
                if from == Elem::F32 {
                    bits.push(0x7F80_0001);
                }
                let bytes = encode_ints(from, &bits[..bits.len() / 2 * 2]);
                let bits = decode_ints(from, &bytes);
                check(&OpKind::Bitcast(to), &[from], &[bits], &|x| Want::Bits(scalar::bitcast(to, x[0])));
            }
        }
    }
}
