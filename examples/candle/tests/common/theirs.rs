//! What the operators are compared with: candle's own, on the CPU. Where candle's rounds in its sums of 16 bits, that in f32 is the reference.

use candle_core::{D, DType, Device, Result, Tensor};

/// candle's RMS norm.
pub fn rms_norm(x: &Tensor, w: &Tensor, eps: f32) -> Result<Tensor> {
    let wide = |t: &Tensor| t.to_dtype(DType::F32);
    candle_nn::ops::rms_norm(&wide(x)?, &wide(w)?, eps)?.to_dtype(x.dtype())
}

/// candle's gated activation.
pub fn swiglu(x: &Tensor) -> Result<Tensor> {
    candle_nn::ops::swiglu(&x.to_dtype(DType::F32)?)?.to_dtype(x.dtype())
}

/// candle's rotary embedding.
pub fn rope(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Result<Tensor> {
    candle_nn::rotary_emb::rope(x, cos, sin)
}

/// Attention of candle's matrix products and softmax, in f32.
pub fn attention(q: &Tensor, k: &Tensor, v: &Tensor, scale: f32) -> Result<Tensor> {
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

/// candle's product with the weights that the codes and scales mean, which the kernel rounds to the element type.
pub fn w4a16(x: &Tensor, codes: &Tensor, scales: &Tensor) -> Result<Tensor> {
    let (n, half) = codes.dims2()?;
    let bytes = codes.flatten_all()?.to_vec1::<u8>()?;
    let plain = bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]).map(|code| f32::from(code) - 8.0);
    let plain = Tensor::from_vec(plain.collect::<Vec<f32>>(), (n, half / 16, 32), &Device::Cpu)?;
    let scales = scales.to_dtype(DType::F32)?.unsqueeze(D::Minus1)?;
    let weights = plain.broadcast_mul(&scales)?.reshape((n, 2 * half))?.to_dtype(x.dtype())?.to_dtype(DType::F32)?;
    x.to_dtype(DType::F32)?.broadcast_matmul(&weights.t()?)?.to_dtype(x.dtype())
}
