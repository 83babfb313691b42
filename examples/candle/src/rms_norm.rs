//! RMS norm along the last axis.

use titan::dispatch;
use titan::prelude::*;

/// `y = x / rms(x) · w` for rows of up to `W` columns, one row per program, which is read once.
#[titan::kernel(instances(T in [f16, bf16, f32], W in [128, 1024, 2048, 4096]), grid(M, B, A), require(N <= W))]
fn row<T: Float, const W: i32>(
    #[shape(A, B, M, N)] x: &Tensor<T, 4>,
    #[shape(N)] w: &Tensor<T, 1>,
    #[shape(A, B, M, N)] y: &mut Tensor<T, 4>,
    eps: f32,
) {
    let (m, b, a) = (program_id(0), program_id(1), program_id(2));
    let mut y = y.index_mut::<0>(a);
    let v = x.index::<0>(a).index::<0>(b).load_tile::<1, W>([m, 0]).cast::<f32>();
    let by = ((v * v).reduce_sum::<1>() / N as f32 + eps).rsqrt();
    y.index_mut::<0>(b).store_tile([m, 0], (v * by.col() * w.load_tile::<W>([0]).cast::<f32>().row()).cast());
}

/// The same for longer rows, `W` columns at a time.
#[titan::kernel(instances(T in [f16, bf16, f32], W in [1024]), grid(M, B, A))]
fn parts<T: Float, const W: i32>(
    #[shape(A, B, M, N)] x: &Tensor<T, 4>,
    #[shape(N)] w: &Tensor<T, 1>,
    #[shape(A, B, M, N)] y: &mut Tensor<T, 4>,
    eps: f32,
) {
    let (m, b, a) = (program_id(0), program_id(1), program_id(2));
    let (x, mut y) = (x.index::<0>(a).index::<0>(b), y.index_mut::<0>(a));
    let mut y = y.index_mut::<0>(b);
    let mut squares = Tile::<f32, 1>::zeros();
    for i in 0..cdiv(N, W) {
        let v = x.load_tile::<1, W>([m, i]).cast::<f32>();
        squares += (v * v).reduce_sum::<1>();
    }
    let by = (squares / N as f32 + eps).rsqrt();
    for i in 0..cdiv(N, W) {
        let v = x.load_tile::<1, W>([m, i]).cast::<f32>() * by.col();
        y.store_tile([m, i], (v * w.load_tile::<W>([i]).cast::<f32>().row()).cast());
    }
}

/// `x / rms(x) · w` along the last axis.
///
/// # Errors
/// If the last axis is not that of `w`, or the element types differ.
pub fn rms_norm(
    x: &candle_core::Tensor,
    w: &candle_core::Tensor,
    eps: f32,
) -> candle_core::Result<candle_core::Tensor> {
    let width = [128, 1024, 2048, 4096].into_iter().find(|width| w.elem_count() <= *width as usize);
    titan_candle::apply("rms-norm", [x, w], (x.shape(), x.dtype()), |on, [x, w], mut y| {
        let (x, mut y) = (x.with_rank(4)?, y.with_rank_mut(4)?);
        on.run(match width {
            Some(width) => dispatch!(row::<_, width>(&x, &w, &mut y, eps)),
            None => dispatch!(parts::<_, 1024>(&x, &w, &mut y, eps)),
        })
    })
}
