//! The local data share, barriers and exchanges between lanes, in C++.

use super::{Case, map};
use crate::trial::{tame, u32s};
use titan_amd::emu::Arg;

pub(crate) const CASES: &[Case] = &[
    ("local_reduce", |t| {
        let x = u32s(512, 150);
        let (a, y) = (t.put(&x), t.out::<u32>(4));
        t.run(2, 256, &[a.arg(), y.arg()]);
        let each = |g: &[u32]| [g.iter().fold(0, |s: u32, v| s.wrapping_add(*v)), *g.iter().max().expect("some")];
        t.is(y, &x.chunks(256).flat_map(each).collect::<Vec<_>>());
    }),
    ("local_mean", |t| {
        let x = tame(256, 151);
        let (a, y) = (t.put(&x), t.out::<f32>(256));
        t.run(2, 128, &[a.arg(), y.arg()]);
        let each = |g: &[f32]| {
            let mut s = g.to_vec();
            while s.len() > 1 {
                let half = s.len() / 2;
                s = (0..half).map(|i| s[i] + s[i + half]).collect();
            }
            let mean = s[0] / 128.0;
            map(g, |v| (v - mean) * (v - mean))
        };
        t.is(y, &x.chunks(128).flat_map(each).collect::<Vec<_>>());
    }),
    ("local_scan", |t| {
        let x = u32s(512, 152);
        let (a, y) = (t.put(&x), t.out::<u32>(512));
        t.run(2, 256, &[a.arg(), y.arg()]);
        let sums = |g: &[u32]| {
            let mut s = 0_u32;
            let next = |v: &u32| {
                s = s.wrapping_add(*v);
                s
            };
            g.iter().map(next).collect::<Vec<_>>()
        };
        t.is(y, &x.chunks(256).flat_map(sums).collect::<Vec<_>>());
    }),
    ("local_ballot", |t| {
        let x = map(&u32s(128, 153), |v| v % 2000);
        let (a, y) = (t.put(&x), t.out::<u64>(128));
        t.run(1, 128, &[a.arg(), y.arg()]);
        let mask = |w: usize, f: fn(u32) -> bool| (0..64).fold(0_u64, |m, l| m | u64::from(f(x[w * 64 + l])) << l);
        let each = |i: usize| {
            let (odd, big) = (mask(i / 64, |v| v % 2 == 1), mask(i / 64, |v| v > 1000));
            let before = (odd & ((1_u64 << (i % 64)) - 1)).count_ones();
            (odd & !big).wrapping_add(before.into())
        };
        t.is(y, &(0..128).map(each).collect::<Vec<_>>());
    }),
    ("local_first", |t| {
        let x = map(&u32s(128, 154), |v| v % 7);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let each = |i: usize| x[i] * 2 + x[i / 64 * 64..][..64].iter().filter(|v| **v == x[i]).count() as u32;
        t.is(y, &(0..128).map(each).collect::<Vec<_>>());
    }),
    ("local_histogram", |t| {
        let x = map(&u32s(1000, 155), |v| v as u8);
        let (a, y) = (t.put(&x), t.out::<u32>(64));
        t.run(1, 256, &[a.arg(), y.arg(), Arg::U32(1000)]);
        t.is(y, &(0..64).map(|b| x.iter().filter(|v| **v % 64 == b).count() as u32).collect::<Vec<_>>());
    }),
    ("local_stages", |t| {
        let x = u32s(128 * 5, 156);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(1, 256, &[a.arg(), y.arg(), Arg::U32(5)]);
        let each = |l: usize| (0..5).fold(0_u32, |s, i| s.wrapping_add(x[i * 128 + l].wrapping_mul(i as u32 + 1)));
        t.is(y, &(0..128).map(each).collect::<Vec<_>>());
    }),
    ("local_leaves", |t| {
        let x = u32s(256, 157);
        let (a, y) = (t.put(&x), t.out::<u32>(256));
        t.run(1, 256, &[a.arg(), y.arg()]);
        let sum = |l: usize| x[l].wrapping_add(x[l - 64]);
        let each = |l: usize| if l < 64 { x[l + 64] } else { sum(if l < 128 { l + 64 } else { l - 64 }) };
        t.is(y, &(0..256).map(each).collect::<Vec<_>>());
    }),
    ("local_matrix", |t| {
        let (x, z) = (tame(16 * 48, 158), tame(48 * 16, 159));
        let (a, b, y) = (t.put(&x), t.put(&z), t.out::<f32>(256));
        t.run(1, 256, &[a.arg(), b.arg(), y.arg(), Arg::U32(48)]);
        let each = |n: usize| (0..48).fold(0.0_f32, |s, k| s + x[n / 16 * 48 + k] * z[k * 16 + n % 16]);
        t.is(y, &(0..256).map(each).collect::<Vec<_>>());
    }),
];
