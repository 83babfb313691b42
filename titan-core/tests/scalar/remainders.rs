//! Remainders of floats against Rust's `%`, which are both exact: the bits are equal, or both are NaN.

use crate::harness::{Lane, Random, codes, target};
use titan_core::ir::{BinOp, Elem};
use titan_core::lower::scalar::binary;

fn lane(elem: Elem) -> Lane {
    let target = target(false);
    Lane::new(&[elem, elem], |b, v| binary(b, &target, BinOp::Rem, elem, v[0], v[1]))
}

#[test]
fn remainders_of_halves_are_rusts() {
    let mut random = Random(11);
    for elem in [Elem::F16, Elem::Bf16] {
        let value = |code: u16| {
            if elem == Elem::F16 { half::f16::from_bits(code).to_f64() } else { half::bf16::from_bits(code).to_f64() }
        };
        let lane = lane(elem);
        let mut call = lane.call();
        // Subnormal, ordinary and large divisors, zeros, infinities and NaN, and any.
        let others =
            [0x0000u16, 0x8000, 0x0001, 0x0003, 0x83ff, 0x0400, 0x3c00, 0xbc01, 0x4248, 0x7bff, 0x7f7f, 0x7f80, 0x7fff];
        for code in codes() {
            let other = others[usize::from(code) % others.len()];
            for (p, q) in [(code, random.word() as u16), (code, other), (other, code)] {
                let (got, want) = (call(&[p.into(), q.into()]) as u16, value(p) % value(q));
                let same = value(got).to_bits() == want.to_bits() || value(got).is_nan() && want.is_nan();
                assert!(same, "{elem} {:e} % {:e}: {:e}, not {want:e}", value(p), value(q), value(got));
            }
        }
    }
}

/// Dividends and divisors whose exponents differ by any number, with quotients near integers and halves, and of any bits.
fn pairs(random: &mut Random, i: u32) -> (f64, f64) {
    let (p, q, r) = (random.word(), random.word(), random.word());
    let single = |bits: u64| f64::from(f32::from_bits(bits as u32));
    let near = |x: f64, r: u64| (0..r % 3).fold(x, |x, _| f64::from((x as f32).next_up()));
    match i % 4 {
        0 => (single(p), single(q)),
        // A multiple of the divisor, or a little beside it.
        1 => {
            let (y, n) = (single(q & 0x7fff_ffff), (r >> 8) % (1 << (r % 24)));
            (near(y * n as f64, p), y)
        }
        // A half more.
        2 => {
            let (y, n) = (single(q & 0x7fff_ffff), (r >> 8) % (1 << (r % 23)));
            (near(y * (n as f64 + 0.5), p), y)
        }
        // Exponents as far apart as possible.
        _ => (single(p & 0x007f_ffff | 0x7f00_0000), single(q & 0x807f_ffff | (r % 3) << 23)),
    }
}

#[test]
fn remainders_of_singles_are_rusts() {
    let lane = lane(Elem::F32);
    let mut call = lane.call();
    let mut random = Random(21);
    let edges = [
        0.0f32,
        -0.0,
        1.0,
        -1.0,
        f32::MIN_POSITIVE,
        1e-45,
        -1e-45,
        f32::MAX,
        f32::MIN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    let mut far = 0;
    let all = edges.iter().flat_map(|x| edges.iter().map(|y| (*x, *y)));
    let more = (0..test_depth::cases(400_000, 40_000) as u32).map(|i| {
        let (x, y) = pairs(&mut random, i);
        (x as f32, y as f32)
    });
    for (x, y) in all.chain(more) {
        let (got, want) = (f32::from_bits(call(&[x.to_bits().into(), y.to_bits().into()]) as u32), x % y);
        far += u32::from(want != 0.0 && (x / y).abs() > 1e30);
        assert!(
            got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
            "{x:e} % {y:e}: {got:e}, not {want:e}"
        );
    }
    assert!(far > 1_000, "only {far} quotients are large");
}

#[test]
fn remainders_of_doubles_are_rusts() {
    let lane = lane(Elem::F64);
    let mut call = lane.call();
    let mut random = Random(31);
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        3.0,
        f64::MIN_POSITIVE,
        5e-324,
        -1.5e-323,
        f64::MAX,
        f64::MIN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    let mut far = 0;
    let all = edges.iter().flat_map(|x| edges.iter().map(|y| (*x, *y)));
    let more = (0..test_depth::cases(200_000, 20_000) as u32).map(|i| {
        let (p, q, r) = (random.word(), random.word(), random.word());
        match i % 5 {
            0 => (f64::from_bits(p), f64::from_bits(q)),
            // A multiple of the divisor, and half of the divisor more, or a little beside these.
            1 | 2 => {
                let y = f64::from_bits(q & 0x7fff_ffff_ffff_ffff);
                let n = (r >> 8) % (1 << (r % 52)) + 1;
                let x = y * (n as f64 + if i % 5 == 1 { 0.0 } else { 0.5 });
                (if p % 3 == 0 { x.next_down() } else { x }, y)
            }
            // Exponents as far apart as possible, of subnormal divisors too.
            3 => (
                f64::from_bits(p | 0x7f00_0000_0000_0000 & !(1 << 52)),
                f64::from_bits(q & 0x800f_ffff_ffff_ffff | (r % 3) << 52),
            ),
            // Integers.
            _ => ((p >> 11) as f64, (q >> (11 + r % 53)) as f64),
        }
    });
    for (x, y) in all.chain(more) {
        let (got, want) = (f64::from_bits(call(&[x.to_bits(), y.to_bits()])), x % y);
        far += u32::from(want != 0.0 && (x / y).abs() > 1e100);
        assert!(
            got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
            "{x:e} % {y:e}: {got:e}, not {want:e}"
        );
    }
    assert!(far > 1_000, "only {far} quotients are large");
}

/// Quotients of ordinary size pay for no others.
#[test]
fn large_quotients_are_behind_a_branch() {
    for elem in [Elem::F16, Elem::Bf16, Elem::F32] {
        assert_eq!(lane(elem).branches(), 1, "{elem}");
    }
    // And in it a loop, with a branch that leaves it.
    assert_eq!(lane(Elem::F64).branches(), 2);
}
