//! Less usual parts of the language and of the machine.

use super::{Case, map, zip};
use crate::trial::{Trial, tame, u32s, u64s, wild};

/// Each lane's result from the values of its wave.
fn lanes(t: &mut Trial<'_>, seed: u64, f: impl Fn(&[u32], usize) -> u32) {
    let x = u32s(128, seed);
    let (a, y) = (t.put(&x), t.out::<u32>(128));
    t.run(2, 64, &[a.arg(), y.arg()]);
    let want = x.chunks(64).flat_map(|wave| (0..64).map(|l| f(wave, l)).collect::<Vec<_>>());
    t.is(y, &want.collect::<Vec<u32>>());
}

/// A sum of products with small numbers.
fn weighted(terms: &[(u32, u32)]) -> u32 {
    terms.iter().fold(0, |s, (factor, v)| s.wrapping_add(factor.wrapping_mul(*v)))
}

fn reversed(l: usize) -> usize {
    (0..5).fold(0, |r, bit| r | (l >> bit & 1) << (4 - bit))
}

/// The words of a structure, and the bytes behind them.
fn filled(v: u32) -> (Vec<u32>, [u8; 3]) {
    ((0..37).map(|i| v.wrapping_add(i * i)).collect(), [v as u8, (v >> 8) as u8, (v >> 16) as u8])
}

/// A number in 1/2..1 and the power of two, of a number that is finite.
fn parts(x: f32) -> (f32, i32) {
    if x == 0.0 {
        return (x, 0);
    }
    let (mut m, mut e) = (f64::from(x), 0);
    while m.abs() >= 1.0 {
        (m, e) = (m / 2.0, e + 1);
    }
    while m.abs() < 0.5 {
        (m, e) = (m * 2.0, e - 1);
    }
    (m as f32, e)
}

/// The class of a number as a bit: signalling and quiet NaN, then from the smallest to the largest.
fn class(x: f32) -> u32 {
    use std::num::FpCategory::{Infinite, Nan, Normal, Subnormal, Zero};
    let negative = x.is_sign_negative();
    let bit = match (x.classify(), negative) {
        (Nan, _) if x.to_bits() & 1 << 22 == 0 => 0,
        (Nan, _) => 1,
        (Infinite, true) => 2,
        (Normal, true) => 3,
        (Subnormal, true) => 4,
        (Zero, true) => 5,
        (Zero, false) => 6,
        (Subnormal, false) => 7,
        (Normal, false) => 8,
        (Infinite, false) => 9,
    };
    1 << bit
}

