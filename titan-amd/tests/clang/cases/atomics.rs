//! Atomic operations on memory and on the local data share.

use super::{Case, map};
use crate::trial::{tame, u32s, u64s};
use half::f16;

pub(crate) const CASES: &[Case] = &[
    ("counters", |t| {
        let x = u32s(256, 1);
        let start = [5, 7, !0, 0, 9, !0, 0, i32::MAX as u32, i32::MIN as u32];
        let (a, c) = (t.put(&x), t.put(&start));
        t.run(2, 128, &[a.arg(), c.arg()]);
        let fold = |i: usize, f: fn(u32, u32) -> u32| x.iter().fold(start[i], |s, x| f(s, *x));
        let want = [
            fold(0, u32::wrapping_add),
            fold(1, u32::wrapping_sub),
            fold(2, |s, x| s & (x | 0xf0)),
            fold(3, |s, x| s | x & 0xff00),
            fold(4, |s, x| s ^ x),
            fold(5, u32::min),
            fold(6, u32::max),
            fold(7, |s, x| (s as i32).min(x as i32) as u32),
            fold(8, |s, x| (s as i32).max(x as i32) as u32),
        ];
        t.is(c, &want);
    }),
    ("spread", |t| {
        let x = u32s(256, 2);
        let (a, c) = (t.put(&x), t.put(&[0_u32; 7]));
        t.run(4, 64, &[a.arg(), c.arg()]);
        let mut want = [0; 7];
        x.iter().zip(0..).for_each(|(x, i)| want[(x % 7) as usize] += i);
        t.is(c, &want);
    }),
    ("tickets", |t| {
        let (c, y) = (t.put(&[0_u32]), t.out::<u32>(192));
        t.run(3, 64, &[c.arg(), y.arg()]);
        t.is(c, &[192_u32]);
        let Some(mut got) = t.get::<u32>(y) else { return };
        got.sort_unstable();
        let sorted = t.put(&got);
        t.is(sorted, &(1..=192).collect::<Vec<u32>>());
    }),
    ("wide_counters", |t| {
        let x = u64s(192, 3);
        let start = [1_u64, 2, 3, 1 << 63, 1 << 63, 1 << 63, 4, 5, 6];
        let (a, c) = (t.put(&x), t.put(&start));
        t.run(3, 64, &[a.arg(), c.arg()]);
        let mut want = start;
        for (i, x) in x.iter().enumerate() {
            want[i % 3] = want[i % 3].wrapping_add(*x);
            want[3 + i % 3] = want[3 + i % 3].cast_signed().max(x.cast_signed()).cast_unsigned();
            want[6 + i % 3] ^= *x;
        }
        t.is(c, &want);
    }),
    ("compare_swap", |t| {
        // All add the same: the order does not matter.
        let (a, c) = (t.put(&[7_u32; 64]), t.put(&[1_u32, 0]));
        t.run(1, 64, &[a.arg(), c.arg()]);
        t.is(c, &[(0..64).fold(1_u32, |c, _| c.wrapping_mul(3).wrapping_add(2)), 64]);
    }),
    ("float_add", |t| {
        let x = tame(256, 4);
        let (a, c) = (t.put(&x), t.put(&[0.0_f32; 5]));
        t.run(2, 128, &[a.arg(), c.arg()]);
        let mut want = [0.0_f32; 5];
        x.iter().enumerate().for_each(|(i, x)| want[i % 5] += x);
        t.is(c, &want);
    }),
    ("double_add", |t| {
        let x = map(&tame(256, 5), f64::from);
        let (a, c) = (t.put(&x), t.put(&[0.5_f64; 3]));
        t.run(2, 128, &[a.arg(), c.arg()]);
        let mut want = [0.5_f64; 3];
        x.iter().enumerate().for_each(|(i, x)| want[i % 3] += x);
        t.is(c, &want);
    }),
    ("half_add", |t| {
        let x = map(&tame(256, 6), |x| f16::from_f32(x.trunc()));
        let (a, c) = (t.put(&x), t.put(&[f16::ZERO; 10]));
        t.run(1, 128, &[a.arg(), c.arg()]);
        let mut want = [0.0_f32; 10];
        x.iter().enumerate().for_each(|(i, x)| want[i / 2 % 5 * 2 + i % 2] += x.to_f32());
        t.is(c, &map(&want, f16::from_f32));
    }),
    ("exchange", |t| {
        let (x, y) = (u32s(64, 7), u32s(64, 8));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<u32>(64));
        t.run(1, 64, &[a.arg(), b.arg(), z.arg()]);
        t.is(z, &(0..64).map(|i| y[i ^ 1]).collect::<Vec<u32>>());
        t.is(b, &(0..64).map(|i| x[i ^ 1]).collect::<Vec<u32>>());
    }),
    ("local_counters", |t| {
        let x = u32s(192, 9);
        let (a, y) = (t.put(&x), t.out::<u32>(13));
        t.run(1, 192, &[a.arg(), y.arg()]);
        let fold = |start: u32, f: fn(u32, u32) -> u32| x.iter().fold(start, |s, x| f(s, *x));
        let wide = |odd: u32| {
            let squares = x.iter().filter(|x| **x & 1 == odd).map(|x| u64::from(*x).wrapping_mul((*x).into()));
            squares.fold(0_u64, u64::wrapping_add)
        };
        let [low, high] = [wide(0), wide(1)].map(|w| [w as u32, (w >> 32) as u32]);
        let mut want = vec![
            fold(0, u32::wrapping_add),
            fold(0, u32::wrapping_sub),
            fold(!0, |s, x| s & x),
            fold(0, |s, x| s | x),
            fold(!0, u32::min),
            fold(0, u32::max),
            fold(0, |s, x| s ^ x),
            192,
        ];
        want.extend(low.into_iter().chain(high).chain([1]));
        t.is(y, &want);
    }),
    ("local_float_add", |t| {
        let x = tame(128, 10);
        let (a, y) = (t.put(&x), t.out::<f32>(4));
        t.run(1, 128, &[a.arg(), y.arg()]);
        let mut want = [0.0_f32; 4];
        x.iter().enumerate().for_each(|(i, x)| want[i % 4] += x);
        t.is(y, &want);
    }),
];
