//! Each operator beside its counterpart of candle's, in each element type, for contiguous tensors and for parts of transposed ones.

use crate::common::{DTYPES, codes, difference, numbers, scattered, theirs, tolerance};
use candle_core::{DType, Result, Tensor};
use candle_operators::{add_assign, attention, rms_norm, rope, swiglu, w4a16};

/// Compares an operator with candle's own, whose inputs are made contiguous, in each element type and in two layouts of the first input.
fn compare(
    what: &str,
    inputs: impl Fn(DType) -> Vec<Tensor>,
    ours: impl Fn(&[Tensor]) -> Result<Tensor>,
    theirs: impl Fn(&[Tensor]) -> Result<Tensor>,
) {
    for dtype in DTYPES {
        let inputs = inputs(dtype);
        let expected = theirs(&inputs).unwrap();
        let mut strided = inputs.clone();
        strided[0] = scattered(&inputs[0]).unwrap();
        for inputs in [inputs, strided] {
            let found = ours(&inputs).unwrap();
            let error = difference(&found, &expected);
            assert!(error <= tolerance(dtype), "{what} in {dtype:?} of {:?}: {error:e}", inputs[0].layout());
        }
    }
}

#[test]
fn rms_norm_is_candles() {
    for shape in [&[5, 96][..], &[3, 7, 200], &[2, 5, 1500], &[2, 2, 3, 130], &[2, 4096], &[2, 1, 5000]] {
        let width = *shape.last().unwrap();
        let inputs = |dtype| vec![numbers(1, shape, dtype), numbers(2, &[width], dtype)];
        let theirs = |x: &[Tensor]| theirs::rms_norm(&x[0], &x[1], 1e-5);
        compare("rms_norm", inputs, |x| rms_norm(&x[0], &x[1], 1e-5), theirs);
    }
}

#[test]
fn rope_is_candles() {
    for (shape, table) in [([2, 3, 37, 64], 37), ([1, 5, 1, 128], 4), ([2, 2, 16, 128], 40)] {
        let inputs = |dtype| {
            let table = |seed| numbers(seed, &[table, shape[3] / 2], dtype);
            vec![numbers(3, &shape, dtype), table(4), table(5)]
        };
        compare("rope", inputs, |x| rope(&x[0], &x[1], &x[2]), |x| theirs::rope(&x[0], &x[1], &x[2]));
    }
}

#[test]
fn swiglu_is_candles() {
    for shape in [&[7, 64][..], &[2, 3, 514], &[2, 2, 3, 2600]] {
        compare("swiglu", |dtype| vec![numbers(6, shape, dtype)], |x| swiglu(&x[0]), |x| theirs::swiglu(&x[0]));
    }
}

#[test]
fn attention_is_that_of_candles_products() {
    for (n, nk, hq, hk, d) in [(70, 70, 6, 2, 64), (1, 129, 4, 4, 64), (33, 90, 4, 1, 128), (1, 65, 4, 2, 128)] {
        let inputs = |dtype| {
            let keys = |seed| numbers(seed, &[2, hk, nk, d], dtype);
            vec![numbers(7, &[2, hq, n, d], dtype), keys(8), keys(9)]
        };
        let ours = |x: &[Tensor]| attention(&x[0], &x[1], &x[2], 0.125);
        compare("attention", inputs, ours, |x| theirs::attention(&x[0], &x[1], &x[2], 0.125));
    }
}

/// The layout in which models have their heads: `[B, N, H, D]`, transposed.
#[test]
fn attention_takes_transposed_heads_and_parts_of_a_cache() {
    for dtype in DTYPES {
        let q = numbers(10, &[2, 40, 6, 64], dtype).transpose(1, 2).unwrap();
        let cache = numbers(11, &[2, 100, 3, 128], dtype);
        let part = |from| cache.narrow(1, 7, 60).unwrap().narrow(3, from, 64).unwrap().transpose(1, 2).unwrap();
        let (k, v) = (part(0), part(64));
        let error = difference(&attention(&q, &k, &v, 0.2).unwrap(), &theirs::attention(&q, &k, &v, 0.2).unwrap());
        assert!(error <= tolerance(dtype), "{dtype:?}: {error:e}");
    }
}

#[test]
fn products_with_weights_of_4_bits_are_those_with_converted_weights() {
    for (m, n, k) in [(1, 48, 64), (5, 100, 128), (130, 70, 96)] {
        let codes = codes(n, k);
        let inputs = |dtype| vec![numbers(12, &[m.min(2), m.div_ceil(2), k], dtype), numbers(13, &[n, k / 32], dtype)];
        for dtype in DTYPES {
            let inputs = inputs(dtype);
            let expected = theirs::w4a16(&inputs[0], &codes, &inputs[1]).unwrap();
            let error = difference(&w4a16(&inputs[0], &codes, &inputs[1]).unwrap(), &expected);
            assert!(error <= tolerance(dtype), "{m} {n} {k} in {dtype:?}: {error:e}");
        }
    }
}

#[test]
fn additions_in_place_write_parts_of_a_tensor() {
    for dtype in DTYPES {
        let (x, y) = (numbers(14, &[3, 40, 1100], dtype), numbers(15, &[3, 17, 1100], dtype));
        let expected = (x.narrow(1, 5, 17).unwrap() + &y).unwrap();
        let before = x.narrow(1, 0, 5).unwrap().contiguous().unwrap();
        add_assign(&x.narrow(1, 5, 17).unwrap(), &y).unwrap();
        assert_eq!(difference(&x.narrow(1, 5, 17).unwrap(), &expected), 0.0, "{dtype:?}");
        assert_eq!(difference(&x.narrow(1, 0, 5).unwrap(), &before), 0.0, "{dtype:?}");
    }
}
