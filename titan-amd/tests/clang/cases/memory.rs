//! Bytes, shorts, structs, tables, private arrays.

use super::{Case, map};
use crate::trial::{Element, Trial, tame, u32s, u64s};
use titan_amd::emu::Arg;

fn unary<T: Element, U: Element>(t: &mut Trial<'_>, x: &[T], f: impl Fn(T) -> U) {
    let (a, y) = (t.put(x), t.out::<U>(x.len()));
    t.run(x.len() as u32 / 64, 64, &[a.arg(), y.arg()]);
    t.is(y, &map(x, f));
}

fn u8s(n: usize, seed: u64) -> Vec<u8> {
    map(&u32s(n, seed), |x| (x ^ x >> 9) as u8)
}

fn item(bytes: &[u8]) -> Vec<u8> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let part = |i: usize| i16::from_le_bytes(bytes[16 + 2 * i..18 + 2 * i].try_into().unwrap());
    let id = word(0).wrapping_add(i32::from(part(1)).cast_unsigned());
    let tag = u64::from_le_bytes(bytes[8..16].try_into().unwrap()) ^ u64::from(id);
    let mut out = id.to_le_bytes().to_vec();
    out.extend((f32::from_bits(word(4)) * 0.5).to_le_bytes());
    out.extend(tag.to_le_bytes());
    for p in [part(0), part(1), part(2), part(0).wrapping_add(part(2))] {
        out.extend(p.to_le_bytes());
    }
    out
}

fn settled(t: &mut Trial<'_>, mode: u8, flag: u8) {
    let x = tame(64, 9);
    let (a, y) = (t.put(&x), t.out::<f32>(64));
    let setting = [&0.75_f32.to_le_bytes()[..], &(-5_i32).to_le_bytes(), &[mode, 0, 0, 0]].concat();
    t.run(1, 64, &[a.arg(), y.arg(), Arg::Bytes(setting), Arg::Bytes(vec![flag])]);
    let sign = if mode == 3 && flag != 0 { 1.0 } else { -1.0 };
    t.is(y, &map(&x, |x| sign * (x * 0.75 - 5.0)));
}

const TABLE: [u32; 16] = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3];

/// A permutation of `n` numbers.
fn permutation(n: u32) -> Vec<u32> {
    (0..n).map(|i| (i * 37 + 11) % n).collect()
}

pub(crate) const CASES: &[Case] = &[
    ("bytes", |t| unary(t, &u8s(256, 1), |x: u8| x.wrapping_mul(3).wrapping_add(1))),
    ("signed_bytes", |t| unary(t, &map(&u8s(256, 2), u8::cast_signed), |x: i8| i32::from(x) * 2)),
    ("shorts", |t| unary(t, &map(&u32s(256, 3), |x| x as i16), |x: i16| x.wrapping_sub(1000))),
    ("unsigned_shorts", |t| unary(t, &map(&u32s(256, 4), |x| x as u16), |x: u16| u32::from(x) * 65537)),
    ("pixels", |t| {
        let x = u8s(512, 5);
        let (a, y) = (t.put(&x), t.out::<u8>(512));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let pixel = |p: &[u8]| {
            let grey = ((u32::from(p[0]) * 77 + u32::from(p[1]) * 151 + u32::from(p[2]) * 28) >> 8) as u8;
            [grey, grey, grey, p[3]]
        };
        t.is(y, &x.chunks(4).flat_map(pixel).collect::<Vec<u8>>());
    }),
    ("structs", |t| {
        let x: Vec<u8> = u64s(192, 6).iter().flat_map(|x| (x & !(0xFF << 56)).to_le_bytes()).collect();
        let (a, y) = (t.put(&x), t.out::<u8>(x.len()));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let want: Vec<u8> = x.chunks(24).flat_map(item).collect();
        let float = |bytes: &[u8]| f32::from_bits(u32::from_le_bytes(bytes[4..8].try_into().unwrap()));
        assert!(want.chunks(24).all(|w| !float(w).is_nan()), "NaNs have no certain bits");
        t.is(y, &want);
    }),
    ("by_value", |t| {
        settled(t, 3, 1);
        settled(t, 3, 0);
        settled(t, 2, 255);
    }),
    ("triples", |t| {
        let x = tame(192, 7);
        let (a, y) = (t.put(&x), t.out::<f32>(192));
        t.run(1, 64, &[a.arg(), y.arg()]);
        t.is(y, &x.chunks(3).flat_map(|c| [c[2], c[0], c[1]]).collect::<Vec<f32>>());
    }),
    ("gather", |t| {
        let (index, x) = (permutation(128), tame(128, 8));
        let (i, a, y) = (t.put(&index), t.put(&x), t.out::<f32>(128));
        t.run(2, 64, &[i.arg(), a.arg(), y.arg()]);
        t.is(y, &map(&index, |i| x[i as usize]));
    }),
    ("scatter", |t| {
        let (index, x) = (permutation(128), tame(128, 8));
        let (i, a, y) = (t.put(&index), t.put(&x), t.out::<f32>(128));
        t.run(2, 64, &[i.arg(), a.arg(), y.arg()]);
        let mut want = vec![0.0; 128];
        index.iter().zip(&x).for_each(|(i, x)| want[*i as usize] = *x);
        t.is(y, &want);
    }),
    ("stencil", |t| {
        let x = tame(192, 10);
        let (a, y) = (t.put(&x), t.out::<f32>(192));
        t.run(3, 64, &[a.arg(), y.arg(), Arg::I32(192)]);
        let at = |i: usize| x.get(i).copied().unwrap_or(0.0);
        let want: Vec<f32> =
            (0..192).map(|i: usize| at(i.wrapping_sub(1)) * 0.25 + x[i] * 0.5 + at(i + 1) * 0.25).collect();
        t.is(y, &want);
    }),
    ("table", |t| unary(t, &u32s(128, 11), |x: u32| TABLE[(x & 15) as usize].wrapping_mul(x))),
    ("private_array", |t| {
        unary(t, &map(&u32s(64, 12), |x| x % 100_000), |v: u32| {
            let mut stack = [0_u32; 24];
            (0..24).for_each(|i| stack[((i * 7 + v) % 24) as usize] = i * v);
            (0..24).fold(0_u32, |sum, i| sum.wrapping_mul(31).wrapping_add(stack[((v >> (i & 7)) % 24) as usize]))
        });
    }),
    ("strided", |t| {
        let x = u32s(1000, 13);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), y.arg(), Arg::U32(1000), Arg::U32(128)]);
        let sum = |g: usize| x.iter().skip(g).step_by(128).fold(0_u32, |s, x| s.wrapping_add(*x));
        t.is(y, &(0..128).map(sum).collect::<Vec<u32>>());
    }),
    ("far", |t| {
        let x = u32s(2000, 14);
        let (a, y) = (t.put(&x), t.out::<u32>(64));
        t.run(1, 64, &[a.arg(), y.arg(), Arg::I64(1900)]);
        t.is(y, &x[1900..1964]);
    }),
    ("uniform_loads", |t| {
        let x = u32s(20, 15);
        let (a, y) = (t.put(&x), t.out::<u32>(192));
        t.run(3, 64, &[a.arg(), y.arg()]);
        let sum = x.iter().zip(1..).fold(0_u32, |s, (x, i)| s.wrapping_add(x.wrapping_mul(i)));
        t.is(y, &(0..192).map(|i| sum.wrapping_add(x[i / 64])).collect::<Vec<u32>>());
    }),
];
