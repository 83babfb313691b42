//! One element for each work item.

use super::{Case, map, zip};
use crate::trial::{Trial, tame, u32s, u64s, wild};
use titan_amd::emu::Arg;

/// One buffer to one other of as many elements.
fn unary(t: &mut Trial<'_>, x: &[f32], f: impl Fn(f32) -> f32) {
    let (a, y) = (t.put(x), t.out::<f32>(x.len()));
    t.run(x.len() as u32 / 64, 64, &[a.arg(), y.arg()]);
    t.is(y, &map(x, f));
}

/// The smaller of two numbers as hardware has it: -0 below 0, NaN only of two.
fn least(a: f32, b: f32) -> f32 {
    // Of zeros of either sign, `min` may return any.
    if a != b {
        a.min(b)
    } else if a.is_sign_negative() {
        a
    } else {
        b
    }
}

fn most(a: f32, b: f32) -> f32 {
    // Of zeros of either sign, `max` may return any.
    if a != b {
        a.max(b)
    } else if a.is_sign_positive() {
        a
    } else {
        b
    }
}

pub(crate) const CASES: &[Case] = &[
    ("copy", |t| {
        let x = u32s(256, 1);
        let (a, y) = (t.put(&x), t.out::<u32>(256));
        t.run(2, 128, &[a.arg(), y.arg()]);
        t.is(y, &x);
    }),
    ("fill", |t| {
        let y = t.out::<u32>(192);
        t.run(2, 96, &[y.arg(), Arg::U32(0xDEAD_BEEF)]);
        t.is(y, &[0xDEAD_BEEF_u32; 192]);
    }),
    ("saxpy", |t| {
        let (x, y) = (wild(256, 1), wild(256, 2));
        let (a, b) = (t.put(&x), t.put(&y));
        t.run(1, 256, &[a.arg(), b.arg(), Arg::F32(1.7)]);
        t.is(b, &zip(&x, &y, |x, y| 1.7_f32.mul_add(x, y)));
    }),
    ("add4", |t| {
        let (x, y) = (wild(1024, 3), wild(1024, 4));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<f32>(1024));
        t.run(4, 64, &[a.arg(), b.arg(), z.arg()]);
        t.is(z, &zip(&x, &y, |x, y| x + y));
    }),
    ("tail", |t| {
        let x = tame(200, 5);
        let (a, y) = (t.put(&x), t.put(&[9.0_f32; 256]));
        t.run(4, 64, &[a.arg(), y.arg(), Arg::U32(200)]);
        let mut want = map(&x, |x| x * 2.0 - 1.0);
        want.resize(256, 9.0);
        t.is(y, &want);
    }),
    ("relu", |t| unary(t, &wild(128, 6), |x| most(x, 0.0))),
    ("clamped", |t| unary(t, &wild(128, 7), |x| least(most(x, -1.0), 1.0))),
    ("signs", |t| unary(t, &wild(128, 8), |x| if x.is_nan() { x } else { (x.abs() + 1.0).copysign(-x) })),
    ("rounding", |t| {
        let x = wild(128, 9);
        let (a, y) = (t.put(&x), t.out::<f32>(512));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let want: Vec<f32> = x.iter().flat_map(|x| [x.floor(), x.ceil(), x.trunc(), x.round_ties_even()]).collect();
        t.is(y, &want);
    }),
    ("quotient", |t| {
        let (mut x, mut y) = (wild(1024, 10), wild(1024, 11));
        x.extend(tame(1024, 12));
        y.extend(tame(1024, 13));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<f32>(2048));
        t.run(8, 256, &[a.arg(), b.arg(), z.arg()]);
        t.is(z, &zip(&x, &y, |x, y| x / y));
    }),
    ("root", |t| unary(t, &wild(1024, 14), f32::sqrt)),
    ("sigmoid", |t| {
        let x = tame(128, 15);
        let (a, y) = (t.put(&x), t.out::<f32>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let want = map(&x, |x| (1.0 / (1.0 + (-f64::from(x)).exp())) as f32);
        t.holds(y, &want, |a, b| (a - b).abs() <= 2e-6 * b);
    }),
    ("compare", |t| {
        let (mut x, mut y) = (wild(128, 16), wild(128, 18));
        x.extend(tame(64, 1).iter().map(|x| x.trunc()));
        y.extend(tame(64, 2).iter().map(|x| x.trunc()));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<u32>(192));
        t.run(3, 64, &[a.arg(), b.arg(), z.arg()]);
        let want = zip(&x, &y, |a, b| {
            let is = [a < b, a <= b, a == b, a != b, a > b, a >= b, a.is_nan() || b.is_nan(), a.is_infinite()];
            is.iter().enumerate().fold(0, |all, (i, b)| all | u32::from(*b) << i)
        });
        t.is(z, &want);
    }),
    ("to_int", |t| {
        let x = map(&tame(128, 17), |x| x * 250_000_000.0);
        let (a, y, z) = (t.put(&x), t.out::<i32>(128), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), y.arg(), z.arg()]);
        t.is(y, &map(&x, |x| x as i32));
        t.is(z, &map(&x, |x| x.abs() as u32));
    }),
    ("to_float", |t| {
        let x = map(&u32s(128, 18), u32::cast_signed);
        let (a, y, z) = (t.put(&x), t.out::<f32>(128), t.out::<f32>(128));
        t.run(2, 64, &[a.arg(), y.arg(), z.arg()]);
        t.is(y, &map(&x, |x| x as f32));
        t.is(z, &map(&x, |x| x.cast_unsigned() as f32));
    }),
    ("long_to_float", |t| {
        let x = map(&u64s(512, 20), u64::cast_signed);
        let (a, y, z) = (t.put(&x), t.out::<f32>(512), t.out::<f64>(512));
        t.run(8, 64, &[a.arg(), y.arg(), z.arg()]);
        t.is(y, &map(&x, |x| x as f32));
        t.is(z, &map(&x, |x| x as f64));
    }),
    ("scale_exponent", |t| {
        let (x, e) = (wild(128, 21), map(&u32s(128, 22), |e| (e % 300) as i32 - 150));
        let (a, b, y) = (t.put(&x), t.put(&e), t.out::<f32>(128));
        t.run(2, 64, &[a.arg(), b.arg(), y.arg()]);
        // A power of two that is split: each factor is a normal number of f64, and there is one rounding.
        t.is(y, &zip(&x, &e, |x, e| (f64::from(x) * 2_f64.powi(e)) as f32));
    }),
    ("polynomial", |t| unary(t, &tame(64, 23), |x| (0..6).fold(0.125, |r: f32, i| r.mul_add(x, i as f32 * 0.5)))),
    ("grid_2d", |t| {
        let y = t.out::<u32>(3 * 8 * 12);
        t.run_all([3, 4, 3], [4, 2, 1], 0, &[y.arg(), Arg::U32(12)]);
        let want: Vec<u32> = (0..3 * 8 * 12).map(|n| n % 12 * 10000 + n / 12 % 8 * 100 + n / 96).collect();
        t.is(y, &want);
        let one = t.out::<u32>(3 * 8 * 12);
        t.run_all([1, 2, 3], [12, 4, 1], 0, &[one.arg(), Arg::U32(12)]);
        t.is(one, &want);
    }),
];
