//! Every kernel agrees with the oracle's step on shapes that fill no tile: launched on each device, and as the reference.

use titan::{Device, Tensor};

use super::{attention::attention, embed::embed, linear::linear, norm::add_norm, pool::pool};
use crate::encoder::{Run, run};
use crate::oracle::ops::{self, Matrix};
use crate::{Config, Weights, weights};

/// Random tensors of these dimensions: maps, norms, and a table whose rows serve as input.
fn weights(hidden: usize, intermediate: usize, seed: u64) -> Weights {
    let config = Config { layers: 1, hidden, intermediate, heads: 1, vocab: 97, max_positions: 41, ..Config::TINY };
    Weights::random(&config, seed)
}

/// The first rows of the word table.
fn rows(weights: &Weights, n: usize) -> (&[f32], Matrix) {
    let (data, hidden) = (&weights.embeddings().word.data, weights.config().hidden);
    (&data[..n * hidden], Matrix::of(hidden, &data[..n * hidden]))
}

/// A few roundings of an `f32`.
const CLOSE: f64 = 2e-6;

/// Runs a kernel in every way into NaNs, and compares what it leaves.
fn check<const R: usize>(
    tolerance: f64,
    shape: [usize; R],
    expected: &[f64],
    kernel: impl Fn(&Device, &Run, &mut Tensor<f32, R>) -> titan::Result<()>,
) {
    let launched = Device::available().into_iter().map(|device| (Run::On(device.default_stream()), device));
    for (run, device) in launched.chain([(Run::Reference, Device::cpu())]) {
        let mut out = device.full(shape, f32::NAN).unwrap();
        kernel(&device, &run, &mut out).unwrap();
        let found = out.to_vec().unwrap();
        assert_eq!(found.len(), expected.len());
        for (i, (f, e)) in found.iter().zip(expected).enumerate() {
            let near = (f64::from(*f) - e).abs() <= tolerance * (1.0 + e.abs());
            assert!(near, "{run:?}: element {i} is {f}, not {e}");
        }
    }
}

fn vector(device: &Device, tensor: &weights::Tensor) -> titan::Result<Tensor<f32, 1>> {
    device.tensor(&tensor.data, [tensor.data.len()])
}

fn matrix(device: &Device, tensor: &weights::Tensor) -> titan::Result<Tensor<f32, 2>> {
    device.tensor(&tensor.data, [tensor.shape[0], tensor.shape[1]])
}

#[test]
fn embed_looks_up_and_normalises() {
    for (hidden, ids) in [(24, vec![0, 96, 5, 5, 33]), (31, vec![7]), (32, (3..19).collect())] {
        let weights = weights(hidden, 8, 1);
        let tables = weights.embeddings();
        let places: Vec<usize> = ids.iter().map(|id| usize::try_from(*id).unwrap()).collect();
        let expected = ops::layer_norm(&tables.norm, 1e-12, &ops::lookup(tables, &places));
        let n = ids.len();
        check(CLOSE, [n, hidden], expected.data(), |device, run, y| {
            let positions: Vec<i32> = (0..).take(n).collect();
            let (ids, positions) = (device.tensor(&ids, [n])?, device.tensor(&positions, [n])?);
            let [word, position, kind] =
                [&tables.word, &tables.position, &tables.token_type].map(|t| matrix(device, t));
            let (scale, shift) = (vector(device, &tables.norm.weight)?, vector(device, &tables.norm.bias)?);
            run!(run, embed::<4, 32>(&ids, &positions, &word?, &position?, &kind?, &scale, &shift, y, 1e-12))
        });
    }
}

#[test]
fn add_norm_adds_and_normalises() {
    for (hidden, n) in [(24, 5), (31, 1), (32, 8)] {
        let weights = weights(hidden, 8, 2);
        let norm = &weights.embeddings().norm;
        let ((data, x), (reversed, _)) = (rows(&weights, n), rows(&weights, n));
        let reversed: Vec<f32> = reversed.iter().rev().copied().collect();
        let expected = ops::layer_norm(norm, 1e-12, &ops::add(x, &Matrix::of(hidden, &reversed)));
        check(CLOSE, [n, hidden], expected.data(), |device, run, y| {
            let (x, residual) = (device.tensor(data, [n, hidden])?, device.tensor(&reversed, [n, hidden])?);
            let (scale, shift) = (vector(device, &norm.weight)?, vector(device, &norm.bias)?);
            run!(run, add_norm::<4, 32>(&x, &residual, &scale, &shift, y, 1e-12))
        });
    }
}

