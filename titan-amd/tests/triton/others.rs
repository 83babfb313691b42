//! Transposed tiles, indices of extremes, sums over programs by atomic operations, gathers, random numbers, locks.

use crate::number::{El, close, noise};
use crate::{Bench, all_options, size};
use titan_amd::emu::Arg;

#[test]
fn transposed_tiles_with_ragged_ends() {
    for options in all_options() {
        let mut b = Bench::new("transpose");
        let (m, n) = (100, 70);
        let (x, xs) = b.input("x", El::F16, &noise(m * n, 20));
        let out = b.output(El::F16, m * n);
        b.run([2, 2, 1], &[x, Arg::Ptr(out), size(m), size(n)], &options);
        let want: Vec<f64> = (0..m * n).map(|i| xs[i % m * n + i / m]).collect();
        assert_eq!(b.values(out, El::F16, m * n), want);
    }
}

#[test]
fn indices_of_the_largest() {
    for options in all_options() {
        let mut b = Bench::new("argmax");
        let (rows, n) = (5, 701);
        let (x, xs) = b.input("x", El::F32, &noise(rows * n, 21));
        let out = b.output(El::I32, rows);
        b.run([rows, 1, 1], &[x, Arg::Ptr(out), size(n)], &options);
        let largest = |row: &[f64]| (0..n).max_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap() as f64;
        assert_eq!(b.values(out, El::I32, rows), xs.chunks(n).map(largest).collect::<Vec<_>>());
    }
}

#[test]
fn sums_of_products_over_programs() {
    for options in all_options() {
        let mut b = Bench::new("split_k");
        let (m, n, k) = (32, 64, 150);
        let (pa, av) = b.input("a", El::F16, &noise(m * k, 22));
        let (pb, bv) = b.input("b", El::F16, &noise(n * k, 23));
        let out = b.output(El::F32, m * n);
        b.memory.write(out, &vec![0; 4 * m * n]).unwrap();
        b.run([1, 1, 3], &[pa, pb, Arg::Ptr(out), size(m), size(n), size(k)], &options);
        let sum = |i: usize| (0..k).map(|p| av[i / n * k + p] * bv[p * n + i % n]).sum();
        let want: Vec<f64> = (0..m * n).map(sum).collect();
        close("split_k", &b.values(out, El::F32, m * n), &want, 1e-4, 1e-4);
    }
}

#[test]
fn gathers_by_indices_of_which_some_are_none() {
    for options in all_options() {
        let mut b = Bench::new("gather");
        let n = 1300;
        let (x, xs) = b.input("x", El::F32, &noise(300, 24));
        let indices: Vec<f32> = noise(n, 25).iter().map(|v| (v * 299.0).floor().max(-1.0)).collect();
        let (index, seen) = b.input("index", El::I32, &indices);
        let out = b.output(El::F32, n);
        b.run([3, 1, 1], &[x, index, Arg::Ptr(out), size(n)], &options);
        let want: Vec<f64> = seen.iter().map(|j| if *j < 0.0 { -5.0 } else { xs[*j as usize] }).collect();
        assert_eq!(b.values(out, El::F32, n), want);
    }
}

/// A number in 0..1 from a seed and a counter: Philox 4x32 of ten rounds (Salmon and others: "Parallel random numbers: as easy as 1, 2, 3",
/// 2011), and Triton's conversion of its first word.
fn random(seed: u32, counter: u32) -> f32 {
    let (mut c, mut k) = ([counter, 0, 0, 0], [seed, 0]);
    for _ in 0..10 {
        let (a, b) = (u64::from(c[0]) * 0xD251_1F53, u64::from(c[2]) * 0xCD9E_8D57);
        c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
        k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
    }
    let signed = c[0].cast_signed();
    (if signed < 0 { -1 - signed } else { signed }) as f32 * 4.656_612_7e-10
}

#[test]
fn random_numbers_choose_what_is_kept() {
    for options in all_options() {
        let mut b = Bench::new("dropout");
        let (n, p, seed) = (1400, 0.25_f32, 77);
        let (x, xs) = b.input("x", El::F32, &noise(n, 26));
        let out = b.output(El::F32, n);
        b.run([3, 1, 1], &[x, Arg::Ptr(out), size(n), Arg::F32(p), size(seed as usize)], &options);
        let kept = |i: usize| random(seed, i as u32) > p;
        let want: Vec<f64> = (0..n).map(|i| if kept(i) { xs[i] / f64::from(1.0 - p) } else { 0.0 }).collect();
        close("dropout", &b.values(out, El::F32, n), &want, 1e-6, 0.0);
        assert!((900..1200).contains(&(0..n).filter(|i| kept(*i)).count()));
    }
}

#[test]
fn programs_that_take_turns_by_a_lock() {
    for options in all_options() {
        let mut b = Bench::new("lock");
        let (programs, n) = (6, 128);
        let (state, _) = b.input("state", El::I32, &[0.0]);
        let xs: Vec<f32> = noise(programs * n, 27).iter().map(|v| (v * 100.0).floor()).collect();
        let (x, seen) = b.input("x", El::F32, &xs);
        let out = b.output(El::F32, n);
        b.memory.write(out, &vec![0; 4 * n]).unwrap();
        b.run([programs, 1, 1], &[state, x, Arg::Ptr(out)], &options);
        let want: Vec<f64> = (0..n).map(|i| (0..programs).map(|p| seen[p * n + i]).sum()).collect();
        assert_eq!(b.values(out, El::F32, n), want);
    }
}
