//! Bad input is an error that names the kernel, its parameter and what to do.

use crate::numbers;
use candle_core::{DType, Device, Tensor};
use candle_operators::{add_assign, attention, rms_norm, rope, swiglu, w4a16};

fn refused(outcome: candle_core::Result<Tensor>, says: &[&str]) {
    let text = outcome.unwrap_err().to_string();
    assert!(says.iter().all(|part| text.contains(part)), "{text}");
}

#[test]
fn extents_that_do_not_fit_are_errors() {
    let (x, w) = (numbers(1, &[3, 100], DType::F32), numbers(2, &[99], DType::F32));
    refused(rms_norm(&x, &w, 1e-5), &["kernel `kernel::<f32, 128>`", "`w`", "99", "help: "]);
    refused(swiglu(&w), &["swiglu: [99]"]);
    let (q, k) = (numbers(3, &[1, 3, 4, 64], DType::F32), numbers(4, &[1, 2, 4, 64], DType::F32));
    refused(attention(&q, &k, &k, 1.0), &["HQ % HK == 0", "help: "]);
    let codes = Tensor::zeros((8, 20), DType::U8, &Device::Cpu).unwrap();
    refused(w4a16(&numbers(5, &[2, 40], DType::F32), &codes, &numbers(6, &[8, 1], DType::F32)), &["K % 32 == 0"]);
}

#[test]
fn element_types_that_do_not_fit_are_errors() {
    let x = numbers(1, &[3, 100], DType::F32);
    refused(rms_norm(&x, &numbers(2, &[100], DType::F16), 1e-5), &["`w`", "f16", "f32", "help: "]);
    refused(rms_norm(&x.to_dtype(DType::F64).unwrap(), &x, 1e-5), &["[T1101]", "f64", "help: "]);
    let heads = numbers(3, &[1, 1, 4, 96], DType::F32);
    refused(rope(&heads, &heads, &heads), &["[T1101] kernel `kernel` has no instance", "96", "help: "]);
    let codes = Tensor::zeros((4, 16), DType::U8, &Device::Cpu).unwrap();
    let x = numbers(4, &[3, 32], DType::F32);
    refused(w4a16(&x, &codes, &codes), &["`scale` has elements of type `f32`, but `u8` was given", "help: "]);
    let bits = Tensor::zeros((4, 16), DType::U8, &Device::Cpu).unwrap().transpose(0, 1).unwrap();
    refused(w4a16(&x, &bits, &x), &["bits_as: the last axis of shape [16, 4]", "help: "]);
}

#[test]
fn tensors_in_place_share_nothing() {
    let x = numbers(1, &[4, 8], DType::F32);
    let text = add_assign(&x, &x).unwrap_err().to_string();
    assert!(text.contains("shares storage"), "{text}");
    let text = add_assign(&numbers(2, &[1, 8], DType::F32).expand((4, 8)).unwrap(), &x).unwrap_err().to_string();
    assert!(text.contains("repeated elements"), "{text}");
}
