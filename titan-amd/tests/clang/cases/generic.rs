//! Generic pointers.

use super::{Case, map};
use crate::trial::u32s;
use titan_amd::emu::Arg;

pub(crate) const CASES: &[Case] = &[
    ("generic_pick", |t| {
        let x = u32s(256, 70);
        let a = t.put(&x);
        t.run(1, 256, &[a.arg()]);
        let each = |(l, v): (usize, &u32)| {
            let double = v.wrapping_mul(2);
            if l % 2 == 1 { double.wrapping_add(5).wrapping_mul(2) } else { v.wrapping_add(5).wrapping_add(double) }
        };
        t.is(a, &x.iter().enumerate().map(each).collect::<Vec<_>>());
    }),
    ("generic_three", |t| {
        let x = map(&u32s(256, 71), |v| v % 10_000);
        let (a, y) = (t.put(&x), t.out::<u32>(256));
        t.run(2, 128, &[a.arg(), y.arg()]);
        let each = |i: usize| {
            let (v, l) = (x[i], i % 128);
            let (mut global, mut local, mut own) = (v, v + 3, [v + 1, v + 2]);
            let p = match l % 3 {
                0 => &mut global,
                1 => &mut local,
                _ => &mut own[l % 2],
            };
            let first = *p;
            *p += 200;
            first.wrapping_mul(1000) + first + 100 + global + local + own[0] + own[1]
        };
        t.is(y, &(0..256).map(each).collect::<Vec<_>>());
    }),
    ("generic_swap", |t| {
        let x = u32s(64, 72);
        let a = t.put(&x);
        t.run(1, 64, &[a.arg()]);
        // The local value goes to global memory, and then into the own one; the global value comes back.
        let each = |(l, v): (usize, &u32)| {
            let (mut own, mut local, mut global) = (l as u32, l as u32 * 7, *v);
            std::mem::swap(&mut local, &mut global);
            std::mem::swap(&mut own, &mut local);
            std::mem::swap(&mut global, &mut own);
            global
        };
        t.is(a, &x.iter().enumerate().map(each).collect::<Vec<_>>());
    }),
    ("generic_sum", |t| {
        let x = map(&u32s(64, 73), |v| v % 1000);
        let (a, y) = (t.put(&x), t.out::<u32>(64));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let all: u32 = x.iter().sum();
        let each = |l: usize| all + (8 * x[l] + 28) * 3 + x[..l % 5].iter().sum::<u32>();
        t.is(y, &(0..64).map(each).collect::<Vec<_>>());
    }),
    ("generic_atomic", |t| {
        let (a, y) = (t.put(&[10_u32, 20, 30, 40]), t.out::<u32>(4));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let sum = |k: u32| (0..64).filter(|l| l % 4 == k).sum::<u32>();
        t.is(y, &[10 + sum(0), 20 + sum(1), 30 + sum(2), 40 + sum(3)]);
    }),
    ("generic_copy", |t| {
        let x = map(&u32s(64 * 12, 74), |v| v as u8);
        let (a, y) = (t.put(&x), t.out::<u8>(64 * 12));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let each = |l: usize| {
            let mut own = x[(63 - l) * 12..][..12].to_vec();
            own[(63 - l) % 12] ^= 0x55;
            own
        };
        t.is(y, &(0..64).flat_map(each).collect::<Vec<_>>());
    }),
    ("generic_list", |t| {
        let (nodes, y) = (t.out::<u64>(128), t.out::<u32>(64));
        t.run(1, 64, &[nodes.arg(), y.arg(), Arg::U32(9)]);
        let each = |l: u32| {
            let (mut at, mut here, mut s) = (l, true, 0_u32);
            for _ in 0..9 {
                s = s.wrapping_mul(31).wrapping_add(at * if here { 3 } else { 5 });
                at = (at + if here { 1 } else { 7 }) % 64;
                here = !here;
            }
            s
        };
        t.is(y, &(0..64).map(each).collect::<Vec<_>>());
    }),
    ("generic_mixed", |t| {
        let x = u32s(64, 75);
        let (a, y) = (t.put(&x), t.out::<u32>(64));
        t.run(1, 64, &[a.arg(), y.arg()]);
        // The local value is 3, 6, 12, 24; the global one v + 1, twice that, and one less.
        t.is(y, &map(&x, |v| v.wrapping_add(1).wrapping_mul(2).wrapping_sub(1).wrapping_add(24)));
    }),
];
