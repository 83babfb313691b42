//! Buffers with descriptors, loads into the local data share, arguments in registers.

use super::{Case, map};
use crate::trial::u32s;
use titan_amd::emu::Arg;

pub(crate) const CASES: &[Case] = &[
    ("buffers_bounds", |t| {
        // Some lanes are inside, some outside, and one is neither; that the range ends within a word is no reason to read it in part.
        for (n, m) in [(1024, 1024), (456, 1024), (512, 520), (0, 1024), (1024, 0), (460, 444)] {
            let x = u32s(256, 200);
            let (a, y) = (t.put(&x), t.put(&[7_u32; 256]));
            t.run(1, 64, &[a.arg(), y.arg(), Arg::U32(n), Arg::U32(m)]);
            let inside = |i: usize, n: u32| 4 * i < n as usize;
            let loaded = |i: usize| if inside(i, n) { x[i] } else { 0 };
            let want = (0..256).map(|i| if inside(i, m) { loaded(i).wrapping_add(i as u32 % 4 + 1) } else { 7 });
            t.is(y, &want.collect::<Vec<u32>>());
        }
    }),
    ("buffers_bytes", |t| {
        for (n, s) in [(128, 0), (100, 16), (1, 3)] {
            let x = map(&u32s(256, 201), |v| v as u8);
            let (a, y) = (t.put(&x), t.put(&[7_u8; 128]));
            t.run(1, 64, &[a.arg(), y.arg(), Arg::U32(n), Arg::U32(s)]);
            let byte = |i: usize| if i < n as usize { x[i + s as usize] } else { 0 };
            // The lower byte of a short whose first byte is inside.
            let want = (0..128).map(|i| if i < 64 && i < n as usize { byte(i) ^ byte(2 * i) } else { 7 });
            t.is(y, &want.collect::<Vec<u8>>());
        }
    }),
    ("buffers_records", |t| {
        for n in [128, 100, 1] {
            let x = u32s(3 * 128, 202);
            let (a, y) = (t.put(&x), t.put(&[7_u32; 256]));
            t.run(2, 64, &[a.arg(), y.arg(), Arg::U32(n)]);
            let want = (0..256).map(|i| {
                let r = i / 2;
                let changed = i % 2 == 1 && r < n as usize;
                if changed { x[3 * r].wrapping_add(x[3 * r + 2].wrapping_mul(3)) } else { 7 }
            });
            t.is(y, &want.collect::<Vec<u32>>());
        }
    }),
    ("buffers_atomics", |t| {
        for n in [32, 20] {
            let (x, y) = (t.put(&[0_u32; 8]), t.out::<u32>(128));
            t.run(2, 64, &[x.arg(), y.arg(), Arg::U32(n)]);
            // Sixteen lanes for each word; those outside of the range do nothing and get zero.
            t.is(x, &(0..8).map(|w| if 4 * w < n { 80 } else { 0 }).collect::<Vec<u32>>());
            t.is(y, &[0_u32; 128]);
        }
    }),
    ("buffers_to_local", |t| {
        let x = u32s(256, 203);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), y.arg(), Arg::U32(1024)]);
        let each = |i: usize| x[i / 64 * 64 + (63 - i % 64)].wrapping_add(x[2 * i].wrapping_mul(3));
        t.is(y, &(0..128).map(each).collect::<Vec<u32>>());
    }),
    ("buffers_preloaded", |t| {
        let x = u32s(128, 204);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), y.arg(), Arg::U32(77), Arg::U32(1_000_003)]);
        t.is(y, &map(&x, |v| v.wrapping_mul(77).wrapping_add(1_000_003)));
    }),
];
