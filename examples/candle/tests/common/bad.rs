//! Bad input is an error that names the kernel, its parameter and what to do, on every device.

use super::numbers;
use candle_core::{DType, Device, Tensor};
use candle_operators::{add_assign, attention, rms_norm, rope, swiglu, w4a16};

pub fn refused(outcome: candle_core::Result<Tensor>, says: &[&str]) {
    let text = outcome.unwrap_err().to_string();
    assert!(says.iter().all(|part| text.contains(part)), "{text}");
}

pub fn extents_that_do_not_fit_are_errors(on: &Device) {
    let numbers = |seed, shape: &[usize], dtype| numbers(seed, shape, dtype).to_device(on).unwrap();
    let (x, w) = (numbers(1, &[3, 100], DType::F32), numbers(2, &[99], DType::F32));
    refused(rms_norm(&x, &w, 1e-5), &["kernel `row::<f32, 128>`", "`w`", "99", "help: "]);
    refused(swiglu(&w), &["swiglu: [99]"]);
    let (q, k) = (numbers(3, &[1, 3, 4, 64], DType::F32), numbers(4, &[1, 2, 4, 64], DType::F32));
    refused(attention(&q, &k, &k, 1.0), &["HQ % HK == 0", "help: "]);
    let codes = Tensor::zeros((8, 20), DType::U8, on).unwrap();
    refused(w4a16(&numbers(5, &[2, 40], DType::F32), &codes, &numbers(6, &[8, 1], DType::F32)), &["K % 32 == 0"]);
}

pub fn element_types_that_do_not_fit_are_errors(on: &Device) {
    let numbers = |seed, shape: &[usize], dtype| numbers(seed, shape, dtype).to_device(on).unwrap();
    let x = numbers(1, &[3, 100], DType::F32);
    refused(rms_norm(&x, &numbers(2, &[100], DType::F16), 1e-5), &["`w`", "f16", "f32", "help: "]);
    refused(rms_norm(&numbers(1, &[3, 100], DType::F64), &x, 1e-5), &["[T1101]", "f64", "help: "]);
    let heads = numbers(3, &[1, 1, 4, 96], DType::F32);
    refused(rope(&heads, &heads, &heads), &["[T1101] kernel `kernel` has no instance", "96", "help: "]);
    let codes = Tensor::zeros((4, 16), DType::U8, on).unwrap();
    let x = numbers(4, &[3, 32], DType::F32);
    refused(w4a16(&x, &codes, &codes), &["`scale` has elements of type `f32`, but `u8` was given", "help: "]);
}

/// Two codes in a byte need a last axis whose bytes are beside each other.
pub fn codes_with_strides_are_an_error(on: &Device) {
    let x = numbers(4, &[3, 32], DType::F32).to_device(on).unwrap();
    let codes = Tensor::zeros((4, 16), DType::U8, on).unwrap().transpose(0, 1).unwrap();
    refused(w4a16(&x, &codes, &x), &["bits_as: the last axis of shape [16, 4]", "help: "]);
}

pub fn tensors_in_place_share_nothing(on: &Device) {
    let numbers = |seed, shape: &[usize]| numbers(seed, shape, DType::F32).to_device(on).unwrap();
    let x = numbers(1, &[4, 8]);
    let text = add_assign(&x, &x).unwrap_err().to_string();
    assert!(text.contains("shares storage"), "{text}");
    let text = add_assign(&numbers(2, &[1, 8]).expand((4, 8)).unwrap(), &x).unwrap_err().to_string();
    assert!(text.contains("repeated elements"), "{text}");
}
