//! Quotients, remainders and roots.

use super::{Case, flat, map, zip};
use crate::trial::{Trial, u32s, u64s, wild};
use half::f16;

/// Numbers of every size, with corners: near subnormal ones and near the largest.
fn doubles(n: usize, seed: u64) -> Vec<f64> {
    let corners =
        [0.0, -0.0, 1.0, f64::INFINITY, f64::NAN, 5e-324, -1e-310, f64::MAX, f64::MIN_POSITIVE, 1e307, 1e-300];
    corners
        .into_iter()
        .cycle()
        .skip(seed as usize % 7)
        .take(11)
        .chain(u64s(n, seed).into_iter().map(spread))
        .take(n)
        .collect()
}

/// Random bits as a number of any size.
fn spread(bits: u64) -> f64 {
    f64::from_bits(bits.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

fn singles(n: usize, seed: u64) -> Vec<f32> {
    let corners = [1.17e-38, 1e-45, 1.1e38, 3.3e38, -2.2e-38, 1e-30, 8.5e37, 1.7e38];
    let each = |(i, x): (usize, f32)| {
        if i % 3 == 0 { corners[(i / 3 + seed as usize) % 8] * (1.0 + i as f32 / 4096.0) } else { x }
    };
    wild(n, seed).into_iter().enumerate().map(each).collect()
}

fn binary<T: crate::trial::Element>(t: &mut Trial<'_>, x: &[T], y: &[T], want: &[T]) {
    let (a, b, z) = (t.put(x), t.put(y), t.out::<T>(x.len()));
    t.run(x.len() as u32 / 64, 64, &[a.arg(), b.arg(), z.arg()]);
    t.is(z, want);
}

pub(crate) const CASES: &[Case] = &[
    ("divide_f32", |t| {
        let (x, y) = (singles(1024, 50), singles(1024, 53));
        binary(t, &x, &y, &zip(&x, &y, |x, y| x / y));
    }),
    ("divide_f64", |t| {
        let (x, y) = (doubles(1024, 51), doubles(1024, 52));
        binary(t, &x, &y, &zip(&x, &y, |x, y| x / y));
    }),
    ("divide_f16", |t| {
        let halves = |seed| map(&u32s(512, seed), |x| f16::from_bits(x as u16));
        let (x, y) = (halves(54), halves(55));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<f16>(512));
        t.run(8, 64, &[a.arg(), b.arg(), z.arg()]);
        let want = zip(&x, &y, |x, y| f16::from_f64(f64::from(x) / f64::from(y)));
        // LLVM's sequence is one unit off for some subnormal results.
        let near = |a: f16, b: f16| b.to_f64().abs() < 6.2e-5 && a.to_bits().abs_diff(b.to_bits()) <= 1;
        t.holds(z, &want, |a, b| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan() || near(a, b));
    }),
    ("divide_reciprocals", |t| {
        let (x, y) = (singles(512, 56), doubles(512, 57));
        let (a, b, p, q) = (t.put(&x), t.put(&y), t.out::<f32>(512), t.out::<f64>(512));
        t.run(8, 64, &[a.arg(), b.arg(), p.arg(), q.arg()]);
        t.is(p, &map(&x, f32::recip));
        t.is(q, &map(&y, f64::recip));
    }),
    ("divide_roots", |t| {
        let (x, y) = (map(&singles(512, 58), f32::abs), map(&doubles(512, 59), f64::abs));
        let (a, b, p, q) = (t.put(&x), t.put(&y), t.out::<f32>(512), t.out::<f64>(512));
        t.run(8, 64, &[a.arg(), b.arg(), p.arg(), q.arg()]);
        t.is(p, &map(&x, f32::sqrt));
        t.is(q, &map(&y, f64::sqrt));
    }),
    ("divide_signed", |t| {
        let signed = |seed| map(&u32s(256, seed), u32::cast_signed);
        let (x, y) = (signed(60), map(&signed(61), |y| if y == 0 || y == -1 { 3 } else { y }));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<i32>(1024));
        t.run(4, 64, &[a.arg(), b.arg(), z.arg()]);
        let want = flat(&x, &y, |p, q| {
            let (r, s) = (p.cast_unsigned(), q.cast_unsigned());
            [p / q, p % q, (r / s).cast_signed(), (r % s).cast_signed()]
        });
        t.is(z, &want);
    }),
    ("divide_long", |t| {
        let signed = |seed| map(&u64s(128, seed), u64::cast_signed);
        let (x, y) = (signed(62), map(&signed(63), |y| if y == 0 || y == -1 { 3 } else { y }));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<i64>(512));
        t.run(2, 64, &[a.arg(), b.arg(), z.arg()]);
        let want = flat(&x, &y, |p, q| {
            let (r, s) = (p.cast_unsigned(), q.cast_unsigned());
            [p / q, p % q, (r / s).cast_signed(), (r % s).cast_signed()]
        });
        t.is(z, &want);
    }),
    ("divide_short", |t| {
        let short = |seed| map(&u32s(128, seed), |x| x as u16 as i16);
        let (x, y) = (short(64), map(&short(65), |y| if y == 0 || y == -1 { 3 } else { y }));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<i16>(512));
        t.run(2, 64, &[a.arg(), b.arg(), z.arg()]);
        let want = flat(&x, &y, |p, q| {
            let (r, s) = (p.cast_unsigned(), q.cast_unsigned() | 1);
            [p / q, p % q, (r as u8 / s as u8).into(), (r % s).cast_signed()]
        });
        t.is(z, &want);
    }),
    ("divide_constants", |t| {
        let (x, y) = (map(&u32s(128, 66), u32::cast_signed), u64s(128, 67));
        let (a, b, p, q) = (t.put(&x), t.put(&y), t.out::<i32>(128), t.out::<u64>(128));
        t.run(2, 64, &[a.arg(), b.arg(), p.arg(), q.arg()]);
        t.is(p, &map(&x, |x| (x / 7).wrapping_add(x % 1000).wrapping_add((x.cast_unsigned() / 10).cast_signed())));
        t.is(q, &map(&y, |y| y / 1_000_003 + y % 10));
    }),
];
