//! The operators beside candle's own on the CPU: the time of each, and their ratio, measured in turn.
//!
//! Both sides of a ratio run one after the other on the same tensors, so that other work of the machine concerns both. The median of the ratios
//! is printed with the quartiles; above 1, TITAN is faster. On a busy machine the ratio of the CPU times of all rounds says more; it is printed on
//! Linux. `taskset -c 0 cargo run --release` gives both one thread. An argument chooses the lines that contain it.

use candle_core::{D, DType, Device, Result, Tensor};
use candle_operators::{attention, rms_norm, rope, swiglu, w4a16};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 21;

type Run<'a> = &'a dyn Fn() -> Result<Tensor>;

fn main() -> Result<()> {
    println!("on {}", titan::Device::cpu());
    println!(
        "| operator | elements | TITAN, µs | candle, µs | ratio (quartiles) | of CPU times |\n|---|---|--:|--:|---|--:|"
    );
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
    let line = format!("| {what} | {dtype:?} |");
    if std::env::args().nth(1).is_some_and(|part| !line.contains(&part)) {
        return Ok(());
    }
    // The first time, kernels are made ready and pages of memory are touched.
    let times = |run: Run<'_>| -> Result<usize> {
        run()?;
        let start = Instant::now();
        run()?;
        Ok((4e-3 / start.elapsed().as_secs_f64()).ceil().clamp(1.0, 1000.0) as usize)
    };
    let (often, oftener) = (times(ours)?, times(theirs)?);
    let rounds = (0..ROUNDS).map(|_| Ok([timed(ours, often)?, timed(theirs, oftener)?])).collect::<Result<Vec<_>>>()?;
    let sorted = |of: &dyn Fn(&[Timed; 2]) -> f64| {
        let mut all: Vec<f64> = rounds.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all
    };
    let [a, b] = [0, 1].map(|side| sorted(&|round| round[side].wall)[ROUNDS / 2]);
    let ratios = sorted(&|round| round[1].wall / round[0].wall);
    let (low, middle, high) = (ratios[ROUNDS / 4], ratios[ROUNDS / 2], ratios[3 * ROUNDS / 4]);
    let [ours, theirs] = [0, 1].map(|side| rounds.iter().map(|round| round[side].cpu).sum::<f64>());
    println!("{line} {a:.1} | {b:.1} | {middle:.2} ({low:.2} to {high:.2}) | {:.2} |", theirs / ours);
    Ok(())
}

/// Microseconds for each of a number of runs.
struct Timed {
    wall: f64,
    /// Of all threads of this process.
    cpu: f64,
}

fn timed(run: Run<'_>, often: usize) -> Result<Timed> {
    let (start, used) = (Instant::now(), cpu_seconds());
    for _ in 0..often {
        black_box(run()?);
    }
    let each = |seconds: f64| seconds * 1e6 / often as f64;
    Ok(Timed { wall: each(start.elapsed().as_secs_f64()), cpu: each(cpu_seconds() - used) })
}

/// The CPU time of this process in seconds; 0 where the system does not say.
fn cpu_seconds() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = threads.filter_map(|thread| {
        let used = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        used.split_whitespace().next()?.parse::<f64>().ok()
    });
    nanoseconds.sum::<f64>() * 1e-9
}
