//! A matrix product with weights of 4 bits.

use titan::ElemType;
use titan::dispatch;
use titan::prelude::*;

/// `y = x · ((code − 8) · scale)ᵀ`, one scale for each 32 codes of a row: products with many rows of `x`.
#[titan::kernel(
    instances(T in [f16, bf16, f32], (BM, BN, BK) in [(64, 64, 64)]),
    grid(cdiv(M, BM), cdiv(N, BN)), require(K % 32 == 0), allow(no_code),
)]
fn matrix<T: Float, const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, K)] x: &Tensor<T, 2>,
    #[shape(N, K)] code: &Tensor<u4, 2>,
    #[shape(N, K / 32)] scale: &Tensor<T, 2>,
    #[shape(M, N)] y: &mut Tensor<T, 2>,
) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, BM, BN>::zeros();
    for k in pipelined(0..cdiv(K, BK)) {
        let s = scale.load_tile::<BN, { BK / 32 }>([n, k]).cast::<f32>().broadcast::<2, 32>().reshape::<BN, BK>();
        let weight = (code.load_tile::<BN, BK>([n, k]).cast::<f32>() - 8.0) * s;
        acc = mma(x.load_tile::<BM, BK>([m, k]), weight.cast::<T>().t(), acc);
    }
    y.store_tile([m, n], acc.cast());
}

/// The same for few rows of `x`, one per program: what is common to 32 codes is applied to their sum.
#[titan::kernel(
    instances(T in [f16, bf16, f32], (BN, BK) in [(8, 1024)]),
    grid(cdiv(N, BN), M), require(K % 32 == 0), allow(no_code),
)]
fn vector<T: Float, const BN: i32, const BK: i32>(
    #[shape(M, K)] x: &Tensor<T, 2>,
    #[shape(N, K)] code: &Tensor<u4, 2>,
    #[shape(N, K / 32)] scale: &Tensor<T, 2>,
    #[shape(M, N)] y: &mut Tensor<T, 2>,
) {
    let (n, m) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, BN>::zeros();
    for k in 0..cdiv(K, BK) {
        let part = x.index::<0>(m).load_tile::<BK>([k]).cast::<f32>().reshape::<{ BK / 32 }, 32>();
        let eight = part.reduce_sum::<1>() * 8.0;
        // The shape of the sums from the start, so that the CPU needs no tile between the products and the sums.
        let codes = code.load_tile::<BN, BK>([n, k]).reshape::<BN, { BK / 32 }, 32>().cast::<f32>();
        let sums = (codes * part.broadcast::<0, BN>()).reduce_sum::<2>() - eight.row();
        acc += (sums * scale.load_tile::<BN, { BK / 32 }>([n, k]).cast::<f32>()).reduce_sum::<1>();
    }
    y.index_mut::<0>(m).store_tile([n], acc.cast());
}

/// `x · wᵀ` for weights `(code − 8) · scale`: two codes in each byte of `codes`, the first in the low bits, and one scale for each 32 of a row.
///
/// # Errors
/// If the shapes do not fit together, or the element types of `x` and `scales` differ.
pub fn w4a16(
    x: &candle_core::Tensor,
    codes: &candle_core::Tensor,
    scales: &candle_core::Tensor,
) -> candle_core::Result<candle_core::Tensor> {
    let mut shape = x.dims().to_vec();
    let Some(last) = shape.last_mut() else { candle_core::bail!("w4a16: a scalar") };
    *last = codes.dim(0)?;
    let few = shape.iter().rev().skip(1).product::<usize>() <= 4;
    titan_candle::apply("w4a16", [x, codes, scales], (shape, x.dtype()), |on, [x, codes, scales], mut y| {
        let (x, codes, mut y) = (x.with_rank(2)?, codes.bits_as(ElemType::U4)?, y.with_rank_mut(2)?);
        on.run(match few {
            true => dispatch!(vector::<_, 8, 1024>(&x, &codes, &scales, &mut y)),
            false => dispatch!(matrix::<_, 64, 64, 64>(&x, &codes, &scales, &mut y)),
        })
    })
}
