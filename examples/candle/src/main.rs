//! The operators beside candle's own on the CPU: the time of each, and their ratio, measured in turn.
//!
//! Both sides of a ratio run one after the other on the same tensors, so that other work of the machine concerns both. The median of the ratios
//! is printed with the quartiles; above 1, TITAN is faster. `taskset -c 0 cargo run --release` gives both one thread.

use candle_core::{D, DType, Device, Result, Tensor};
use candle_operators::{attention, rms_norm, rope, swiglu, w4a16};
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 31;

type Run<'a> = &'a dyn Fn() -> Result<Tensor>;

fn main() -> Result<()> {
    println!("on {}", titan::Device::cpu());
    println!("| operator | elements | TITAN, µs | candle, µs | ratio (quartiles) |\n|---|---|--:|--:|---|");
    for dtype in [DType::F32, DType::F16, DType::BF16] {
        norms_and_activations(dtype)?;
        for (n, nk) in [(256, 256), (1, 512)] {
            attentions(dtype, n, nk)?;
        }
        for m in [1, 64] {
            products(dtype, m)?;
        }
    }
    Ok(())
}

fn norms_and_activations(dtype: DType) -> Result<()> {
    for rows in [1, 512] {
        let (x, w) = (numbers(&[rows, 2048], dtype)?, numbers(&[2048], dtype)?);
        pair(&format!("RMS norm [{rows}, 2048]"), dtype, &|| rms_norm(&x, &w, 1e-5), &|| {
            candle_nn::ops::rms_norm(&x, &w, 1e-5)
        })?;
        let x = numbers(&[rows, 2 * 5632], dtype)?;
        pair(&format!("SwiGLU [{rows}, 2 · 5632]"), dtype, &|| swiglu(&x), &|| candle_nn::ops::swiglu(&x))?;
        let (x, table) = (numbers(&[1, rows, 32, 64], dtype)?, numbers(&[rows, 32], dtype)?);
        // As a model has them: heads beside each other. candle's operator needs the copy.
        let x = x.transpose(1, 2)?;
        let theirs = || candle_nn::rotary_emb::rope(&x.contiguous()?, &table, &table);
        pair(&format!("RoPE [1, 32, {rows}, 64]"), dtype, &|| rope(&x, &table, &table), &theirs)?;
    }
    Ok(())
}

/// Sixteen heads of 64, four of keys, as a model has them: heads beside each other.
fn attentions(dtype: DType, n: usize, nk: usize) -> Result<()> {
    let q = numbers(&[1, n, 16, 64], dtype)?;
    let (k, v) = (numbers(&[1, nk, 4, 64], dtype)?, numbers(&[1, nk, 4, 64], dtype)?);
    let [tq, tk, tv] = [&q, &k, &v].map(|t| t.transpose(1, 2));
    let (tq, tk, tv) = (tq?, tk?, tv?);
    let mask: Vec<f32> = (0..n * nk).map(|i| if i % nk <= i / nk + nk - n { 0.0 } else { f32::NEG_INFINITY }).collect();
    let mask = Tensor::from_vec(mask, (n, nk), &Device::Cpu)?.to_dtype(dtype)?;
    let plain = || {
        let each = |t: &Tensor| t.unsqueeze(2)?.expand((1, 4, 4, nk, 64))?.reshape((1, 16, nk, 64));
        let scores = (tq.contiguous()?.matmul(&each(&tk)?.t()?)? * 0.125)?.broadcast_add(&mask)?;
        candle_nn::ops::softmax_last_dim(&scores)?.matmul(&each(&tv)?)
    };
    let ours = || attention(&tq, &tk, &tv, 0.125);
    pair(&format!("attention, {n} of {nk}, beside products"), dtype, &ours, &plain)?;
    let causal = candle_nn::attention::AttnMask::causal_with_offset(nk - n);
    let flash = || match dtype {
        DType::F32 => candle_nn::attention::flash_attn::<f32>(&q, &k, &v, 0.125, causal.clone(), None, None),
        DType::F16 => {
            candle_nn::attention::flash_attn::<titan::lang::f16>(&q, &k, &v, 0.125, causal.clone(), None, None)
        }
        _ => candle_nn::attention::flash_attn::<titan::lang::bf16>(&q, &k, &v, 0.125, causal.clone(), None, None),
    };
    pair(&format!("attention, {n} of {nk}, beside its CPU flash attention"), dtype, &ours, &flash)
}

