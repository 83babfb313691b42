//! Waves of a workgroup that exchange data through global memory.

use super::{Case, map};
use crate::trial::{tame, u32s};
use titan_amd::emu::Arg;

pub(crate) const CASES: &[Case] = &[
    ("exchange_reverse", |t| {
        let x = u32s(512, 40);
        let (a, s) = (t.put(&x), t.out::<u32>(512));
        t.run(2, 256, &[a.arg(), s.arg()]);
        let want: Vec<u32> = x.chunks(256).flat_map(|g| g.iter().rev().map(|v| v.wrapping_mul(3))).collect();
        t.is(a, &want);
    }),
    ("exchange_stencil", |t| {
        let mut x = tame(256, 41);
        let (a, b) = (t.put(&x), t.out::<f32>(256));
        t.run(1, 256, &[a.arg(), b.arg(), Arg::U32(6)]);
        for _ in 0..6 {
            let at = |i: usize| x[i.min(255)];
            x = (0..256_usize).map(|i| (at(i.saturating_sub(1)) + 2.0 * at(i) + at(i + 1)) * 0.25).collect();
        }
        t.is(a, &x);
    }),
    ("exchange_scan", |t| {
        let x = u32s(256, 42);
        let (a, b) = (t.put(&x), t.out::<u32>(256));
        t.run(1, 256, &[a.arg(), b.arg()]);
        let sum = |i: usize| x[..=i].iter().fold(0_u32, |s, v| s.wrapping_add(*v));
        t.is(a, &(0..256).map(sum).collect::<Vec<_>>());
    }),
    ("exchange_transpose", |t| {
        let x = u32s(512, 43);
        let (a, s, y) = (t.put(&x), t.out::<u32>(512), t.out::<u32>(512));
        t.run(2, 256, &[a.arg(), s.arg(), y.arg()]);
        let want = (0..512).map(|i| x[i / 256 * 256 + i % 16 * 16 + i % 256 / 16]);
        t.is(y, &want.collect::<Vec<_>>());
    }),
    ("exchange_sort", |t| {
        let mut x = u32s(256, 44);
        let a = t.put(&x);
        t.run(1, 256, &[a.arg()]);
        x.sort_unstable();
        t.is(a, &x);
    }),
    ("exchange_overwrite", |t| {
        let x = u32s(256, 45);
        let (a, y) = (t.put(&x), t.out::<u32>(256));
        t.run(1, 256, &[a.arg(), y.arg()]);
        t.is(y, &(0..256).map(|i| x[i ^ 64].wrapping_add(i as u32 ^ 128)).collect::<Vec<_>>());
    }),
    ("exchange_bins", |t| {
        let x = u32s(700, 46);
        let (a, b, y) = (t.put(&x), t.out::<u32>(256), t.out::<u32>(256));
        t.run(1, 256, &[a.arg(), b.arg(), y.arg(), Arg::U32(700)]);
        let count = |v: u32| x.iter().filter(|x| **x % 256 == v).count() as u32 + v;
        t.is(y, &(0..256).map(|i| count(255 - i)).collect::<Vec<_>>());
    }),
    ("exchange_bytes", |t| {
        let x = map(&u32s(256, 47), |v| v as u8);
        let (a, s, y) = (t.put(&x), t.out::<u8>(256), t.out::<u32>(64));
        t.run(1, 256, &[a.arg(), s.arg(), y.arg()]);
        let word = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]].map(|b| b.wrapping_add(1)));
        t.is(y, &x.chunks(4).rev().map(word).collect::<Vec<_>>());
    }),
];
