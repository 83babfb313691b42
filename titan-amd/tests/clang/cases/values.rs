//! Numbers of every size, and the corners of conversions and comparisons.

use super::{Case, map};
use crate::trial::{tame, u32s, u64s, wild};
use half::f16;
use titan_amd::emu::Arg;

fn bit(on: bool, at: u32) -> u32 {
    u32::from(on) << at
}

/// Numbers in `f64` of every size, some of them not finite.
fn wide(n: usize, seed: u64) -> Vec<f64> {
    let corners = [0.0, -0.0, f64::NAN, f64::INFINITY, 1e300, -2.5, 0.5, 1.5];
    corners.into_iter().chain(u64s(n, seed).into_iter().map(f64::from_bits)).take(n).collect()
}

/// Numbers that integers of 31 bits can hold the whole part of, halves among them.
fn small(n: usize, seed: u64) -> Vec<f32> {
    [0.5, -0.5, 1.5, -2.5, 2.5, 0.0, -0.0, 0.499_999_97].into_iter().chain(tame(n, seed)).take(n).collect()
}

pub(crate) const CASES: &[Case] = &[
    ("values_masks", |t| {
        let x = u64s(128, 230);
        let (a, y) = (t.put(&x), t.out::<u64>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let each = |v: u64| {
            let terms = [
                (v & 0xFFFF_FFFF).wrapping_mul(3),
                v & 0x8000_0000,
                v | 0xFFFF_FFFF_8000_0000,
                v ^ 0x7FFF_FFFF,
                v & 0xFFFF_FFFF_FFFF_FFF0,
                v ^ 0x1_FFFF_FFFF,
                v >> 31 & 0x1_FFFF,
                v << 33 & 0xFFFF_FFFF_0000_0000,
                if v > 0x8000_0000 { 0xFFFF_FFFF_u64 } else { 0xDEAD_BEEF }.wrapping_neg(),
                if v == 0xFFFF_FFFF { 0x0123_4567_89AB_CDEF } else { v % 0xFFFF_FFFF },
            ];
            terms.into_iter().fold(0, u64::wrapping_add)
        };
        t.is(y, &map(&x, each));
    }),
    ("values_uniform", |t| {
        for (v, w) in [(0x1_8000_0001_u64, -0x8000_0001_i64), (0xFFFF_FFFF, 0x8000_0000), (u64::MAX, -1), (3, i64::MIN)]
        {
            let y = t.out::<u64>(64);
            t.run(1, 64, &[Arg::U64(v), Arg::I64(w), y.arg()]);
            let r = [
                (v & 0xFFFF_FFFF).wrapping_mul(5),
                v | 0x8000_0000,
                v ^ 0xFFFF_FFFF,
                v.wrapping_add(0xFFFF_FFFF),
                v.wrapping_sub(0x8000_0000),
                v.wrapping_mul(0xFFFF_FFFF),
                if v > 0xFFFF_FFFF { v } else { 0x8000_0000 },
                if w < -0x8000_0000 { w.cast_unsigned() } else { 7 },
                (w >> 3 & 0xFFFF_FFFF).cast_unsigned(),
                (w / 3).cast_unsigned(),
                v % 1_000_003,
                u64::from(w > 0x7FFF_FFFF),
            ];
            let s = r.iter().fold(0_u64, |s, r| s.wrapping_mul(31).wrapping_add(*r));
            t.is(y, &(0..64).map(|i| s.wrapping_add(i)).collect::<Vec<_>>());
        }
    }),
    ("values_compare", |t| {
        let x = map(&u64s(128, 231), u64::cast_signed);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let each = |i: usize| {
            let (v, w) = (x[i], x[i ^ 1]);
            let (a, b) = (v.cast_unsigned(), w.cast_unsigned());
            let tests = [
                v < -1,
                v <= 0x7FFF_FFFF,
                v > -0x8000_0000,
                v >= 0x1_0000_0000,
                a < 0xFFFF_FFFF,
                a > 1 << 63,
                v < w,
                a < b,
                v == w,
                (v as i32) < w as i32,
                (v as u32) < w as u32,
                (v as i16) < w as i16,
                v as u8 >= w as u8,
            ];
            (0..).zip(tests).fold(0, |r, (at, on)| r | bit(on, at))
        };
        t.is(y, &(0..128).map(each).collect::<Vec<_>>());
    }),
    ("values_bits", |t| {
        let x = u64s(128, 232);
        let (a, y) = (t.put(&x), t.out::<u64>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let each = |v: u64| {
            let n = (v % 64) as u32;
            let counts = u64::from(v.count_ones() * 3 + v.leading_zeros() * 5 + v.trailing_zeros() * 7);
            let terms = [
                v.rotate_left(n) ^ v.swap_bytes() ^ v.reverse_bits(),
                counts,
                (v.cast_signed() >> n).cast_unsigned(),
                u64::from((v as u32).swap_bytes()),
                u64::from((v as u32).rotate_left(n % 32)),
            ];
            terms.into_iter().fold(0, u64::wrapping_add)
        };
        t.is(y, &map(&x, each));
    }),
    ("values_overflow", |t| {
        let x = u64s(128, 233);
        let (a, y) = (t.put(&x), t.out::<u64>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let each = |i: usize| {
            let (a, b) = (x[i], x[i ^ 1]);
            let (c, d) = (a.cast_signed(), b.cast_signed());
            let (sum, difference, product) = (a.overflowing_add(b), a.overflowing_sub(b), a.overflowing_mul(b));
            let (signed, multiplied) = (c.overflowing_add(d), c.overflowing_mul(d));
            let short = (a as u32).overflowing_mul(b as u32);
            let flags = [sum.1, difference.1, product.1, signed.1, multiplied.1, short.1];
            let r = (0..).zip(flags).fold(0, |r, (at, on)| r | bit(on, at));
            let terms = [
                (1, sum.0),
                (3, difference.0),
                (5, product.0),
                (7, signed.0.cast_unsigned()),
                (11, multiplied.0.cast_unsigned()),
                (13, short.0.into()),
                (0x1_0000_0001, r.into()),
            ];
            terms.into_iter().fold(0, |s: u64, (k, v): (u64, u64)| s.wrapping_add(k.wrapping_mul(v)))
        };
        t.is(y, &(0..128).map(each).collect::<Vec<_>>());
    }),
    ("values_to_wide", |t| {
        // What does not fit has no value in C.
        let x: Vec<f32> = u64s(64, 234).iter().map(|v| (v >> 2) as f32 * if v % 3 == 0 { -1.0 } else { 1.0 }).collect();
        let z: Vec<f64> = map(&small(64, 235), |v| f64::from(v) * 1e6);
        let (a, b, y) = (t.put(&x), t.put(&z), t.out::<i64>(256));
        t.run(1, 64, &[a.arg(), b.arg(), y.arg()]);
        let each = |i: usize| {
            let (v, w) = (x[i], z[i]);
            [v as i64, (v.abs() as u64).cast_signed(), w as i64, i64::from(w.abs() as u32)]
        };
        t.is(y, &(0..64).flat_map(each).collect::<Vec<_>>());
    }),
    ("values_from_wide", |t| {
        let x = u64s(128, 236);
        let (a, y, z) = (t.put(&x), t.out::<f32>(256), t.out::<f64>(256));
        t.run(2, 64, &[a.arg(), y.arg(), z.arg()]);
        t.is(y, &x.iter().flat_map(|v| [*v as f32, v.cast_signed() as f32]).collect::<Vec<_>>());
        t.is(z, &x.iter().flat_map(|v| [*v as f64, v.cast_signed() as f64]).collect::<Vec<_>>());
    }),
    ("values_ordered", |t| {
        let mut x = wild(128, 237);
        let mut z = wide(128, 238);
        // Equal ones next to each other.
        (0..32).for_each(|i| (x[4 * i + 1], z[4 * i + 3]) = (x[4 * i], z[4 * i + 2]));
        let (a, b, y) = (t.put(&x), t.put(&z), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), b.arg(), y.arg()]);
        let each = |i: usize| {
            let (a, b, c, d) = (x[i], x[i ^ 1], z[i], z[i ^ 1]);
            let (h, k) = (f16::from_f32(a), f16::from_f32(b));
            let less = |l: bool, e: bool| l || e;
            let tests = [
                a > b,
                a >= b,
                a < b,
                a <= b,
                // Less or greater.
                a.partial_cmp(&b).is_some_and(std::cmp::Ordering::is_ne),
                a.is_nan() || b.is_nan(),
                a == b,
                a != b,
                !less(a < b, false),
                !less(a < b, a == b),
                !less(a > b, false),
                !less(a > b, a == b),
                c < d,
                c >= d,
                c == d,
                !less(c > d, false),
                c.is_nan() || d.is_nan(),
                h < k,
                h == k,
                h != k,
            ];
            (0..).zip(tests).fold(0, |r, (at, on)| r | bit(on, at))
        };
        t.is(y, &(0..128).map(each).collect::<Vec<_>>());
    }),
    ("values_extremes", |t| {
        // Of two zeros with different signs either may be returned.
        let x = map(&wild(128, 239), |v| if v == 0.0 { 1.0 } else { v });
        let (a, y) = (t.put(&x), t.out::<f32>(512));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let each = |i: usize| {
            let (a, b) = (x[i], x[i ^ 1]);
            [a.min(b), a.max(b), a.copysign(b), -a.abs()]
        };
        t.is(y, &(0..128).flat_map(each).collect::<Vec<_>>());
    }),
    ("values_rounding", |t| {
        let (x, z) = (small(64, 240), map(&small(64, 241), f64::from));
        let (a, b, y, w) = (t.put(&x), t.put(&z), t.out::<f32>(320), t.out::<f64>(320));
        t.run(1, 64, &[a.arg(), b.arg(), y.arg(), w.arg()]);
        let each = |v: &f32| [v.floor(), v.ceil(), v.trunc(), v.round_ties_even(), v.round()];
        t.is(y, &x.iter().flat_map(each).collect::<Vec<_>>());
        let each = |v: &f64| [v.floor(), v.ceil(), v.trunc(), v.round_ties_even(), v.round()];
        t.is(w, &z.iter().flat_map(each).collect::<Vec<_>>());
    }),
    ("values_pointers", |t| {
        let n = 100;
        let x = u32s(n, 242);
        let (a, y) = (t.put(&x), t.out::<u64>(64));
        t.run(1, 64, &[a.arg(), y.arg(), Arg::U32(n as u32)]);
        let each = |i: usize| {
            let (at, other) = (x[i] as usize % n, n - 1 - x[i ^ 1] as usize % n);
            let distance = (at as i64 - other as i64).cast_unsigned().wrapping_mul(1000);
            let none = if i.is_multiple_of(3) { 500 } else { x[at] % 7 };
            distance.wrapping_add(u64::from(x[at.min(other)] % 100 + none)).wrapping_add(at as u64)
        };
        t.is(y, &(0..64).map(each).collect::<Vec<_>>());
    }),
    ("values_narrow", |t| {
        let x = map(&u32s(128, 243), |v| v as u8);
        let z = map(&u32s(128, 244), |v| (v >> 3) as i16);
        let (a, b, y) = (t.put(&x), t.put(&z), t.out::<u32>(256));
        t.run(2, 64, &[a.arg(), b.arg(), y.arg()]);
        let each = |i: usize| {
            let (a, b, c, d) = (x[i], x[i ^ 1], z[i], z[i ^ 1]);
            let bytes = [a.wrapping_add(b), a.wrapping_mul(b), a / (b | 1), !a >> 3];
            let (e, f) = (a.cast_signed(), b.cast_signed());
            let terms = [
                (3, i32::from(e.wrapping_mul(f))),
                (5, i32::from(e.wrapping_div(f | 1))),
                (7, i32::from(e >> 2)),
                (11, i32::from(c.wrapping_mul(d))),
                (13, i32::from(c.wrapping_div(d | 1))),
                (17, i32::from(c.wrapping_rem(d | 1))),
                (19, i32::from(c << 3)),
            ];
            let sum: i32 = terms.iter().map(|(k, v)| k * v).sum();
            [u32::from_le_bytes(bytes), sum.cast_unsigned()]
        };
        t.is(y, &(0..128).flat_map(each).collect::<Vec<_>>());
    }),
    ("values_powers", |t| {
        let x = map(&tame(64, 245), |v| if v == 0.0 { 1.0 } else { v * 3.0 });
        let (a, y) = (t.put(&x), t.out::<f32>(256));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let each = |v: &f32| [v.exp2(), v.abs().log2(), 1.0 / v.abs().sqrt(), 1.0 / v];
        let near = |got: f32, want: f32| (got - want).abs() <= 1e-6 * want.abs().max(0.1);
        t.holds(y, &x.iter().flat_map(each).collect::<Vec<_>>(), near);
    }),
];
