//! Workgroups that tell each other something.

use super::{Case, map};
use crate::trial::{tame, u32s};
use titan_amd::emu::Arg;

pub(crate) const CASES: &[Case] = &[
    ("grid_tickets", |t| {
        let (c, y) = (t.put(&[0_u32]), t.put(&[0_u32; 256]));
        t.run(4, 64, &[c.arg(), y.arg()]);
        t.is(y, &[1_u32; 256]);
        t.is(c, &[256_u32]);
    }),
    ("grid_last", |t| {
        let x = map(&u32s(384, 160), |v| v % 10_000);
        let (a, p, c, y) = (t.put(&x), t.out::<u32>(6), t.put(&[0_u32]), t.out::<u32>(1));
        t.run(6, 64, &[a.arg(), p.arg(), c.arg(), y.arg()]);
        t.is(y, &[x.iter().sum::<u32>()]);
    }),
    ("grid_flags", |t| {
        let (d, f, y) = (t.out::<u32>(384), t.put(&[0_u32; 6]), t.out::<u32>(384));
        t.run(6, 64, &[d.arg(), f.arg(), y.arg()]);
        let mut want: Vec<Vec<u32>> = vec![vec![1; 64]];
        for _ in 1..6 {
            let last = want.last().expect("the first").clone();
            want.push((0..64).map(|l| last[63 - l] + l as u32 + 1).collect());
        }
        t.is(y, &want.concat());
    }),
    ("grid_lock", |t| {
        let (l, x) = (t.put(&[0_u32]), t.put(&[0_u32, 0]));
        t.run(5, 64, &[l.arg(), x.arg(), Arg::U32(3)]);
        let chain = (0..15).fold(0_u32, |v, _| v.wrapping_mul(3).wrapping_add(1));
        t.is(x, &[15, chain]);
        t.is(l, &[0_u32]);
    }),
    ("grid_barrier", |t| {
        let x = map(&u32s(512, 161), |v| v % 100_000);
        let (a, s, c, y) = (t.put(&x), t.out::<u32>(512), t.put(&[0_u32]), t.out::<u32>(512));
        t.run(4, 128, &[a.arg(), s.arg(), c.arg(), y.arg()]);
        t.is(y, &(0..512).map(|i| 2 * x[(i + 128) % 512] + 2 * x[511 - i]).collect::<Vec<_>>());
    }),
    ("grid_max", |t| {
        let x = map(&tame(500, 162), f32::abs);
        let (a, b) = (t.put(&x), t.put(&[0_u32]));
        t.run(3, 64, &[a.arg(), b.arg(), Arg::U32(500)]);
        t.is(b, &[x.iter().copied().fold(0.0, f32::max).to_bits()]);
    }),
];
