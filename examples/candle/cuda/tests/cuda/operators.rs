//! Each operator on the device beside candle's own on the CPU, in each element type, for contiguous tensors and for parts of transposed ones.

use crate::common::{DTYPES, codes, difference, numbers, scattered, theirs, tolerance};
use crate::process::in_every_order;
use candle_core::{DType, Device, Result, Tensor};
use candle_operators::{add_assign, attention, rms_norm, rope, swiglu, w4a16};

/// What matrix products of f32 differ by at most: the device multiplies tf32, of 11 bits.
const PRODUCTS: f64 = 2e-3;

/// Compares an operator on the device with candle's own on the CPU, in each element type and in two layouts of the first input.
fn compare(
    (what, on): (&str, &Device),
    products: bool,
    inputs: impl Fn(DType) -> Vec<Tensor>,
    ours: impl Fn(&[Tensor]) -> Result<Tensor>,
    theirs: impl Fn(&[Tensor]) -> Result<Tensor>,
) {
    for dtype in DTYPES {
        let mut inputs = inputs(dtype);
        let expected = theirs(&inputs).unwrap();
        for layout in 0..2 {
            if layout == 1 {
                inputs[0] = scattered(&inputs[0]).unwrap();
            }
            let moved: Vec<Tensor> = inputs.iter().map(|t| t.to_device(on).unwrap()).collect();
            // Strides and offset are those of the tensor on the CPU.
            assert_eq!(format!("{:?}", moved[0].layout()), format!("{:?}", inputs[0].layout()));
            let found = ours(&moved).unwrap();
            assert!(matches!(found.device(), Device::Cuda(_)) && found.is_contiguous());
            let limit = if products && dtype == DType::F32 { PRODUCTS } else { tolerance(dtype) };
            let error = difference(&found.to_device(&Device::Cpu).unwrap(), &expected);
            assert!(error <= limit, "{what} in {dtype:?} of {:?}: {error:e}", inputs[0].layout());
        }
    }
}

#[test]
fn rms_norm_is_candles() {
    in_every_order("operators::rms_norm_is_candles", |on| {
        for shape in [&[5, 96][..], &[3, 2, 200], &[2, 1, 3, 1300]] {
            let width = *shape.last().unwrap();
            let inputs = |dtype| vec![numbers(1, shape, dtype), numbers(2, &[width], dtype)];
            let theirs = |x: &[Tensor]| theirs::rms_norm(&x[0], &x[1], 1e-5);
            compare(("rms_norm", on), false, inputs, |x| rms_norm(&x[0], &x[1], 1e-5), theirs);
        }
    });
}

#[test]
fn rope_is_candles() {
    in_every_order("operators::rope_is_candles", |on| {
        for (shape, table) in [([2, 3, 7, 64], 7), ([1, 9, 1, 128], 4)] {
            let inputs = |dtype| {
                let table = |seed| numbers(seed, &[table, shape[3] / 2], dtype);
                vec![numbers(3, &shape, dtype), table(4), table(5)]
            };
            let theirs = |x: &[Tensor]| theirs::rope(&x[0], &x[1], &x[2]);
            compare(("rope", on), false, inputs, |x| rope(&x[0], &x[1], &x[2]), theirs);
        }
    });
}

#[test]
fn swiglu_is_candles() {
    in_every_order("operators::swiglu_is_candles", |on| {
        for shape in [&[7, 64][..], &[2, 3, 514], &[1, 2, 2, 2600]] {
            let inputs = |dtype| vec![numbers(6, shape, dtype)];
            compare(("swiglu", on), false, inputs, |x| swiglu(&x[0]), |x| theirs::swiglu(&x[0]));
        }
    });
}

#[test]
fn attention_is_that_of_candles_products() {
    in_every_order("operators::attention_is_that_of_candles_products", |on| {
        for (n, nk, hq, hk, d) in [(9, 70, 4, 2, 64), (1, 65, 2, 1, 64), (3, 5, 2, 2, 128)] {
            let inputs = |dtype| {
                let keys = |seed| numbers(seed, &[1, hk, nk, d], dtype);
                vec![numbers(7, &[1, hq, n, d], dtype), keys(8), keys(9)]
            };
            let ours = |x: &[Tensor]| attention(&x[0], &x[1], &x[2], 0.125);
            compare(("attention", on), true, inputs, ours, |x| theirs::attention(&x[0], &x[1], &x[2], 0.125));
        }
    });
}

/// The layout in which models have their heads, `[B, N, H, D]` transposed, and keys and values that are parts of one tensor.
#[test]
fn attention_takes_transposed_heads_and_parts_of_a_cache() {
    in_every_order("operators::attention_takes_transposed_heads_and_parts_of_a_cache", |on| {
        for dtype in DTYPES {
            let (q, cache) = (numbers(10, &[1, 5, 4, 64], dtype), numbers(11, &[1, 30, 2, 128], dtype));
            let parts = |q: &Tensor, cache: &Tensor| {
                let part = |from| cache.narrow(1, 7, 20)?.narrow(3, from, 64)?.transpose(1, 2);
                Result::Ok((q.transpose(1, 2)?, part(0)?, part(64)?))
            };
            let (hq, hk, hv) = parts(&q, &cache).unwrap();
            let (dq, dk, dv) = parts(&q.to_device(on).unwrap(), &cache.to_device(on).unwrap()).unwrap();
            let found = attention(&dq, &dk, &dv, 0.2).unwrap().to_device(&Device::Cpu).unwrap();
            let error = difference(&found, &theirs::attention(&hq, &hk, &hv, 0.2).unwrap());
            assert!(error <= tolerance(dtype).max(PRODUCTS), "{dtype:?}: {error:e}");
        }
    });
}

#[test]
fn products_with_weights_of_4_bits_are_those_with_converted_weights() {
    in_every_order("operators::products_with_weights_of_4_bits_are_those_with_converted_weights", |on| {
        // Few rows and more are two kernels.
        for (m, n, k) in [(2, 20, 64), (6, 40, 96)] {
            let inputs = |dtype| vec![numbers(12, &[m, k], dtype), codes(n, k), numbers(13, &[n, k / 32], dtype)];
            let ours = |x: &[Tensor]| w4a16(&x[0], &x[1], &x[2]);
            compare(("w4a16", on), true, inputs, ours, |x| theirs::w4a16(&x[0], &x[1], &x[2]));
        }
    });
}

#[test]
fn additions_in_place_write_parts_of_a_tensor() {
    in_every_order("operators::additions_in_place_write_parts_of_a_tensor", |on| {
        for dtype in DTYPES {
            let (x, y) = (numbers(14, &[3, 9, 1100], dtype), numbers(15, &[3, 4, 1100], dtype));
            let (dx, dy) = (x.to_device(on).unwrap(), y.to_device(on).unwrap());
            add_assign(&dx.narrow(1, 5, 4).unwrap(), &dy).unwrap();
            let sum = (x.narrow(1, 5, 4).unwrap() + &y).unwrap();
            let expected = Tensor::cat(&[&x.narrow(1, 0, 5).unwrap(), &sum], 1).unwrap();
            assert_eq!(difference(&dx.to_device(&Device::Cpu).unwrap(), &expected), 0.0, "{dtype:?}");
        }
    });
}
