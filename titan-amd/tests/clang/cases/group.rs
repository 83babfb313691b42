//! The local data share and barriers.

use super::{Case, map};
use crate::trial::{tame, u32s};
use titan_amd::emu::Arg;

pub(crate) const CASES: &[Case] = &[
    ("sum", |t| {
        let x = tame(768, 1);
        let (a, y) = (t.put(&x), t.out::<f32>(3));
        t.run(3, 256, &[a.arg(), y.arg()]);
        // Numbers with 12 bits of fraction: every partial sum is exact.
        let want: Vec<f32> = x.chunks(256).map(|c| c.iter().map(|x| f64::from(*x)).sum::<f64>() as f32).collect();
        t.is(y, &want);
    }),
    ("scan", |t| {
        let x = u32s(512, 2);
        let (a, y) = (t.put(&x), t.out::<u32>(512));
        t.run(2, 256, &[a.arg(), y.arg()]);
        let scan = |c: &[u32]| {
            let sums = c.iter().scan(0_u32, |s, x| {
                *s = s.wrapping_add(*x);
                Some(*s)
            });
            sums.collect::<Vec<u32>>()
        };
        t.is(y, &x.chunks(256).flat_map(scan).collect::<Vec<u32>>());
    }),
    ("histogram", |t| {
        let x = map(&u32s(1500, 3), |x| (x % 37) as u8);
        let (a, y) = (t.put(&x), t.out::<u32>(256));
        t.run(1, 256, &[a.arg(), y.arg(), Arg::U32(1500)]);
        t.is(y, &(0..256).map(|b| x.iter().filter(|x| u32::from(**x) == b).count() as u32).collect::<Vec<u32>>());
    }),
    ("transpose", |t| {
        let x = tame(32 * 32, 4);
        let (a, y) = (t.put(&x), t.out::<f32>(32 * 32));
        t.run_all([2, 2, 1], [256, 1, 1], 0, &[a.arg(), y.arg(), Arg::U32(32)]);
        t.is(y, &(0..32 * 32).map(|i| x[i % 32 * 32 + i / 32]).collect::<Vec<f32>>());
    }),
    ("matmul", |t| {
        let (x, y) = (tame(48 * 48, 5), tame(48 * 48, 6));
        let (a, b, c) = (t.put(&x), t.put(&y), t.out::<f32>(48 * 48));
        t.run_all([3, 3, 1], [256, 1, 1], 0, &[a.arg(), b.arg(), c.arg(), Arg::U32(48)]);
        let at = |i: usize, j: usize| (0..48).fold(0_f32, |s, k| x[i * 48 + k].mul_add(y[k * 48 + j], s));
        t.is(c, &(0..48 * 48).map(|i| at(i / 48, i % 48)).collect::<Vec<f32>>());
    }),
    ("bitonic", |t| {
        let x = u32s(512, 7);
        let a = t.put(&x);
        t.run(2, 256, &[a.arg()]);
        let sorted = |c: &[u32]| {
            let mut c = c.to_vec();
            c.sort_unstable();
            c
        };
        t.is(a, &x.chunks(256).flat_map(sorted).collect::<Vec<u32>>());
    }),
    ("local_bytes", |t| {
        let x = map(&u32s(128, 8), |x| x as u8);
        let (a, y) = (t.put(&x), t.out::<u8>(128));
        t.run(1, 128, &[a.arg(), y.arg()]);
        t.is(y, &(0..128).map(|i| x[127 - i].wrapping_add(x[127 - i].wrapping_mul(5))).collect::<Vec<u8>>());
    }),
    ("local_wide", |t| {
        let (x, y) = (map(&tame(128, 9), f64::from), tame(256, 10));
        let (a, b, z, w) = (t.put(&x), t.put(&y), t.out::<f64>(128), t.out::<f32>(256));
        t.run(1, 64, &[a.arg(), b.arg(), z.arg(), w.arg()]);
        let wide = |i: usize| x[(63 - i / 2) * 2 + i % 2] + x[((i / 2) ^ 1) * 2 + i % 2];
        let four = |i: usize| y[(i / 4 + 5) % 64 * 4 + i % 4] + y[(i / 4 + 37) % 64 * 4 + i % 4];
        t.is(z, &(0..128).map(wide).collect::<Vec<f64>>());
        t.is(w, &(0..256).map(four).collect::<Vec<f32>>());
    }),
    ("borrowed", |t| {
        let x = u32s(192, 11);
        let (a, y) = (t.put(&x), t.out::<u32>(192));
        t.run_all([2, 1, 1], [96, 1, 1], 96 * 4, &[a.arg(), y.arg(), Arg::U32(0)]);
        t.is(y, &(0..192).map(|i| x[i / 96 * 96 + (i % 96 + 1) % 96]).collect::<Vec<u32>>());
    }),
];
