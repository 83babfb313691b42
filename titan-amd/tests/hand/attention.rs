//! Attention of one head.

use crate::kernels::{ATTENTION, get, numbers, orders, put_bf16};
use titan_amd::emu::{Arg, Memory};

const WIDTH: usize = 64;

/// In `f64`, but for the weights, which are rounded to bf16 by the kernel: that is in the bound.
fn reference(q: &[f32], k: &[f32], v: &[f32], keys: usize, scale: f64) -> Vec<f64> {
    let row = |q: &[f32]| {
        let dot = |j: usize| q.iter().zip(&k[j * WIDTH..]).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum::<f64>();
        let scores: Vec<f64> = (0..keys).map(|j| dot(j) * scale).collect();
        let most = scores.iter().copied().fold(f64::MIN, f64::max);
        let weights: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
        let sum: f64 = weights.iter().sum();
        let out =
            |d: usize| weights.iter().enumerate().map(|(j, w)| w * f64::from(v[j * WIDTH + d])).sum::<f64>() / sum;
        (0..WIDTH).map(out).collect::<Vec<f64>>()
    };
    q.chunks(WIDTH).flat_map(row).collect()
}

#[test]
fn attention_is_that_of_f64() {
    let module = ATTENTION.module(ATTENTION.text);
    for (queries, keys) in [(16, 16), (32, 64), (48, 160)] {
        let (q, k, v) = (numbers(queries * WIDTH, 1), numbers(keys * WIDTH, 2), numbers(keys * WIDTH, 3));
        let transposed: Vec<f32> = (0..keys * WIDTH).map(|i| v[i % keys * WIDTH + i / keys]).collect();
        let want = reference(&q, &k, &v, keys, 0.25);
        for options in orders() {
            let mut memory = Memory::new();
            let pointers = [("Q", &q), ("K", &k), ("V", &transposed)].map(|(n, x)| put_bf16(&mut memory, n, x));
            let o = memory.alloc("O", 4 * queries * WIDTH).unwrap();
            let mut args: Vec<Arg> = pointers.into_iter().chain([o]).map(Arg::Ptr).collect();
            args.extend([Arg::U32(keys as u32), Arg::F32(0.25 * std::f32::consts::LOG2_E)]);
            ATTENTION
                .run(&module, [queries as u32 / 16, 1], &args, &mut memory, &options)
                .unwrap_or_else(|e| panic!("{e}"));
            let got = get(&memory, o, queries * WIDTH);
            // Weights have eight bits, values are below 1, and the weights' sum is not rounded.
            let wrong = got.iter().zip(&want).position(|(g, w)| (f64::from(*g) - w).abs() > 1.0 / 256.0);
            assert_eq!(wrong.map(|i| (i, got[i], want[i])), None, "{queries} queries, {keys} keys");
        }
    }
}
