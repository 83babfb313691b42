//! Kernels in LLVM's own language: undefined values, integers of odd widths.

use super::{Case, flat, map};
use crate::trial::{tame, u32s, u64s};

fn low48(v: u64) -> i64 {
    (v << 16).cast_signed() >> 16
}

pub(crate) const CASES: &[Case] = &[
    ("ir_undefined_half", |t| {
        let x = map(&u32s(128, 190), |v| v as u16);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        t.is(y, &map(&x, |v| u32::from(v.wrapping_add(5).wrapping_mul(v)) * 0x1_0001));
    }),
    ("ir_undefined_choice", |t| {
        let x = map(&u32s(128, 191), |v| v % 2000);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        t.is(y, &map(&x, |v| if v < 1000 { (v * 3) | 1 } else { 17 }));
    }),
    ("ir_odd_integers", |t| {
        let x = u64s(128, 192);
        let (a, y) = (t.put(&x), t.out::<u64>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let each = |v: u64| {
            let short = ((v.wrapping_add(99) << 40).cast_signed() >> 40).cast_unsigned();
            let g = low48(v.wrapping_mul(12345) ^ short) >> 5;
            (g.cast_unsigned() & 0x7F).wrapping_add(g.cast_unsigned())
        };
        t.is(y, &map(&x, each));
    }),
    ("ir_three_halves", |t| {
        // The fourth half of each is never written.
        let x = map(&u32s(64 * 3, 193), |v| v as u16);
        let (a, y) = (t.out::<u8>(64 * 8), t.out::<u32>(64));
        for (i, v) in x.chunks(3).enumerate() {
            let bytes: Vec<u8> = v.iter().flat_map(|h| h.to_le_bytes()).collect();
            t.set(a, 8 * i, &bytes);
        }
        t.run(1, 64, &[a.arg(), y.arg()]);
        let each = |v: &[u16]| {
            let s = [v[0].wrapping_add(v[2]) >> 1, v[1].wrapping_add(v[0]) >> 2, v[2].wrapping_add(v[1]) >> 3];
            u32::from(s[0]) + u32::from(s[1]) * 3 + u32::from(s[2]) * 5
        };
        t.is(y, &x.chunks(3).map(each).collect::<Vec<_>>());
    }),
    ("ir_saturating", |t| {
        let (x, y) = (u32s(128, 194), u32s(128, 195));
        let (a, b, z) = (t.put(&x), t.put(&y), t.out::<u32>(512));
        t.run(2, 64, &[a.arg(), b.arg(), z.arg()]);
        let want = flat(&x, &y, |a, b| {
            let half = |at: u32| u32::from(((a >> at) as u16).saturating_add((b >> at) as u16)) << at;
            let s = a.cast_signed().saturating_sub(b.cast_signed()).cast_unsigned();
            [half(0), s, half(0) | half(16), a.checked_mul(b).unwrap_or(7)]
        });
        t.is(z, &want);
    }),
    ("ir_conversions", |t| {
        let x: Vec<f32> = tame(128, 196).iter().enumerate().map(|(i, v)| v * [1.0, 1e5, 1e9][i % 3]).collect();
        let (a, y, z) = (t.put(&x), t.out::<u32>(128), t.out::<f32>(128));
        t.run(2, 64, &[a.arg(), y.arg(), z.arg()]);
        t.is(y, &map(&x, |v| v as u32 ^ i32::from(v as i16).cast_unsigned()));
        t.is(z, &map(&x, |v| v * 2_f32.powi((v as u32 & 15) as i32)));
    }),
    ("ir_bits", |t| {
        let x = u32s(128, 197);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let each = |v: u32| {
            let z = u32::from((v as u16).reverse_bits());
            let n = v & 31;
            let f = if n == 0 { v } else { v << n | z >> (32 - n) };
            let b = v >> 28;
            f.wrapping_add(((b * b) << 28).cast_signed().wrapping_shr(28).cast_unsigned())
        };
        t.is(y, &map(&x, each));
    }),
    ("ir_atomics", |t| {
        let (x, y) = (t.put(&[5_u32, 3, 0xFF, 0xF0F0, 100, 0, 0, 0]), t.out::<u32>(64));
        t.run(1, 64, &[x.arg(), y.arg()]);
        // Nothing but the results that do not depend on the order of lanes: an even number of negations changes nothing.
        let xor = (0..64).fold(0xFF, |a, l| a ^ l);
        t.is(x, &[63, (3 + 64) % 10, xor, 0xF0F0, 100 + 63 * 32, 0, 32.0_f32.to_bits(), 0]);
        t.holds(y, &[0_u32; 64], |got, _| got < 10);
    }),
];
