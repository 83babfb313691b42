//! What the tests on the CPU and on CUDA devices have in common: inputs, candle's own operators, comparisons, and bad input.

pub mod bad;
pub mod theirs;

use candle_core::{DType, Device, Result, Tensor};

pub const DTYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// Numbers from -1 to 1 that differ with the seed, as a tensor on the CPU.
pub fn numbers(seed: u32, shape: &[usize], dtype: DType) -> Tensor {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| next()).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap().to_dtype(dtype).unwrap()
}

/// Codes of 4 bits, two in each byte, as a tensor on the CPU.
pub fn codes(rows: usize, columns: usize) -> Tensor {
    let codes: Vec<u8> = (0..rows * columns / 2).map(|i| (i * 37 + i / 5 + 11) as u8).collect();
    Tensor::from_vec(codes, (rows, columns / 2), &Device::Cpu).unwrap()
}

/// The same elements in the first axes' reverse order in memory, behind some others: a layout with strides and an offset.
pub fn scattered(x: &Tensor) -> Result<Tensor> {
    let last = x.rank() - 1;
    let longer = Tensor::cat(&[&x.narrow(0, 0, 1)?, x], 0)?;
    let wider = Tensor::cat(&[&longer, &longer.narrow(last, 0, 1)?], last)?;
    let swapped = if last >= 2 { wider.transpose(0, 1)?.contiguous()?.transpose(0, 1)? } else { wider };
    let part = swapped.narrow(0, 1, x.dim(0)?)?.narrow(last, 0, x.dim(last)?)?;
    assert!(part.layout().start_offset() > 0 && !part.is_contiguous());
    Ok(part)
}

/// The greatest difference, relative to the greatest element where that is more than 1.
pub fn difference(a: &Tensor, b: &Tensor) -> f64 {
    assert_eq!((a.shape(), a.dtype()), (b.shape(), b.dtype()));
    let list = |t: &Tensor| t.to_dtype(DType::F64).unwrap().flatten_all().unwrap().to_vec1::<f64>().unwrap();
    let (a, b) = (list(a), list(b));
    let greatest = b.iter().fold(1.0f64, |top, v| top.max(v.abs()));
    assert!(a.iter().all(|v| v.is_finite()));
    a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) / greatest
}

/// What two roundings in an element type differ by, at most, for numbers around 1.
pub fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F32 => 3e-6,
        DType::F16 => 2.5e-3,
        _ => 2e-2,
    }
}
