//! Numbers of 8 and 16 bits, packed in registers.

use super::{Case, map, zip};
use crate::trial::{Trial, tame, u32s, wild};
use half::{bf16, f16};

/// An 8-bit float of this machine, by its bits of fraction and its bias: there is no negative zero and no infinity, and one NaN.
fn small(code: u8, fraction: i32, bias: i32) -> f32 {
    if code == 0x80 {
        return f32::NAN;
    }
    let (e, f) = (i32::from(code & 0x7F) >> fraction, f32::from(code & ((1 << fraction) - 1)));
    let part = f / (1 << fraction) as f32;
    let size = if e == 0 { part * 2_f32.powi(1 - bias) } else { (1.0 + part) * 2_f32.powi(e - bias) };
    if code & 0x80 == 0 { size } else { -size }
}

/// The nearest 8-bit float by trying all: of two at the same distance the even one.
fn nearest(x: f32, fraction: i32, bias: i32) -> u8 {
    let far = |c: &u8| (f64::from(small(*c, fraction, bias)) - f64::from(x)).abs();
    let codes = (0..=255_u8).filter(|c| *c != 0x80);
    codes.min_by(|a, b| far(a).total_cmp(&far(b)).then((a & 1).cmp(&(b & 1)))).expect("there are some")
}

/// The next 8-bit float towards zero.
fn truncated(x: f32, fraction: i32, bias: i32) -> u8 {
    let codes = (0..=255_u8).filter(|c| *c != 0x80);
    let fits = |c: &u8| {
        let v = small(*c, fraction, bias);
        v.abs() <= x.abs() && (v == 0.0 || v.is_sign_negative() == x.is_sign_negative())
    };
    let size = |c: &u8| small(*c, fraction, bias).abs();
    codes.filter(fits).max_by(|a, b| size(a).total_cmp(&size(b))).expect("zero fits")
}

fn pairs(x: &[u32], y: &[u32], f: impl Fn([u16; 2], [u16; 2]) -> [u16; 2]) -> Vec<u32> {
    let halves = |v: u32| [v as u16, (v >> 16) as u16];
    zip(x, y, |x, y| {
        let [low, high] = f(halves(x), halves(y));
        u32::from(low) | u32::from(high) << 16
    })
}

fn binary(t: &mut Trial<'_>, x: &[u32], y: &[u32], want: &[u32]) {
    let (a, b, z) = (t.put(x), t.put(y), t.out::<u32>(x.len()));
    t.run(x.len() as u32 / 64, 64, &[a.arg(), b.arg(), z.arg()]);
    t.is(z, want);
}

