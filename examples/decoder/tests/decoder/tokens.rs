//! Two hundred steps and more, prompts of different lengths in one batch.

use crate::support::{Pair, prompt};
use decoder::reference::{Format, Reference};
use decoder::weights::Source;
use decoder::{Config, Weights};
use std::collections::BTreeSet;
use titan::prelude::*;

const STEPS: usize = 220;

/// Compares sequences that begin with one token, a part of a page, a page and one token, and more queries than a tile of attention has.
fn expect_equal<T: Float>(mut pair: Pair<T>, lengths: &[usize], steps: usize) {
    let prompts: Vec<Vec<i32>> = lengths.iter().map(|n| prompt(*n, pair.model.config())).collect();
    let (tokens, all) = pair.compare(&prompts, steps);
    println!("{all:?}");
    assert_eq!(all.steps, prompts.len() * steps);
    assert!(all.passes() && all.error < pair.error, "{all:?}");
    // Nearly all are equal without the bound: it is for the few ties.
    assert!(all.near * 50 <= all.steps, "{all:?}");
    let different: BTreeSet<_> = tokens.iter().flatten().collect();
    assert!(different.len() * 4 > pair.model.config().vocab.min(all.steps), "the text repeats itself: {different:?}");
}

#[test]
fn tokens_in_f16_are_those_of_the_reference() {
    expect_equal(Pair::f16(&Device::cpu(), &Config::TINY, false), &[1, 7, 17, 90], STEPS);
}

#[test]
fn tokens_with_weights_of_4_bits_are_those_of_the_reference() {
    expect_equal(Pair::f16(&Device::cpu(), &Config::TINY, true), &[1, 7, 17, 90], STEPS);
}

#[test]
fn tokens_in_bf16_are_those_of_the_reference() {
    let pair = Pair::<bf16>::new(&Device::cpu(), &Config::TINY, false, Format::BF16, 0.4);
    expect_equal(pair, &[3, 40], STEPS);
}

#[test]
fn tokens_of_heads_of_64_are_those_of_the_reference() {
    let config = Config { hidden: 160, layers: 1, heads: 4, head_dim: 64, positions: 64, ..Config::TINY };
    expect_equal(Pair::f16(&Device::cpu(), &config, false), &[5, 20], 20);
    expect_equal(Pair::f16(&Device::cpu(), &Config { kv_heads: 4, ..config }, true), &[5, 20], 20);
}

#[test]
fn tokens_of_heads_of_128_are_those_of_the_reference() {
    let config = Config { hidden: 128, layers: 1, heads: 2, kv_heads: 1, head_dim: 128, positions: 64, ..Config::TINY };
    expect_equal(Pair::f16(&Device::cpu(), &config, false), &[5, 20], 20);
}

#[test]
fn tokens_on_an_emulated_gpu_are_those_of_the_reference() {
    let gpu = Device::emulator("sm_80").unwrap();
    expect_equal(Pair::f16(&gpu, &Config::TINY, false), &[3, 18], 3);
    expect_equal(Pair::f16(&gpu, &Config::TINY, true), &[3, 18], 3);
}

/// The comparison finds a difference that is small beside the weights: 4 bits for a model of 16.
#[test]
fn a_model_with_slightly_different_weights_does_not_pass() {
    let mut pair = Pair::f16(&Device::cpu(), &Config::TINY, false);
    let weights = &mut Weights::new(Config::TINY, Source::Seed(1));
    pair.reference = Reference::load(weights, Format::F16, true).unwrap();
    let (_, all) = pair.compare(&[prompt(7, &Config::TINY)], 30);
    assert!(!all.passes() && all.error > 4.0 * pair.error, "{all:?}");
}