pub(crate) const CASES: &[Case] = &[
    ("machine_swizzles", |t| {
        lanes(t, 210, |x, l| {
            let (group, n) = (l & 32, l & 31);
            let right = n & 1 | ((n + 31) % 32) & !1;
            weighted(&[
                (1, x[group | reversed(n)]),
                (3, x[group | reversed(n) >> 2 | n & 3]),
                (5, x[group | ((n + 3) % 32)]),
                (7, x[group | right]),
                // 1, 2, 3, 0.
                (11, x[l & !3 | (l + 1) & 3]),
            ])
        });
    }),
    ("machine_rows", |t| {
        lanes(t, 211, |x, l| {
            let (row, n) = (l & 48, l & 15);
            weighted(&[
                (1, x[row | (15 - n)]),
                (3, x[l & 56 | (7 - (l & 7))]),
                (5, x[row | ((n + 13) % 16)]),
                (7, x[row | 3]),
                (11, if n + 4 < 16 { x[l + 4] } else { 7 }),
                (
                    13,
                    if l / 16 % 2 == 1 {
                        9
                    } else if n > 0 {
                        x[l - 1]
                    } else {
                        0
                    },
                ),
            ])
        });
    }),
    ("machine_pressure", |t| {
        let n = 997;
        let x = u32s(n, 212);
        let (a, y) = (t.put(&x), t.out::<u32>(1024));
        t.run(1, 1024, &[a.arg(), y.arg(), titan_amd::emu::Arg::U32(n as u32)]);
        let each = |g: usize| {
            let v: Vec<u32> = (0..160).map(|i| x[(g * 3 + i * 7) % n]).collect();
            let s = v.iter().rev().fold(0_u32, |s, v| s.wrapping_mul(33).wrapping_add(*v));
            (0..160).fold(s, |s, i| s ^ v[i * 77 % 160] >> (i % 5))
        };
        t.is(y, &(0..1024).map(each).collect::<Vec<_>>());
    }),
    ("machine_full", |t| {
        let x = u32s(512, 213);
        let (a, y) = (t.put(&x), t.out::<u32>(256));
        t.run(1, 256, &[a.arg(), y.arg()]);
        let word = |i: usize| x[i % 512].wrapping_add(i as u32);
        let each =
            |l: usize| (0..64).fold(0_u32, |s, i| s.wrapping_mul(5).wrapping_add(word((l * 257 + i * 1023) % 16384)));
        t.is(y, &(0..256).map(each).collect::<Vec<_>>());
    }),
    ("machine_dynamic", |t| {
        let x = u32s(192, 214);
        let (a, y) = (t.put(&x), t.out::<u32>(192));
        t.run_all([1, 1, 1], [192, 1, 1], 192 * 4, &[a.arg(), y.arg()]);
        let each = |l: usize| x[191 - l].wrapping_add(x[191 - (l ^ 1)]);
        t.is(y, &(0..192).map(each).collect::<Vec<_>>());
    }),
    ("machine_axes", |t| {
        let y = t.out::<u32>(8 * 12 * 4);
        t.run_all([2, 3, 2], [4, 4, 2], 0, &[y.arg()]);
        let each = |i: u32| {
            let (x, y, z) = (i % 8, i / 8 % 12, i / 96);
            x | y << 8 | z << 16 | (x % 4 + y % 4 + z % 2) << 24
        };
        t.is(y, &(0..384).map(each).collect::<Vec<_>>());
    }),
    ("machine_variables", |t| {
        let x = u32s(384, 215);
        let (a, y) = (t.put(&x), t.out::<u32>(385));
        t.run(6, 64, &[a.arg(), y.arg()]);
        let weights = [3, 1, 4, 1, 5, 9, 2, 6];
        let each = |i: usize| weights[x[i] as usize % 8] + [100, 200, 300, 400][i / 64 % 4] + 300;
        let values: Vec<u32> = (0..384).map(each).collect();
        t.is(y, &[vec![values.iter().sum()], values].concat());
    }),
    ("machine_wide", |t| {
        let x = u64s(256, 216);
        let (a, y) = (t.put(&x), t.out::<u64>(256));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let each = |p: &[u64]| {
            let (a, b) = (u128::from(p[0]) << 64 | u128::from(p[1]), u128::from(p[1]) * u128::from(p[0]));
            let by = p[0] % 127;
            let r = a.wrapping_add(b) ^ a >> by ^ b << (127 - by);
            let r = if a < b { r.wrapping_sub(a.wrapping_mul(b)) } else { r };
            [r as u64, (r >> 64) as u64]
        };
        t.is(y, &x.chunks(2).flat_map(each).collect::<Vec<_>>());
    }),
    ("machine_arguments", |t| {
        let x = map(&u32s(64, 217), |v| v % 1_000_000);
        let (a, y) = (t.put(&x), t.out::<u64>(64));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let each = |v: u32| {
            let w = u64::from(v);
            let terms = [
                (1, w),
                (3, w << 33),
                (5, w & 0xFF),
                (7, w & 0xFFFF),
                (2, w % 64),
                (4, w % 32),
                (1, w),
                (11, u64::from(v.wrapping_add(3))),
                (13, w ^ 1),
                (17, w.wrapping_mul(w)),
                // The second, third and fourth of those that are made from the first four.
                (1, u64::from(v.wrapping_add(2))),
                (19, u64::from(v.wrapping_add(2).wrapping_mul(2))),
                (23, w),
                (29, w ^ 5),
                (31, u64::from(v.wrapping_add(3) ^ 5)),
                (37, !w),
                (1, u64::from(v.wrapping_add(5))),
            ];
            terms.iter().fold(0_u64, |s, (k, v)| s.wrapping_add(v.wrapping_mul(*k)))
        };
        t.is(y, &map(&x, each));
    }),
    ("machine_copies", |t| {
        let x = u32s(32, 218);
        let (a, z, y) = (t.put(&x), t.out::<u8>(32 * 152), t.out::<u32>(32));
        t.run(1, 32, &[a.arg(), z.arg(), y.arg()]);
        let each = |l: usize| {
            let (words, tail) = filled(x[(l + 1) % 32]);
            let own = filled(x[l]).0;
            // 81 bytes: twenty words, and one byte of the next.
            let last = own[20] & !0xFF | words[25] & 0xFF;
            words[5].wrapping_add(last.wrapping_mul(3)).wrapping_add(own[36]).wrapping_add(tail[2].into())
        };
        t.is(y, &(0..32).map(each).collect::<Vec<_>>());
    }),
    ("machine_hints", |t| {
        let x = u32s(128, 219);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        t.is(y, &(0..128).map(|i| x[i].wrapping_add(x[i ^ 1])).collect::<Vec<_>>());
    }),
    ("machine_scopes", |t| {
        let x = u32s(128, 220);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        t.is(y, &map(&x, |v| v.wrapping_add(v.wrapping_mul(2)).wrapping_add(v & 0xFFFF)));
        t.is(a, &map(&x, |v| v & 0xFFFF));
    }),
    ("machine_local_floats", |t| {
        let x = tame(256, 221);
        let (a, y, z) = (t.put(&x), t.out::<f32>(3), t.out::<f64>(1));
        t.run(1, 256, &[a.arg(), y.arg(), z.arg()]);
        let (least, most) = x.iter().fold((1e30, -1e30), |(l, m): (f32, f32), v| (l.min(*v), m.max(*v)));
        t.is(y, &[least, most, 16.0 * 120.0]);
        t.is(z, &[32.0 * 28.0]);
    }),
    ("machine_bytes", |t| {
        let (x, z) = (u32s(64, 222), u32s(64, 223));
        let (a, b, y) = (t.put(&x), t.put(&z), t.out::<u32>(512));
        t.run(1, 64, &[a.arg(), b.arg(), y.arg()]);
        let each = |a: u32, b: u32| {
            let both = u64::from(a) << 32 | u64::from(b);
            let bytes = both.to_le_bytes();
            let (p, q) = (a.to_le_bytes(), b.to_le_bytes());
            let pairs = || p.iter().zip(q);
            let sad: u32 = pairs().map(|(p, q)| u32::from(p.abs_diff(q))).sum();
            let masked: u32 = pairs().filter(|(_, q)| *q != 0).map(|(p, q)| u32::from(p.abs_diff(q))).sum();
            let mean: Vec<u8> = pairs().map(|(p, q)| (u16::from(*p) + u16::from(q)).div_ceil(2) as u8).collect();
            [
                u32::from_le_bytes([bytes[4], 0, bytes[2], bytes[7]]),
                (both >> 24) as u32,
                (both >> 13) as u32,
                sad + 5,
                masked + 5,
                u32::from_le_bytes([mean[0], mean[1], mean[2], mean[3]]),
                a >> 5 & 0x7FF,
                ((a >> 3) << 23).cast_signed().wrapping_shr(23).cast_unsigned(),
            ]
        };
        t.is(y, &zip(&x, &z, each).concat());
    }),
    ("machine_parts", |t| {
        let x: Vec<f32> = wild(200, 224).into_iter().filter(|v| v.is_finite() && *v != 0.0).take(64).collect();
        let (a, y, z) = (t.put(&x), t.out::<f32>(256), t.out::<i32>(128));
        t.run(1, 64, &[a.arg(), y.arg(), z.arg()]);
        let floats = |l: usize| {
            let (v, w, u) = (x[l], x[l ^ 1], x[l ^ 2]);
            let median = v.max(w).min(v.min(w).max(u));
            let fract = (f64::from(v) - f64::from(v).floor()) as f32;
            let scaled = (f64::from(u) * 2_f64.powi(l as i32 % 7 - 3)) as f32;
            [median, fract.min(f32::from_bits(0x3F7F_FFFF)), parts(w).0, scaled]
        };
        let numbers = |l: usize| {
            let is = |v: f32, mask: u32| i32::from(class(v) & mask != 0);
            [parts(x[l ^ 1]).1, is(x[l], 0x0F8) + 2 * is(x[l ^ 1], 0x207)]
        };
        t.is(y, &(0..64).flat_map(floats).collect::<Vec<_>>());
        t.is(z, &(0..64).flat_map(numbers).collect::<Vec<_>>());
    }),
    ("machine_clock", |t| {
        let x = u32s(64, 225);
        let (a, y) = (t.put(&x), t.out::<u32>(64));
        t.run(1, 64, &[a.arg(), y.arg()]);
        t.is(y, &map(&x, |v| v.wrapping_mul(5).wrapping_add(1)));
    }),
    ("machine_agreed", |t| {
        for turns in [0, 4, 8] {
            let mut x = u32s(128, 226);
            x[0] = turns;
            let (a, y) = (t.put(&x), t.out::<u32>(128));
            t.run(1, 128, &[a.arg(), y.arg()]);
            let mut now = x.clone();
            for i in 0..turns as usize {
                now = (0..128).map(|l| now[(l + 1 + i) % 128].wrapping_mul(3).wrapping_add(l as u32)).collect();
            }
            t.is(y, &now);
        }
    }),
];