pub(crate) const CASES: &[Case] = &[
    ("small_fp8", |t| {
        let x = map(&tame(256, 110), |x| x * 7.0);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let each = |v: &[f32]| {
            let all = [nearest(v[0], 3, 8), nearest(v[1], 3, 8), nearest(v[2], 2, 16), nearest(v[3], 2, 16)];
            // Without random bits, the stochastic ones are truncated.
            let cut = [truncated(v[0], 3, 8), truncated(v[1], 3, 8), truncated(v[2], 2, 16), truncated(v[3], 2, 16)];
            [u32::from_le_bytes(all), u32::from_le_bytes(cut)]
        };
        t.is(y, &x.chunks(4).flat_map(each).collect::<Vec<_>>());
    }),
    ("small_from_fp8", |t| {
        let x = u32s(128, 111);
        let (a, y) = (t.put(&x), t.out::<f32>(512));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let each = |v: &u32| {
            let b = v.to_le_bytes();
            [small(b[0], 3, 8), small(b[2], 3, 8), small(b[1], 2, 16), small(b[3], 2, 16)]
        };
        t.is(y, &x.iter().flat_map(each).collect::<Vec<_>>());
    }),
    ("small_halves", |t| {
        let random = |seed| map(&tame(256, seed), f16::from_f32);
        let (x, y) = (random(112), random(113));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<f16>(256));
        t.run(2, 64, &[a.arg(), b.arg(), z.arg()]);
        let each = |i: usize| {
            let (a, b) = ([x[2 * i], x[2 * i + 1]], [y[2 * i], y[2 * i + 1]]);
            let mut s = [a[0] * b[0] + a[0], a[1] * b[1] + a[1]];
            if i % 2 == 1 {
                s[1] = b[0];
            }
            [s[0] - a[1], s[1] - a[0]]
        };
        t.is(z, &(0..128).flat_map(each).collect::<Vec<_>>());
    }),
    ("small_mixed", |t| {
        let (x, y) = (map(&tame(128, 114), f16::from_f32), tame(128, 115));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<f16>(256));
        t.run(2, 64, &[a.arg(), b.arg(), z.arg()]);
        let each = |i: usize| {
            let v = f32::from(x[i]) * y[i] + f32::from(x[i ^ 1]);
            [f16::from_f32(v), f16::from_f32(v * 0.5)]
        };
        t.is(z, &(0..128).flat_map(each).collect::<Vec<_>>());
    }),
    ("small_bf16", |t| {
        let x: Vec<f32> = wild(256, 116).into_iter().map(|x| if x.is_finite() { x } else { 1.5 }).collect();
        let (a, y) = (t.put(&x), t.out::<bf16>(256));
        t.run(2, 64, &[a.arg(), y.arg()]);
        t.is(y, &map(&x, bf16::from_f32));
    }),
    ("small_dots", |t| {
        let (x, y) = (u32s(128, 117), u32s(128, 118));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<i32>(128));
        t.run(2, 64, &[a.arg(), b.arg(), z.arg()]);
        let dot = |x: u32, y: u32, bits: u32| -> i32 {
            let part = |v: u32, n: u32| (v << (32 - bits * (n + 1))).cast_signed() >> (32 - bits);
            (0..32 / bits).map(|n| part(x, n) * part(y, n)).sum()
        };
        t.is(z, &zip(&x, &y, |x, y| 7 + dot(x, y, 4) + dot(x, y, 8)));
    }),
    ("small_shorts", |t| {
        let (x, y) = (u32s(128, 119), u32s(128, 120));
        let each = |a: u16, b: u16| {
            let (a, b) = (a.cast_signed(), b.cast_signed());
            a.max(b).wrapping_add(b.wrapping_mul(3)).wrapping_sub(a >> 2).cast_unsigned()
        };
        binary(t, &x, &y, &pairs(&x, &y, |a, b| [each(a[0], b[0]), each(a[1], b[1])]));
    }),
    ("small_bytes", |t| {
        let (x, y) = (u32s(128, 121), u32s(128, 122));
        let want = zip(&x, &y, |x, y| {
            let (a, b) = (x.to_le_bytes(), y.to_le_bytes());
            let mut s: [u8; 4] = std::array::from_fn(|i| a[i].wrapping_add(b[i]) ^ (a[i] & b[3 - i]));
            s[1] = a[3];
            u32::from_le_bytes(s.map(|v| v << 1))
        });
        binary(t, &x, &y, &want);
    }),
    ("small_shuffle", |t| {
        let (x, y) = (u32s(128, 123), u32s(128, 124));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<u32>(512));
        t.run(2, 64, &[a.arg(), b.arg(), z.arg()]);
        let each = |(a, b): (&u32, &u32)| {
            let (p, q) = (a.to_le_bytes(), b.to_le_bytes());
            // The first operand has the higher bytes.
            let picked = u32::from_le_bytes([q[0], q[2], p[0], p[2]]);
            let shifted = ((u64::from(*a) << 32 | u64::from(*b)) >> 24) as u32;
            let swapped = a.swap_bytes().wrapping_add(a << 13 | b >> 19);
            let counted = (a & b).count_ones() + (a | 1).leading_zeros();
            [picked, shifted, swapped, counted.wrapping_add(b.reverse_bits())]
        };
        t.is(z, &x.iter().zip(&y).flat_map(each).collect::<Vec<_>>());
    }),
    ("small_wrap", |t| {
        let short = |seed| map(&u32s(128, seed), |x| x as u16);
        let (x, y) = (short(125), short(126));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), b.arg(), z.arg()]);
        let want = zip(&x, &y, |a, b| {
            let (s, p, d) = (a.wrapping_add(b), a.wrapping_mul(b), a.wrapping_sub(b));
            let (h, c) = (s >> 3, (a ^ b) as u8);
            let e = c.wrapping_add(200);
            let parts = [u32::from(s), u32::from(p) * 3, u32::from(d) * 5, u32::from(h) * 7, u32::from(c) * 11];
            parts.iter().sum::<u32>() + u32::from(e) * 13 + u32::from(s < d)
        });
        t.is(z, &want);
    }),
];
