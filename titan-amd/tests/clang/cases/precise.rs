//! Numbers of 64 and of 16 bits.

use super::{Case, flat, map, zip};
use crate::trial::{tame, u32s, u64s, wild};
use half::f16;

/// Numbers of 64 bits of every size, some close to 1.
fn doubles(n: usize, seed: u64) -> Vec<f64> {
    let corners = [0.0, -0.0, f64::INFINITY, f64::NAN, 5e-324, 1e-310, f64::MAX, 1.5];
    let bits = u64s(n, seed | 1).into_iter().zip(u64s(n, seed + 50));
    let more = bits.map(|(a, b)| if a & 1 == 1 { f64::from_bits(a ^ b << 12) } else { a as f64 * 1e-5 - 3.0 });
    corners.into_iter().skip((seed % 4) as usize).chain(more).take(n).collect()
}

fn halves(n: usize, seed: u64) -> Vec<f16> {
    let corners = [0.0_f32, -0.0, f32::INFINITY, f32::NAN, 6e-8, 1e-5, 65504.0, 1.0].map(f16::from_f32);
    let more = u32s(n, seed | 1).into_iter().zip(u32s(n, seed + 9)).map(|(a, b)| f16::from_bits((a ^ b >> 3) as u16));
    corners.into_iter().skip((seed % 5) as usize).chain(more).take(n).collect()
}

fn tame_halves(n: usize, seed: u64) -> Vec<f16> {
    map(&tame(n, seed), f16::from_f32)
}

fn wide(x: f16) -> f64 {
    x.to_f64()
}

fn least(a: f64, b: f64) -> f64 {
    if a == b && a.is_sign_negative() { a } else { a.min(b) }
}

