//! Accesses whose addresses are multiples of nothing.

use super::{Case, map};
use crate::trial::{tame, u32s, u64s};

fn word(b: &[u8]) -> u32 {
    u32::from_le_bytes(b[..4].try_into().expect("four bytes"))
}

fn long(b: &[u8]) -> u64 {
    u64::from_le_bytes(b[..8].try_into().expect("eight bytes"))
}

fn bytes(n: usize, seed: u64) -> Vec<u8> {
    map(&u32s(n, seed), |v| v as u8)
}

pub(crate) const CASES: &[Case] = &[
    ("unaligned_records", |t| {
        let x = bytes(128 * 15, 90);
        let (a, y) = (t.put(&x), t.out::<u64>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let fields = |r: &[u8]| (r[0], word(&r[1..]), u16::from_le_bytes([r[5], r[6]]), long(&r[7..]));
        let sum = |r: &[u8]| {
            let (a, b, c, d) = fields(r);
            u64::from(u32::from(a).wrapping_add(b).wrapping_add(c.into())).wrapping_add(d)
        };
        t.is(y, &x.chunks(15).map(sum).collect::<Vec<_>>());
        let changed = |r: &[u8]| {
            let (a, b, c, d) = fields(r);
            let mut out = vec![a];
            out.extend(b.wrapping_add(1).to_le_bytes());
            out.extend((!c).to_le_bytes());
            out.extend(d.wrapping_mul(3).to_le_bytes());
            out
        };
        t.is(a, &x.chunks(15).flat_map(changed).collect::<Vec<_>>());
    }),
    ("unaligned_stream", |t| {
        let x = bytes(128 + 4, 91);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let each = |i: usize| word(&x[i..]).wrapping_add(u16::from_le_bytes([x[i + 1], x[i + 2]]).into());
        t.is(y, &(0..128).map(each).collect::<Vec<_>>());
    }),
    ("unaligned_stores", |t| {
        let x = u64s(128, 92);
        let (y, a) = (t.out::<u8>(128 * 11), t.put(&x));
        t.run(2, 64, &[y.arg(), a.arg()]);
        let each = |(i, v): (usize, &u64)| {
            let mut out = v.to_le_bytes().to_vec();
            out.extend(((v >> 7) as u16).to_le_bytes());
            out.push((i % 64) as u8);
            out
        };
        t.is(y, &x.iter().enumerate().flat_map(each).collect::<Vec<_>>());
    }),
    ("unaligned_local", |t| {
        let x = bytes(64 * 9, 93);
        let (a, y) = (t.put(&x), t.out::<u64>(64));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let mut s = x.clone();
        s.extend(0..8);
        for l in 0..64 {
            let changed = word(&s[l * 9 + 2..]).wrapping_add(5).to_le_bytes();
            s[l * 9 + 2..l * 9 + 6].copy_from_slice(&changed);
        }
        let each = |l: usize| long(&s[l * 9 + 1..]) ^ u64::from(word(&s[l * 9 + 5..]));
        t.is(y, &(0..64).map(each).collect::<Vec<_>>());
    }),
    ("unaligned_private", |t| {
        let x = bytes(64 + 40, 94);
        let (a, y) = (t.put(&x), t.out::<u64>(64));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let each = |i: usize| {
            let mut own = x[i..i + 40].to_vec();
            let at = x[i] as usize % 24;
            own[at..at + 4].copy_from_slice(&0x0102_0304_u32.to_le_bytes());
            long(&own[at / 2..]).wrapping_add(long(&own[24..]))
        };
        t.is(y, &(0..64).map(each).collect::<Vec<_>>());
    }),
    ("unaligned_vectors", |t| {
        let x = tame(64 * 5, 95);
        let (a, y) = (t.put(&x), t.put(&[9.0_f32; 64 * 5]));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let each = |r: &[f32]| [2.0 * r[1], 2.0 * r[2], 2.0 * r[3], 2.0 * r[4], 9.0];
        t.is(y, &x.chunks(5).flat_map(each).collect::<Vec<_>>());
    }),
    ("unaligned_copies", |t| {
        let x = bytes(64 * 23 + 8, 96);
        let (a, y) = (t.put(&x), t.out::<u8>(64 * 23));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let each = |l: usize| [&x[23 * l + 1..][..13], &x[23 * l + 3..][..7], &[l as u8; 3]].concat();
        t.is(y, &(0..64).flat_map(each).collect::<Vec<_>>());
    }),
];
