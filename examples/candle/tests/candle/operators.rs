//! Each operator beside its counterpart of candle's, in each element type, for contiguous tensors and for parts of transposed ones.

use crate::{DTYPES, difference, numbers, scattered, tolerance};
use candle_core::{D, DType, Device, Result, Tensor};
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
    for shape in [&[5, 96][..], &[3, 7, 200], &[2, 5, 1500], &[2, 2, 3, 130], &[2, 1, 5000]] {
        let width = *shape.last().unwrap();
        let inputs = |dtype| vec![numbers(1, shape, dtype), numbers(2, &[width], dtype)];
        // candle's rounds in its sums of 16 bits, so that the slow one in f32 is the reference.
        let theirs = |x: &[Tensor]| {
            let wide = |t: &Tensor| t.to_dtype(DType::F32);
            candle_nn::ops::rms_norm(&wide(&x[0])?, &wide(&x[1])?, 1e-5)?.to_dtype(x[0].dtype())
        };
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
        let theirs = |x: &[Tensor]| candle_nn::rotary_emb::rope(&x[0], &x[1], &x[2]);
        compare("rope", inputs, |x| rope(&x[0], &x[1], &x[2]), theirs);
    }
}

#[test]
fn swiglu_is_candles() {
    for shape in [&[7, 64][..], &[2, 3, 514], &[2, 2, 3, 2600]] {
        let theirs = |x: &[Tensor]| candle_nn::ops::swiglu(&x[0].to_dtype(DType::F32)?)?.to_dtype(x[0].dtype());
        compare("swiglu", |dtype| vec![numbers(6, shape, dtype)], |x| swiglu(&x[0]), theirs);
    }
}

/// Attention of candle's matrix products and softmax, in f32.
fn plain(q: &Tensor, k: &Tensor, v: &Tensor, scale: f32) -> Result<Tensor> {
    let dtype = q.dtype();
    let [q, k, v] = [q, k, v].map(|t| t.to_dtype(DType::F32)?.contiguous());
    let (q, k, v) = (q?, k?, v?);
    let ((b, hq, n, _), (_, hk, nk, d)) = (q.dims4()?, k.dims4()?);
    let each = |t: &Tensor| t.unsqueeze(2)?.expand((b, hk, hq / hk, nk, d))?.reshape((b, hq, nk, d));
    let (k, v) = (each(&k)?, each(&v)?);
    let mask: Vec<f32> = (0..n * nk).map(|i| if i % nk <= i / nk + nk - n { 0.0 } else { f32::NEG_INFINITY }).collect();
    let scores = (q.matmul(&k.t()?)? * f64::from(scale))?;
    let scores = scores.broadcast_add(&Tensor::from_vec(mask, (n, nk), &Device::Cpu)?)?;
    candle_nn::ops::softmax_last_dim(&scores)?.matmul(&v)?.to_dtype(dtype)
}

#[test]
fn attention_is_that_of_candles_products() {
    for (n, nk, hq, hk, d) in [(70, 70, 6, 2, 64), (1, 129, 4, 4, 64), (33, 90, 4, 1, 128), (1, 65, 4, 2, 128)] {
        let inputs = |dtype| {
            let keys = |seed| numbers(seed, &[2, hk, nk, d], dtype);
            vec![numbers(7, &[2, hq, n, d], dtype), keys(8), keys(9)]
        };
        let ours = |x: &[Tensor]| attention(&x[0], &x[1], &x[2], 0.125);
        compare("attention", inputs, ours, |x| plain(&x[0], &x[1], &x[2], 0.125));
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
        let error = difference(&attention(&q, &k, &v, 0.2).unwrap(), &plain(&q, &k, &v, 0.2).unwrap());
        assert!(error <= tolerance(dtype), "{dtype:?}: {error:e}");
    }
}

#[test]
fn products_with_weights_of_4_bits_are_those_with_converted_weights() {
    for (m, n, k) in [(1, 48, 64), (5, 100, 128), (130, 70, 96)] {
        let codes: Vec<u8> = (0..n * k / 2).map(|i| (i * 37 + i / 5 + 11) as u8).collect();
        let nibbles = codes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
        let plain: Vec<f32> = nibbles.map(|code| f32::from(code) - 8.0).collect();
        let codes = Tensor::from_vec(codes, (n, k / 2), &Device::Cpu).unwrap();
        let plain = Tensor::from_vec(plain, (n, k / 32, 32), &Device::Cpu).unwrap();
        let inputs = |dtype| vec![numbers(12, &[m.min(2), m.div_ceil(2), k], dtype), numbers(13, &[n, k / 32], dtype)];
        let theirs = |x: &[Tensor]| {
            let scales = x[1].to_dtype(DType::F32)?.unsqueeze(D::Minus1)?;
            // The kernel rounds weights to the element type.
            let weights =
                plain.broadcast_mul(&scales)?.reshape((n, k))?.to_dtype(x[0].dtype())?.to_dtype(DType::F32)?;
            x[0].to_dtype(DType::F32)?.broadcast_matmul(&weights.t()?)?.to_dtype(x[0].dtype())
        };
        for dtype in DTYPES {
            let inputs = inputs(dtype);
            let error = difference(&w4a16(&inputs[0], &codes, &inputs[1]).unwrap(), &theirs(&inputs).unwrap());
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