pub(crate) const CASES: &[Case] = &[
    ("double_ops", |t| {
        let (x, y) = (doubles(256, 1), doubles(256, 2));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<f64>(256 * 6));
        t.run(4, 64, &[a.arg(), b.arg(), z.arg()]);
        t.is(z, &flat(&x, &y, |a, b| [a + b, a * b, a.mul_add(b, a), least(a, b), a.floor(), b.round_ties_even()]));
    }),
    ("double_quotient", |t| {
        let (x, y) = (doubles(512, 3), doubles(512, 4));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<f64>(512));
        t.run(8, 64, &[a.arg(), b.arg(), z.arg()]);
        t.is(z, &zip(&x, &y, |a, b| a / b));
    }),
    ("double_root", |t| {
        let x = doubles(512, 5);
        let (a, y) = (t.put(&x), t.out::<f64>(512));
        t.run(8, 64, &[a.arg(), y.arg()]);
        t.is(y, &map(&x, f64::sqrt));
    }),
    ("double_convert", |t| {
        let x: Vec<f64> = map(&tame(128, 6), |x| f64::from(x) * 1_234.567_890_123);
        let (a, f, i, l) = (t.put(&x), t.out::<f32>(128), t.out::<i32>(128), t.out::<i64>(128));
        t.run(2, 64, &[a.arg(), f.arg(), i.arg(), l.arg()]);
        t.is(f, &map(&x, |x| x as f32));
        t.is(i, &map(&x, |x| x as i32));
        t.is(l, &map(&x, |x| (x * 1e6) as i64));
    }),
    ("half_ops", |t| {
        let (mut x, mut y) = (halves(192, 7), halves(192, 8));
        x.extend(tame_halves(64, 1));
        y.extend(tame_halves(64, 2));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<f16>(256 * 5));
        t.run(4, 64, &[a.arg(), b.arg(), z.arg()]);
        let fused = |a: f16, b: f16| {
            let (p, a) = (wide(a) * wide(b), wide(a));
            let s = p + a;
            // Rounded twice only if the sum is not exact: such pairs are compared with the product alone.
            let back = s - p;
            let exact = !s.is_finite() || ((p - (s - back)) + (a - back)) == 0.0;
            if exact { s } else { f64::from_bits((s.to_bits() & !1) | 1) }
        };
        let want = flat(&x, &y, |a, b| {
            let less = if wide(a) < wide(b) { wide(a) } else { wide(b) };
            [wide(a) + wide(b), wide(a) * wide(b), wide(a) - wide(b), less, fused(a, b)].map(f16::from_f64)
        });
        t.is(z, &want);
    }),
    ("half_pairs", |t| {
        let (x, y) = (tame_halves(256, 9), tame_halves(256, 10));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<f16>(256 * 3));
        t.run(2, 64, &[a.arg(), b.arg(), z.arg()]);
        let pair = |a: &[f16], b: &[f16]| {
            let ops: [fn(f64, f64) -> f64; 3] = [|a, b| a + b, |a, b| a * b, |a, b| a.max(-b)];
            ops.map(|f| [0, 1].map(|i| f16::from_f64(f(wide(a[i]), wide(b[i]))))).concat()
        };
        let want: Vec<f16> = x.chunks(2).zip(y.chunks(2)).flat_map(|(a, b)| pair(a, b)).collect();
        t.holds(z, &want, |a, b| a == b);
    }),
    ("half_quotient", |t| {
        let (x, y) = (halves(256, 11), halves(256, 13));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<f16>(256));
        t.run(4, 64, &[a.arg(), b.arg(), z.arg()]);
        // The compiler divides by a reciprocal of 32 bits and mends the result: within one unit in the last place.
        let close = |a: f16, b: f16| {
            let near = (a.to_bits() & 0x7FFF).abs_diff(b.to_bits() & 0x7FFF) <= 1;
            a.is_nan() && b.is_nan() || near && a.is_sign_negative() == b.is_sign_negative()
        };
        t.holds(z, &zip(&x, &y, |a, b| f16::from_f64(wide(a) / wide(b))), close);
    }),
    ("half_convert", |t| {
        let x = halves(256, 12);
        let (a, y, z) = (t.put(&x), t.out::<f32>(256), t.out::<f16>(256));
        t.run(4, 64, &[a.arg(), y.arg(), z.arg()]);
        t.is(y, &map(&x, |x| x.to_f32() * 3.0));
        t.is(z, &map(&x, |x| f16::from_f32(x.to_f32() * 1.003_906_3)));
    }),
    ("mixed", |t| {
        let (x, y) = (tame_halves(512, 14), tame_halves(512, 15));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<f32>(64));
        t.run(1, 64, &[a.arg(), b.arg(), z.arg()]);
        let dot = |i: usize| (i * 8..i * 8 + 8).fold(0_f32, |s, k| x[k].to_f32().mul_add(y[k].to_f32(), s));
        t.is(z, &(0..64).map(dot).collect::<Vec<f32>>());
    }),
    ("short_pairs", |t| {
        let (x, y) = (map(&u32s(256, 16), |x| x as i16), map(&u32s(256, 17), |x| x as i16));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<i16>(1024));
        t.run(2, 64, &[a.arg(), b.arg(), z.arg()]);
        let pair = |a: &[i16], b: &[i16]| {
            let ops: [fn(i16, i16) -> i16; 4] =
                [i16::wrapping_add, i16::wrapping_mul, |a, b| a.min(b), |a, b| a >> (b & 15)];
            ops.map(|f| [f(a[0], b[0]), f(a[1], b[1])]).concat()
        };
        t.is(z, &x.chunks(2).zip(y.chunks(2)).flat_map(|(a, b)| pair(a, b)).collect::<Vec<i16>>());
    }),
    ("dot_bytes", |t| {
        let (x, y) = (u32s(128, 18), u32s(128, 19));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<i32>(128));
        t.run(2, 64, &[a.arg(), b.arg(), z.arg()]);
        let bytes = |x: u32| x.to_le_bytes().map(|b| i32::from(b.cast_signed()));
        t.is(z, &zip(&x, &y, |x, y| 1000 + bytes(x).iter().zip(bytes(y)).map(|(a, b)| a * b).sum::<i32>()));
    }),
    ("dot_halves", |t| {
        let (x, y) = (tame_halves(128, 20), tame_halves(128, 21));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<f32>(64));
        t.run(1, 64, &[a.arg(), b.arg(), z.arg()]);
        let dot = |i: usize| 1.0 + wide(x[2 * i]) * wide(y[2 * i]) + wide(x[2 * i + 1]) * wide(y[2 * i + 1]);
        let want: Vec<f32> = (0..64).map(|i| dot(i) as f32).collect();
        t.holds(z, &want, |a, b| (a - b).abs() <= 64.0 * f32::EPSILON * 2.0);
    }),
    ("packed_floats", |t| {
        let (x, y) = (wild(256, 22), wild(256, 23));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<f32>(256));
        t.run(2, 64, &[a.arg(), b.arg(), z.arg()]);
        t.is(z, &zip(&x, &y, |a, b| a.mul_add(b, a) + b));
    }),
];
