//! Switches, loops with several ends, conditions that are not evaluated.

use super::{Case, map};
use crate::trial::{Trial, tame, u32s};
use titan_amd::emu::Arg;

/// A function of each number, into another buffer.
fn unary(t: &mut Trial<'_>, x: &[u32], f: impl Fn(u32) -> u32) {
    let (a, y) = (t.put(x), t.out::<u32>(x.len()));
    t.run(x.len() as u32 / 64, 64, &[a.arg(), y.arg()]);
    t.is(y, &map(x, f));
}

/// The same in place.
fn in_place(t: &mut Trial<'_>, x: &[u32], f: impl Fn(u32) -> u32) {
    let a = t.put(x);
    t.run(x.len() as u32 / 64, 64, &[a.arg()]);
    t.is(a, &map(x, f));
}

fn nested(v: u32) -> u32 {
    let mut s = 0;
    for i in 0..6 {
        if i == v % 6 {
            continue;
        }
        for j in i..8 {
            if j * i > v % 17 {
                break;
            }
            s += i * 10 + j;
            if s % 13 == 0 {
                return s;
            }
        }
    }
    s + 1000
}

pub(crate) const CASES: &[Case] = &[
    ("control_switch", |t| {
        in_place(t, &u32s(256, 130), |v| match v % 9 {
            0 => v.wrapping_add(1),
            1 => v.wrapping_mul(3) ^ 0xFF,
            2 => v ^ 0xFF,
            3 => v >> 2,
            5 => v << 1,
            7 => !v,
            _ => 42,
        });
    }),
    ("control_collatz", |t| {
        in_place(t, &map(&u32s(128, 131), |v| v % 500 + 1), |mut n| {
            let mut steps = 0;
            while n != 1 && steps < 50 {
                n = if n % 2 == 1 { 3 * n + 1 } else { n / 2 };
                steps += 1;
            }
            steps
        });
    }),
    ("control_nested", |t| unary(t, &u32s(128, 132), nested)),
    ("control_returns", |t| {
        let x = u32s(192, 133);
        let (a, y) = (t.put(&x), t.put(&[7_u32; 192]));
        t.run(3, 64, &[a.arg(), y.arg(), Arg::U32(150)]);
        let each = |(i, v): (usize, &u32)| match v {
            _ if i >= 150 => 7,
            v if v % 2 == 1 => 1,
            v if v % 5 < 4 => 2,
            v => *v,
        };
        t.is(y, &x.iter().enumerate().map(each).collect::<Vec<_>>());
    }),
    ("control_maybe", |t| {
        unary(t, &u32s(128, 134), |v| {
            let r = v.wrapping_add(7) ^ if v % 2 == 1 { 0x10 } else { 0 };
            r.wrapping_add(if v % 3 == 0 { v.wrapping_mul(2) } else { 0 })
        });
    }),
    ("control_conditions", |t| {
        let (x, y) = (map(&u32s(128, 135), |v| v % 100), map(&u32s(80, 136), |v| v % 8));
        let (a, b) = (t.put(&x), t.put(&y));
        t.run(2, 64, &[a.arg(), b.arg(), Arg::U32(80)]);
        let each = |at: u32| {
            let v = y.get(at as usize);
            let (a, b) = (v.is_some_and(|v| *v > 3), v.is_none_or(|v| v % 2 == 1));
            u32::from(a)
                + 2 * u32::from(b)
                + 4 * if a {
                    at
                } else if b {
                    5
                } else {
                    6
                }
        };
        t.is(a, &map(&x, each));
    }),
    ("control_search", |t| {
        let mut x = map(&u32s(100, 137), |v| v % 1000);
        x.sort_unstable();
        x.dedup();
        let keys = map(&u32s(128, 138), |v| v % 1000);
        let (a, k, y) = (t.put(&x), t.put(&keys), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), k.arg(), y.arg(), Arg::U32(x.len() as u32)]);
        t.is(y, &map(&keys, |k| x.binary_search(&k).map_or(u32::MAX, |i| i as u32)));
    }),
    ("control_last", |t| {
        unary(t, &u32s(128, 139), |v| {
            let (mut a, mut b) = (0_u32, 1_u32);
            for _ in 0..=v % 20 {
                (a, b) = (b, a + b);
            }
            a.wrapping_mul(1000).wrapping_add(b)
        });
    }),
    ("control_float", |t| {
        let x = map(&tame(128, 140), f32::abs);
        let (a, y) = (t.put(&x), t.out::<f32>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let each = |v: f32| {
            let (mut lo, mut hi) = (0.0_f32, if v > 1.0 { v } else { 1.0 });
            for _ in 0..30 {
                let mid = 0.5 * (lo + hi);
                if mid * mid <= v { lo = mid } else { hi = mid }
            }
            lo
        };
        t.is(y, &map(&x, each));
    }),
];
