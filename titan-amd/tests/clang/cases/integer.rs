//! Integers of 32 and 64 bits.

use super::{Case, flat, map};
use crate::trial::{Element, Trial, u32s, u64s};
use titan_amd::emu::Arg;

/// Two inputs, `N` results of each pair.
fn binary<T: Element, U: Element, const N: usize>(t: &mut Trial<'_>, x: &[T], y: &[T], f: impl Fn(T, T) -> [U; N]) {
    let (a, b, z) = (t.put(x), t.put(y), t.out::<U>(x.len() * N));
    t.run(x.len() as u32 / 64, 64, &[a.arg(), b.arg(), z.arg()]);
    t.is(z, &flat(x, y, f));
}

fn unary<T: Element, U: Element, const N: usize>(t: &mut Trial<'_>, x: &[T], f: impl Fn(T) -> [U; N]) {
    let (a, z) = (t.put(x), t.out::<U>(x.len() * N));
    t.run(x.len() as u32 / 64, 64, &[a.arg(), z.arg()]);
    t.is(z, &flat(x, x, |x, _| f(x)));
}

fn signed(x: &[u32]) -> Vec<i32> {
    map(x, u32::cast_signed)
}

pub(crate) const CASES: &[Case] = &[
    ("mix", |t| {
        unary(t, &u32s(128, 1), |mut h: u32| {
            h ^= h >> 16;
            h = h.wrapping_mul(0x85eb_ca6b);
            h ^= h >> 13;
            h = h.wrapping_mul(0xc2b2_ae35);
            [h ^ h >> 16]
        });
    }),
    ("divide_u32", |t| {
        binary(t, &u32s(512, 2), &map(&u32s(512, 3), |y| y.max(1)), |x: u32, y| [x / y, x % y]);
    }),
    ("divide_i32", |t| {
        let divisor = map(&signed(&u32s(512, 5)), |y| if y == 0 || y == -1 { 7 } else { y });
        binary(t, &signed(&u32s(512, 4)), &divisor, |x: i32, y| [x / y, x % y]);
    }),
    ("divide_u64", |t| {
        binary(t, &u64s(512, 6), &map(&u64s(512, 7), |y| y.max(1)), |x: u64, y| [x / y, x % y]);
    }),
    ("divide_i64", |t| {
        let divisor = map(&u64s(512, 9), |y| if y == 0 || y == u64::MAX { -9 } else { y.cast_signed() });
        binary(t, &map(&u64s(512, 8), u64::cast_signed), &divisor, |x: i64, y| [x / y]);
    }),
    ("by_constants", |t| unary(t, &u32s(256, 10), |x: u32| [x / 7, x % 10, x / 641, x / 16])),
    ("wide_product", |t| {
        binary(t, &u64s(256, 11), &u64s(256, 12), |x: u64, y| [x.wrapping_mul(y).wrapping_add(3)]);
    }),
    ("high_product", |t| {
        binary(t, &u32s(256, 13), &u32s(256, 14), |x: u32, y| {
            let both = i64::from(x.cast_signed()) * i64::from(y.cast_signed());
            [((u64::from(x) * u64::from(y)) >> 32) as u32, (both >> 32) as u32]
        });
    }),
    ("shifts", |t| {
        binary(t, &u32s(256, 15), &u32s(256, 16), |x: u32, s| {
            let s = s & 31;
            [x << s, x >> s, (x.cast_signed() >> s).cast_unsigned(), x.rotate_left(s)]
        });
    }),
    ("shifts_64", |t| {
        let (x, s) = (u64s(256, 17), u32s(256, 18));
        let (a, b, y) = (t.put(&x), t.put(&s), t.out::<u64>(768));
        t.run(4, 64, &[a.arg(), b.arg(), y.arg()]);
        t.is(y, &flat(&x, &s, |x, s| [x << (s & 63), x >> (s & 63), (x.cast_signed() >> (s & 63)).cast_unsigned()]));
    }),
    ("bits", |t| {
        unary(t, &u32s(256, 20), |x: u32| [x.count_ones(), x.leading_zeros(), x.trailing_zeros(), x.reverse_bits()]);
    }),
    ("bits_64", |t| unary(t, &u64s(256, 22), |x: u64| [x.count_ones(), x.leading_zeros(), x.trailing_zeros()])),
    ("extremes", |t| {
        binary(t, &signed(&u32s(256, 23)), &signed(&u32s(256, 24)), |a: i32, b| {
            let (u, v) = (a.cast_unsigned(), b.cast_unsigned());
            [a.min(b), a.max(b), u.min(v).cast_signed(), u.max(v).cast_signed()]
        });
    }),
    ("extremes_64", |t| {
        let signed = |seed| map(&u64s(256, seed), u64::cast_signed);
        binary(t, &signed(25), &signed(26), |a: i64, b| {
            [a.min(b), a.cast_unsigned().max(b.cast_unsigned()).cast_signed()]
        });
    }),
    ("saturating", |t| {
        binary(t, &signed(&u32s(256, 27)), &signed(&u32s(256, 28)), |a: i32, b| {
            let (u, v) = (a.cast_unsigned(), b.cast_unsigned());
            [
                a.saturating_add(b),
                a.saturating_sub(b),
                u.saturating_add(v).cast_signed(),
                u.saturating_sub(v).cast_signed(),
            ]
        });
    }),
    ("fields", |t| {
        unary(t, &u32s(256, 29), |x: u32| {
            let [a, _, c, d] = x.to_le_bytes();
            let signed = ((x << 9).cast_signed() >> 20).cast_unsigned();
            [x >> 7 & 0x1ff, signed, u32::from_le_bytes([a, d, c, d]), x.swap_bytes()]
        });
    }),
    ("collatz", |t| {
        let steps = |mut v: u32| {
            let mut n = 0;
            while v != 1 {
                v = if v & 1 == 1 { 3 * v + 1 } else { v / 2 };
                n += 1;
            }
            n
        };
        unary(t, &(1..=128).collect::<Vec<u32>>(), |v| [steps(v)]);
    }),
    ("gcd", |t| {
        let gcd = |mut a: u32, mut b: u32| {
            while b != 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        let x = map(&u32s(128, 31), |x| x % 5040);
        let y = map(&u32s(128, 32), |x| x % 720);
        binary(t, &x, &y, |a, b| [gcd(a, b)]);
    }),
    ("choose", |t| {
        unary(t, &u32s(256, 33), |v: u32| {
            [match v % 9 {
                0 => v.wrapping_mul(3),
                1 => v ^ 0x5555,
                2 => v.wrapping_add(17),
                3 => v >> 3,
                4 => v.count_ones(),
                5 => v.wrapping_mul(v),
                7 => !v,
                _ => 99,
            }]
        });
    }),
    ("nested", |t| {
        let x = u32s(256, 34);
        let (a, y) = (t.put(&x), t.out::<u32>(256));
        t.run(4, 64, &[a.arg(), y.arg(), Arg::U32(60)]);
        let sum = |v: u32| {
            let mut sum = 0;
            for i in (0..v & 15).filter(|i| !(v >> i).is_multiple_of(3)) {
                for j in i..8 {
                    sum += i * j;
                    if sum > 60 {
                        return sum;
                    }
                }
            }
            sum
        };
        t.is(y, &map(&x, sum));
    }),
    ("search", |t| {
        let mut sorted = map(&u32s(100, 35), |x| x >> 12);
        sorted.sort_unstable();
        let x = map(&u32s(128, 36), |x| x >> 12);
        let (s, a, y) = (t.put(&sorted), t.put(&x), t.out::<u32>(128));
        t.run(2, 64, &[s.arg(), Arg::U32(100), a.arg(), y.arg()]);
        t.is(y, &map(&x, |x| sorted.partition_point(|s| *s < x) as u32));
    }),
];
