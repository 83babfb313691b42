//! Lanes of a wave.

use super::Case;
use crate::trial::{Element, Trial, tame, u32s};

/// Each wave's results from its 64 values.
fn waves<T: Element, U: Element>(t: &mut Trial<'_>, x: &[T], f: impl Fn(&[T], usize) -> U) {
    let (a, y) = (t.put(x), t.out::<U>(x.len()));
    t.run(1, x.len() as u32, &[a.arg(), y.arg()]);
    let each = |wave: &[T]| (0..64).map(|l| f(wave, l)).collect::<Vec<U>>();
    t.is(y, &x.chunks(64).flat_map(each).collect::<Vec<U>>());
}

fn mask(x: &[u32], f: impl Fn(u32) -> bool) -> u64 {
    x.iter().enumerate().fold(0, |all, (l, x)| all | u64::from(f(*x)) << l)
}

fn small(n: usize, seed: u64) -> Vec<u32> {
    u32s(n, seed).iter().map(|x| x % 300).collect()
}

fn sum(x: &[u32]) -> u32 {
    x.iter().fold(0, |s, x| s.wrapping_add(*x))
}

pub(crate) const CASES: &[Case] = &[
    ("ballot", |t| waves(t, &small(64, 1), |x, _| mask(x, |x| x % 3 == 0))),
    ("any_all", |t| {
        let some = |x: &[u32], _| u32::from(x.iter().any(|x| *x > 200)) | u32::from(x.iter().all(|x| *x > 200)) << 1;
        waves(t, &small(64, 2), some);
        waves(t, &[5; 64], some);
        waves(t, &[500; 64], some);
    }),
    ("rank", |t| waves(t, &small(64, 3), |x, l| (mask(x, |x| x & 1 == 1) & ((1 << l) - 1)).count_ones())),
    ("first_lane", |t| {
        waves(t, &small(64, 4), |x, l| {
            let first = *x.iter().find(|x| **x > 50).unwrap();
            x[17] + if x[l] > 50 { first } else { 0 }
        });
    }),
    ("permute", |t| waves(t, &small(64, 5), |x, l| x[63 - l])),
    ("push", |t| waves(t, &small(64, 6), |x, l| x[l * 13 % 64])),
    ("swizzle", |t| waves(t, &small(64, 7), |x, l| x[l ^ 1])),
    ("row_sum", |t| waves(t, &u32s(64, 8), |x, l| sum(&x[l / 16 * 16..=l]))),
    ("wave_sum", |t| waves(t, &u32s(64, 9), |x, _| sum(x))),
    ("quads", |t| waves(t, &tame(64, 10), |x, l| x[l] - x[l ^ 3])),
    ("butterfly", |t| waves(t, &tame(64, 11), |x, _| x.iter().copied().fold(f32::MIN, f32::max))),
];
