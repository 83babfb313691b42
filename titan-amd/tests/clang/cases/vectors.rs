//! Vectors whose elements are chosen when the kernel runs.

use super::{Case, map};
use crate::trial::{tame, u32s, u64s};
use titan_amd::emu::Arg;

pub(crate) const CASES: &[Case] = &[
    ("vectors_extract", |t| {
        for at in [0, 6] {
            let x = u32s(64 * 8, 170);
            let (a, y) = (t.put(&x), t.out::<u32>(64));
            t.run(1, 64, &[a.arg(), y.arg(), Arg::U32(at)]);
            let each = |v: &[u32]| v[at as usize % 8].wrapping_add(v[(at as usize + 3) % 8]);
            t.is(y, &x.chunks(8).map(each).collect::<Vec<_>>());
        }
    }),
    ("vectors_insert", |t| {
        for at in [1_usize, 5] {
            let x = u32s(64, 171);
            let (a, y) = (t.put(&x), t.out::<u32>(64 * 8));
            t.run(1, 64, &[a.arg(), y.arg(), Arg::U32(at as u32)]);
            let each = |x: &u32| {
                let mut v = [7; 8];
                v[at % 8] = *x;
                v[(at + 5) % 8] += 1;
                v
            };
            t.is(y, &x.iter().flat_map(each).collect::<Vec<_>>());
        }
    }),
    ("vectors_own_index", |t| {
        let x = u32s(64 * 16, 172);
        let (a, y) = (t.put(&x), t.out::<u32>(64));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let each = |v: &[u32]| {
            let (mut v, at) = (v.to_vec(), v[0] as usize % 16);
            v[at] = v[at].wrapping_add(100);
            v[(at + 1) % 16].wrapping_add(v[at].wrapping_mul(3))
        };
        t.is(y, &x.chunks(16).map(each).collect::<Vec<_>>());
    }),
    ("vectors_loop", |t| {
        let x = u32s(64 * 16, 173);
        let (a, y) = (t.put(&x), t.out::<u32>(64));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let each = |v: &[u32]| {
            let (mut v, mut s) = (v.to_vec(), 0_u32);
            for i in 0..16 {
                v[i] = v[(i * 7 + 1) % 16].wrapping_add(i as u32);
                s = s.wrapping_mul(3).wrapping_add(v[i]);
            }
            s
        };
        t.is(y, &x.chunks(16).map(each).collect::<Vec<_>>());
    }),
    ("vectors_wide", |t| {
        let x = u64s(64 * 4, 174);
        let (a, y) = (t.put(&x), t.out::<u64>(64));
        t.run(1, 64, &[a.arg(), y.arg(), Arg::U32(2)]);
        let each = |(l, v): (usize, &[u64])| {
            let mut v = v.to_vec();
            v[2] = v[l % 4].wrapping_add(1);
            v[(2 + l) % 4]
        };
        t.is(y, &x.chunks(4).enumerate().map(each).collect::<Vec<_>>());
    }),
    ("vectors_narrow", |t| {
        let x = map(&u32s(64 * 8, 175), |v| v as u16);
        let (a, y) = (t.put(&x), t.out::<u16>(64));
        t.run(1, 64, &[a.arg(), y.arg(), Arg::U32(5)]);
        let each = |(l, v): (usize, &[u16])| {
            let mut v = v.to_vec();
            v[5] = v[v[1] as usize % 8];
            v[6].wrapping_add(v[l % 8])
        };
        t.is(y, &x.chunks(8).enumerate().map(each).collect::<Vec<_>>());
    }),
    ("vectors_uniform", |t| {
        let c = [3_u32, 10, 20, 30, 40, 50, 60, 70];
        let (x, b) = (t.out::<u32>(64), t.put(&c));
        t.run(1, 64, &[x.arg(), b.arg(), Arg::U32(4)]);
        let mut v = c;
        v[4] = v[5] + 5;
        t.is(x, &[v[7] + v[4]; 64]);
    }),
    ("vectors_swizzle", |t| {
        let x = tame(256, 176);
        let (a, y) = (t.put(&x), t.out::<f32>(256));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let each = |v: &[f32]| {
            // `xz` becomes `wy`.
            let v = [v[3], v[1], v[1], v[3]];
            [v[2] * 2.0, v[1] * 2.0, v[0] * 2.0, v[3]]
        };
        t.is(y, &x.chunks(4).flat_map(each).collect::<Vec<_>>());
    }),
];
