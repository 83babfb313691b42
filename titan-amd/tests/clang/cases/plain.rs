//! C without an environment: every access is by generic addresses.

use super::{Case, map};
use crate::trial::{u32s, u64s};
use titan_amd::emu::Arg;

pub(crate) const CASES: &[Case] = &[
    ("plain_sum", |t| {
        let x = u32s(64 * 9, 180);
        let (a, y) = (t.put(&x), t.out::<u32>(64));
        t.run(1, 64, &[a.arg(), y.arg(), Arg::U32(9)]);
        let each = |l: usize| (0..9).fold(0_u32, |s, i| s.wrapping_add(x[i * 64 + l]));
        t.is(y, &(0..64).map(each).collect::<Vec<_>>());
    }),
    ("plain_chain", |t| {
        let x = map(&u32s(128, 181), |v| v % 128);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), y.arg(), Arg::U32(6)]);
        t.is(y, &(0..128).map(|i| (0..6).fold(i, |at, _| x[at as usize])).collect::<Vec<u32>>());
    }),
    ("plain_update", |t| {
        let x = u64s(128, 182);
        let a = t.put(&x);
        t.run(2, 64, &[a.arg()]);
        let step = |v: u64, i: u64| {
            let v = v.wrapping_add(i);
            v.wrapping_mul(3) ^ v >> 7
        };
        t.is(a, &map(&x, |v| (0..5).fold(v, step)));
    }),
    ("plain_shared", |t| {
        let x = u32s(64, 183);
        let (a, y) = (t.put(&x), t.out::<u32>(64));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let each = |l: usize| {
            let local = x[63 - l].wrapping_add(if l % 2 == 1 { 1 } else { 0 });
            let chosen = if l % 2 == 1 { local } else { x[l].wrapping_add(1) };
            chosen.wrapping_mul(2).wrapping_add(local)
        };
        t.is(y, &(0..64).map(each).collect::<Vec<_>>());
    }),
];
