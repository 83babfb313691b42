//! The examples, on ragged shapes: the device's result and the reference's agree with plain loops in `f64`.
#![expect(clippy::duplicate_mod, dead_code, reason = "each example carries the common part and a `main`")]

use titan::prelude::*;

#[path = "shared/examples.rs"]
mod all;
#[path = "shared/ports.rs"]
mod ports;

use all::{
    batched_gemm, conv2d, flash_attention, fp8_gemm, gemm, gemm_ws, grouped_gemm, linear_gelu, paged_attention,
    rms_norm, rope, router, softmax, split_k, vector_add, w4a16,
};
use ports::{cubecl_gelu, cubecl_normalization, cubecl_sum, triton_layer_norm, triton_softmax, triton_vector_add};

/// The greatest error of an example is within its bound.
fn within(bound: f64, error: titan::Result<f64>) {
    let error = error.expect("the example runs");
    assert!(error <= bound, "the greatest error is {error:e}, the bound {bound:e}");
}

#[test]
fn batched_gemm_agrees() {
    let dev = Device::best().expect("there is a device");
    within(2e-3, batched_gemm::check(&dev, 3, [9, 11, 7]));
    within(2e-3, batched_gemm::check(&dev, 1, [8, 8, 4]));
}

#[test]
fn conv2d_agrees() {
    let dev = Device::best().expect("there is a device");
    within(0.0, conv2d::check(&dev));
}

#[test]
fn cubecl_gelu_agrees() {
    let dev = Device::best().expect("there is a device");
    within(1e-6, cubecl_gelu::check(&dev, &[-1.0f32, 0.0, 1.0, 5.0]));
    let many: Vec<f16> = (0..300).map(|i| f16::from_f32(i as f32 / 50.0 - 3.0)).collect();
    within(2e-3, cubecl_gelu::check(&dev, &many));
}

#[test]
fn cubecl_normalization_agrees() {
    let dev = Device::best().expect("there is a device");
    within(1e-6, cubecl_normalization::check(&dev, &[-1.0, 0.0, 1.0, 5.0]));
    let many: Vec<f32> = (0..4 * 65).map(|i| i as f32 - 100.5).collect();
    within(1e-6, cubecl_normalization::check(&dev, &many));
}

#[test]
fn cubecl_sum_agrees() {
    let dev = Device::best().expect("there is a device");
    within(0.0, cubecl_sum::check(&dev, &[-1.0, 10.0, 1.0, 5.0]));
    let many: Vec<f32> = (0..100).map(|i| (i * 7 % 13) as f32).collect();
    within(0.0, cubecl_sum::check(&dev, &many));
}

#[test]
fn flash_attention_agrees() {
    let dev = Device::best().expect("there is a device");
    within(2e-3, flash_attention::check(&dev, 77, 100, true));
    within(2e-3, flash_attention::check(&dev, 70, 70, false));
    within(2e-3, flash_attention::check(&dev, 1, 65, true));
}

/// A scale that would turn the order of the scores around stops the launch.
#[test]
fn flash_attention_refuses_scales_that_are_not_positive() {
    let dev = Device::best().expect("there is a device");
    let tensor = || dev.zeros::<f16, 4>([1, 1, 64, 64]).expect("there is memory");
    let (q, k, v) = (tensor(), tensor(), tensor());
    for scale in [0.0, -0.125, f32::NAN] {
        let mut out = tensor();
        let launch = flash_attention::flash_attention::<f16, 64, 64, 64, false>(&q, &k, &v, &mut out, scale);
        let error = launch.sync().expect_err("the scale is not positive").to_string();
        assert!(error.contains("the greatest score must stay the greatest"), "{error}");
    }
}

#[test]
fn fp8_gemm_agrees() {
    let dev = Device::best().expect("there is a device");
    within(1e-2, fp8_gemm::check(&dev, [33, 40, 80]));
    within(1e-2, fp8_gemm::check(&dev, [16, 16, 32]));
    within(1e-2, fp8_gemm::check(&dev, [1, 1, 1]));
}