#[test]
fn linear_multiplies_and_adds_the_bias() {
    for (inputs, outputs, n) in [(24, 40, 5), (33, 65, 33), (7, 1, 1), (64, 64, 32)] {
        let weights = weights(inputs, outputs, 3);
        let map = &weights.layers()[0].intermediate;
        let (data, x) = rows(&weights, n);
        let plain = ops::linear(map, &x);
        let curved = ops::gelu(plain.clone());
        let operands = |device: &Device| -> titan::Result<_> {
            let x = device.tensor(data, [n, inputs])?;
            Ok((x, matrix(device, &map.weight)?, vector(device, &map.bias)?))
        };
        check(CLOSE, [n, outputs], plain.data(), |device, run, y| {
            let (x, weight, bias) = operands(device)?;
            run!(run, linear::<8, 16, 8, false>(&x, &weight, &bias, y))
        });
        check(CLOSE, [n, outputs], curved.data(), |device, run, y| {
            let (x, weight, bias) = operands(device)?;
            run!(run, linear::<64, 64, 64, true>(&x, &weight, &bias, y))
        });
    }
}

/// Sentences of these lengths, in heads of width `dim`; queries and keys are `sharp` times as long as values.
fn check_attention<const SMALL: bool>(lengths: &[usize], heads: usize, dim: usize, sharp: f32) {
    let (n, hidden) = (lengths.iter().sum::<usize>(), heads * dim);
    let weights = weights(3 * hidden, 8, 4);
    let mut packed = rows(&weights, n).0.to_vec();
    packed.chunks_mut(hidden).enumerate().filter(|(i, _)| i % 3 < 2).for_each(|(_, row)| {
        row.iter_mut().for_each(|x| *x *= sharp);
    });
    let (mut offsets, mut expected) = (vec![0], Vec::new());
    for length in lengths {
        let first = offsets.last().copied().unwrap_or(0);
        let part = |which| {
            let rows = packed.chunks(hidden).skip(3 * first + which).step_by(3).take(*length);
            Matrix::of(hidden, &rows.flatten().copied().collect::<Vec<_>>())
        };
        expected.extend_from_slice(ops::attention(heads, &part(0), &part(1), &part(2)).data());
        offsets.push(first + length);
    }
    let offsets: Vec<i32> = offsets.into_iter().map(|at| i32::try_from(at).unwrap()).collect();
    let longest = i32::try_from(lengths.iter().copied().max().unwrap()).unwrap();
    let scale = (dim as f32).sqrt().recip();
    // A score's rounding is relative to the score, and its power's to 1.
    let tolerance = CLOSE * f64::from(sharp * sharp);
    check(tolerance, [n, heads, dim], &expected, |device, run, out| {
        let qkv = device.tensor(&packed, [n, 3, heads, dim])?;
        let off = device.tensor(&offsets, [offsets.len()])?;
        if SMALL {
            run!(run, attention::<8, 4, 8>(&qkv, &off, out, longest, scale))
        } else {
            run!(run, attention::<32, 32, 32>(&qkv, &off, out, longest, scale))
        }
    });
}

#[test]
fn attention_stays_within_each_sentence() {
    check_attention::<true>(&[1, 17, 8, 3], 3, 8, 1.0);
    check_attention::<true>(&[5, 4], 2, 7, 1.0);
    check_attention::<false>(&[2, 33, 1], 2, 32, 1.0);
}

#[test]
fn attention_survives_scores_whose_powers_overflow() {
    check_attention::<true>(&[9, 30], 2, 8, 16.0);
}

#[test]
fn pool_gives_each_sentence_its_direction() {
    for (hidden, lengths) in [(24, vec![1, 20, 8]), (31, vec![9]), (32, vec![8, 8])] {
        let weights = weights(hidden, 8, 5);
        let n = lengths.iter().sum();
        let (data, _) = rows(&weights, n);
        let (mut offsets, mut expected) = (vec![0], Vec::new());
        let mut rest = data;
        for length in &lengths {
            let (part, tail) = rest.split_at(length * hidden);
            expected.extend(ops::l2_normalise(&ops::mean_pool(&Matrix::of(hidden, part))));
            rest = tail;
            offsets.push(i32::try_from((data.len() - rest.len()) / hidden).unwrap());
        }
        check(CLOSE, [lengths.len(), hidden], &expected, |device, run, y| {
            let x = device.tensor(data, [n, hidden])?;
            run!(run, pool::<8, 32>(&x, &device.tensor(&offsets, [offsets.len()])?, y))
        });
    }
}

#[test]
fn a_sentence_of_zeros_stays_zero() {
    check(CLOSE, [1, 24], &[0.0; 24], |device, run, y| {
        run!(run, pool::<8, 32>(&device.zeros([3, 24])?, &device.tensor(&[0, 3], [2])?, y))
    });
}