fn products(dtype: DType, m: usize) -> Result<()> {
    let (n, k) = (2048, 2048);
    let codes: Vec<u8> = (0..n * k / 2).map(|i| (i * 37 + i / 5 + 11) as u8).collect();
    let plain: Vec<f32> =
        codes.iter().flat_map(|byte| [byte & 15, byte >> 4]).map(|code| f32::from(code) - 8.0).collect();
    let (codes, scales) = (Tensor::from_vec(codes, (n, k / 2), &Device::Cpu)?, numbers(&[n, k / 32], dtype)?);
    let plain = Tensor::from_vec(plain, (n, k / 32, 32), &Device::Cpu)?.to_dtype(dtype)?;
    let weights = plain.broadcast_mul(&scales.unsqueeze(D::Minus1)?)?.reshape((n, k))?;
    let x = numbers(&[m, k], dtype)?;
    let ours = || w4a16(&x, &codes, &scales);
    pair(&format!("w4a16 [{m}, {k}] · [{k}, {n}], beside converted weights"), dtype, &ours, &|| {
        x.matmul(&weights.t()?)
    })?;
    let theirs = candle_core::quantized::QTensor::quantize(
        &weights.to_dtype(DType::F32)?,
        candle_core::quantized::GgmlDType::Q4_0,
    )?;
    let theirs = candle_core::quantized::QMatMul::from_qtensor(theirs)?;
    let wide = x.to_dtype(DType::F32)?;
    pair(&format!("w4a16 [{m}, {k}] · [{k}, {n}], beside its Q4_0"), dtype, &ours, &|| {
        candle_core::Module::forward(&theirs, &wide)
    })
}

/// Numbers from -1 to 1.
fn numbers(shape: &[usize], dtype: DType) -> Result<Tensor> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| next()).collect();
    Tensor::from_vec(values, shape, &Device::Cpu)?.to_dtype(dtype)
}

/// Measures both, each as often as takes a few milliseconds, and prints a line.
fn pair(what: &str, dtype: DType, ours: Run<'_>, theirs: Run<'_>) -> Result<()> {
    // The first time, kernels are made ready and pages of memory are touched.
    let times = |run: Run<'_>| -> Result<usize> {
        run()?;
        let start = Instant::now();
        run()?;
        Ok((4e-3 / start.elapsed().as_secs_f64()).ceil().clamp(1.0, 1000.0) as usize)
    };
    let (often, oftener) = (times(ours)?, times(theirs)?);
    let mut rounds: Vec<(f64, f64)> = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push((timed(ours, often)?, timed(theirs, oftener)?));
    }
    let middle = |of: &dyn Fn(&(f64, f64)) -> f64, at: usize| {
        let mut all: Vec<f64> = rounds.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[at]
    };
    let ratio = |at| middle(&|(a, b)| b / a, at);
    let (a, b) = (middle(&|r| r.0, ROUNDS / 2), middle(&|r| r.1, ROUNDS / 2));
    let (low, ratio, high) = (ratio(ROUNDS / 4), ratio(ROUNDS / 2), ratio(3 * ROUNDS / 4));
    println!("| {what} | {dtype:?} | {a:.1} | {b:.1} | {ratio:.2} ({low:.2} to {high:.2}) |");
    Ok(())
}

/// Microseconds for each of a number of runs.
fn timed(run: Run<'_>, often: usize) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..often {
        black_box(run()?);
    }
    Ok(Duration::as_secs_f64(&start.elapsed()) * 1e6 / often as f64)
}
