//! Structures with padding, with fields of bits, and unions.

use super::{Case, map};
use crate::trial::{tame, u32s};
use titan_amd::emu::Arg;

/// The sum of the fields of `Padded` that is made of a number.
fn padded(x: u32, more: u32) -> u32 {
    (x & 0xFF).wrapping_add(x.wrapping_mul(3)).wrapping_add(more).wrapping_add(x >> 1 & 0xFFFF)
}

/// The fields of `Bits`, each with its number of bits.
#[derive(Clone, Copy)]
struct Bits {
    a: u32,
    b: u32,
    c: i32,
    d: u32,
    e: u32,
}

impl Bits {
    fn new(x: u32) -> Bits {
        let signed = |v: u32| (v << 27).cast_signed() >> 27;
        let (a, b, d, e) = (x & 7, x.wrapping_add(1) & 127, x.wrapping_mul(77) & 0x1_FFFF, x >> 3 & 511);
        Bits { a, b, c: signed(x.wrapping_sub(8)), d, e }
    }

    fn sum(self) -> u32 {
        let all = [self.a, self.b * 8, self.c.cast_unsigned().wrapping_mul(1024), self.d * 5, self.e * 3];
        all.iter().fold(0, |s: u32, v| s.wrapping_add(*v))
    }
}

pub(crate) const CASES: &[Case] = &[
    ("structs_padding", |t| {
        let x = u32s(128, 100);
        let (a, s, y) = (t.put(&x), t.out::<u8>(128 * 12), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), s.arg(), y.arg()]);
        let each = |i: usize| match x[i] % 3 {
            // What the other one holds may be read before or after it is increased: each lane of a wave reads first.
            0 => padded(x[i / 64 * 64 + 63 - i % 64], 0),
            1 => padded(x[i], 1),
            _ => padded(x[i], 0),
        };
        t.is(y, &(0..128).map(each).collect::<Vec<_>>());
    }),
    ("structs_padding_local", |t| {
        let x = map(&u32s(128, 101), |v| v & 0x0FFF_FFFF);
        let (a, y) = (t.put(&x), t.out::<u32>(256));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let each = |i: usize| {
            let (p, q) = (x[i ^ 1], x[i]);
            [padded(p.min(q), 0), padded(p.max(q), 0)]
        };
        t.is(y, &(0..128).flat_map(each).collect::<Vec<_>>());
    }),
    ("structs_bits", |t| {
        let x = u32s(128, 102);
        let (a, s, y) = (t.put(&x), t.out::<u64>(128), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), s.arg(), y.arg()]);
        let each = |i: usize| {
            let b = Bits::new(x[i / 64 * 64 + 63 - i % 64]);
            Bits { d: (b.d + 1) & 0x1_FFFF, ..b }.sum()
        };
        t.is(y, &(0..128).map(each).collect::<Vec<_>>());
    }),
    ("structs_bits_local", |t| {
        let x = u32s(64, 103);
        let (a, y) = (t.put(&x), t.out::<u32>(64));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let each = |x: &u32| {
            let b = Bits::new(*x);
            Bits { c: ((b.c - 1) << 27) >> 27, ..b }.sum()
        };
        t.is(y, &x.iter().rev().map(each).collect::<Vec<_>>());
    }),
    ("structs_bits_private", |t| {
        let x = u32s(64, 104);
        let (a, y) = (t.put(&x), t.out::<u32>(64));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let each = |x: u32| {
            let b = Bits::new(x.wrapping_add(x % 4));
            Bits { b: b.b ^ 5, ..b }.sum()
        };
        t.is(y, &map(&x, each));
    }),
    ("structs_unions", |t| {
        let x = tame(128, 105);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        t.is(
            y,
            &map(&x, |x| {
                let u = x.to_bits() ^ 0x8000_0000;
                u.wrapping_add(u >> 16)
            }),
        );
    }),
    ("structs_nested", |t| {
        // Six numbers, a byte and padding that is never written.
        let numbers = tame(40 * 6, 106);
        let record = |(i, r): (usize, &[f32])| {
            let mut bytes: Vec<u8> = r.iter().flat_map(|x| x.to_le_bytes()).collect();
            bytes.push((i % 3 != 1).into());
            bytes
        };
        let bodies = t.out::<u8>(40 * 28);
        for (i, r) in numbers.chunks(6).enumerate() {
            t.set(bodies, i * 28, &record((i, r)));
        }
        let y = t.out::<f32>(64);
        t.run(1, 64, &[bodies.arg(), y.arg(), Arg::U32(40)]);
        let each = |g: usize| {
            let alive = (0..40).map(|i| (g + i) % 40).filter(|i| i % 3 != 1);
            alive.fold(0.0_f32, |s, i| s + (numbers[i * 6] * 2.0 + numbers[i * 6 + 5] - numbers[i * 6 + 1]))
        };
        t.is(y, &(0..64).map(each).collect::<Vec<_>>());
    }),
    ("structs_flags", |t| {
        let x = map(&u32s(128, 107), |v| v % 200);
        let (a, s, y) = (t.put(&x), t.out::<u8>(128), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), s.arg(), y.arg()]);
        let flags = |i: usize| (x[i] % 2 == 1, x[i] > 100);
        let each = |i: usize| {
            let ((a, b), (e, f)) = (flags(i), flags(i / 64 * 64 + (i + 1) % 64));
            let c = e != f;
            u32::from(a && !c) + 2 * u32::from(b || c) + 4 * (x[i] >> (x[i] % 4) & 1)
        };
        t.is(y, &(0..128).map(each).collect::<Vec<_>>());
    }),
];