#[test]
fn gemm_ws_agrees() {
    let dev = Device::best().expect("there is a device");
    within(2e-3, gemm_ws::check(&dev, [65, 70, 33]));
    within(2e-3, gemm_ws::check(&dev, [64, 64, 0]));
    within(2e-3, gemm_ws::check(&dev, [1, 1, 200]));
}

#[test]
fn gemm_agrees() {
    let dev = Device::best().expect("there is a device");
    within(2e-3, gemm::check(&dev, [65, 70, 33]));
    within(2e-3, gemm::check(&dev, [64, 64, 32]));
    within(2e-3, gemm::check(&dev, [1, 1, 1]));
}

#[test]
fn grouped_gemm_agrees() {
    let dev = Device::best().expect("there is a device");
    within(2e-2, grouped_gemm::check(&dev));
}

#[test]
fn linear_gelu_agrees() {
    let dev = Device::best().expect("there is a device");
    within(1e-2, linear_gelu::check(&dev, [21, 37, 10], true));
    within(1e-2, linear_gelu::check(&dev, [21, 37, 10], false));
    within(1e-2, linear_gelu::check(&dev, [200, 136, 96], true));
}

#[test]
fn paged_attention_agrees() {
    let dev = Device::best().expect("there is a device");
    within(3e-3, paged_attention::check(&dev, true));
    within(3e-3, paged_attention::check(&dev, false));
}

#[test]
fn rms_norm_agrees() {
    let dev = Device::best().expect("there is a device");
    within(4e-3, rms_norm::check(&dev, 5, 40));
    within(4e-3, rms_norm::check(&dev, 3, 5120));
}

#[test]
fn rope_agrees() {
    let dev = Device::best().expect("there is a device");
    within(2e-3, rope::check(&dev, 6, 3));
    within(2e-3, rope::check(&dev, 13, 1));
}

#[test]
fn router_agrees() {
    let dev = Device::best().expect("there is a device");
    within(1e-6, router::check(&dev, 7, 13));
    within(1e-6, router::check(&dev, 9, 60));
}

#[test]
fn softmax_agrees() {
    let dev = Device::best().expect("there is a device");
    within(1e-6, softmax::check(&dev, 4, 13));
    within(1e-6, softmax::check(&dev, 3, 1024));
    within(1e-6, softmax::check(&dev, 1, 1));
}

#[test]
fn split_k_agrees() {
    let dev = Device::best().expect("there is a device");
    within(3e-3, split_k::check(&dev, [33, 45, 19], 3));
    within(3e-3, split_k::check(&dev, [8, 8, 3], 4));
}

#[test]
fn triton_layer_norm_agrees() {
    let dev = Device::best().expect("there is a device");
    within(2e-3, triton_layer_norm::check::<f16>(&dev, 3, 300));
    within(1e-5, triton_layer_norm::check::<f32>(&dev, 2, 256));
    within(1e-5, triton_layer_norm::check::<f32>(&dev, 1, 5));
}

#[test]
fn triton_softmax_agrees() {
    let dev = Device::best().expect("there is a device");
    within(1e-6, triton_softmax::check(&dev, 5, 781));
    within(1e-6, triton_softmax::check(&dev, 7, 99));
    within(1e-6, triton_softmax::check(&dev, 1, 1));
}

#[test]
fn triton_vector_add_agrees() {
    let dev = Device::best().expect("there is a device");
    within(1e-6, triton_vector_add::check(&dev, 5000));
    within(1e-6, triton_vector_add::check(&dev, 1024));
    within(1e-6, triton_vector_add::check(&dev, 0));
}

#[test]
fn vector_add_agrees() {
    let dev = Device::best().expect("there is a device");
    within(1e-6, vector_add::check(&dev, 5000));
    within(1e-6, vector_add::check(&dev, 1));
    within(1e-6, vector_add::check(&dev, 0));
}

#[test]
fn w4a16_agrees() {
    let dev = Device::best().expect("there is a device");
    within(1e-2, w4a16::check(&dev, [9, 11, 40]));
    within(1e-2, w4a16::check(&dev, [8, 8, 8]));
}
