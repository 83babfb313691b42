//! Recursion, calls through pointers, arrays and structures in private memory.

use super::{Case, map, zip};
use crate::trial::{Trial, u32s};
use titan_amd::emu::Arg;

fn fib(n: u32) -> u32 {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}

fn function(which: u32, x: u32) -> u32 {
    let (twice, square) = (x.wrapping_mul(2), x.wrapping_mul(x));
    [twice, square, x.wrapping_add(1), twice.wrapping_add(square)][which as usize % 4]
}

fn deep(n: u32, kept: u32) -> u32 {
    let own = [n, n.wrapping_mul(n)];
    if n == 0 { kept } else { deep(n - 1, if n % 2 == 1 { own[0] } else { kept }).wrapping_add(own[n as usize % 2]) }
}

/// Numbers below a limit, in place.
fn below(t: &mut Trial<'_>, limit: u32, seed: u64, f: impl Fn(u32) -> u32) {
    let x = map(&u32s(128, seed), |v| v % limit);
    let a = t.put(&x);
    t.run(2, 64, &[a.arg()]);
    t.is(a, &map(&x, f));
}

pub(crate) const CASES: &[Case] = &[
    ("stack_fib", |t| below(t, 10, 80, fib)),
    // Of 2 and n: 2 n + 3.
    ("stack_ackermann", |t| below(t, 6, 81, |n| 2 * n + 3)),
    ("stack_mutual", |t| below(t, 20, 82, |n| if n % 2 == 0 { 1 } else { 2 })),
    ("stack_deep", |t| below(t, 12, 83, |n| deep(n, 7))),
    ("stack_sort", |t| {
        let mut x = map(&u32s(64 * 16, 84), u32::cast_signed);
        let a = t.put(&x);
        t.run(1, 64, &[a.arg()]);
        x.chunks_mut(16).for_each(<[i32]>::sort_unstable);
        t.is(a, &x);
    }),
    ("stack_pointers", |t| {
        let (x, w) = (u32s(128, 85), u32s(128, 86));
        let (a, b) = (t.put(&x), t.put(&w));
        t.run(2, 64, &[a.arg(), b.arg()]);
        t.is(a, &zip(&x, &w, |x, w| function(w, x)));
    }),
    ("stack_uniform_pointer", |t| {
        for which in 0..4 {
            let x = u32s(64, 87);
            let a = t.put(&x);
            t.run(1, 64, &[a.arg(), Arg::U32(which)]);
            t.is(a, &map(&x, |x| function(which, x).wrapping_add(function(which, 3))));
        }
    }),
    ("stack_array", |t| {
        let x = map(&u32s(128, 88), |v| v % 100_000);
        let (a, y) = (t.put(&x), t.out::<u32>(128));
        t.run(2, 64, &[a.arg(), y.arg()]);
        let each = |v: u32| {
            let mut t: Vec<u32> = (0..32).map(|i| i * i + v).collect();
            let at = v as usize % 32;
            t[at] += 1000;
            t[at] + t[(at + 5) % 32] + t[31 - at]
        };
        t.is(y, &map(&x, each));
    }),
    ("stack_structs", |t| {
        let x = map(&u32s(64, 89), |v| v % 100_000);
        let (a, y) = (t.put(&x), t.out::<u32>(64));
        t.run(1, 64, &[a.arg(), y.arg()]);
        let each = |l: usize| {
            let mut s: Vec<u32> = (0..6).map(|i| x[l] + i).collect();
            s[l % 6] += l as u32;
            s[2] += 2;
            let sum: u32 = s.iter().zip(1..).map(|(a, i)| a * i).sum();
            // The byte is changed twice, the number doubled twice.
            sum + l as u32 + 4 * l as u32
        };
        t.is(y, &(0..64).map(each).collect::<Vec<_>>());
    }),
];
