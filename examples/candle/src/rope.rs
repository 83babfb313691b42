//! Rotary position embedding.

use titan::dispatch;
use titan::prelude::*;

/// Half-split (NeoX) rotation of `x[b, t, h, ..]` by the angle of `t`, `BH` heads of a token per program.
#[titan::kernel(
    instances(T in [f16, bf16, f32], (BH, D) in [(8, 64), (32, 64), (8, 128), (32, 128)]),
    grid(cdiv(H, BH), L, B),
)]
fn kernel<T: Float, const BH: i32, const D: i32>(
    #[shape(B, L, H, D)] x: &Tensor<T, 4>,
    #[shape(_, D / 2)] cos: &Tensor<T, 2>,
    #[shape(_, D / 2)] sin: &Tensor<T, 2>,
    #[shape(B, L, H, D)] y: &mut Tensor<T, 4>,
) {
    let (h, t, b) = (program_id(0), program_id(1), program_id(2));
    let (x, mut y) = (x.index::<0>(b).index::<0>(t), y.index_mut::<0>(b));
    let mut y = y.index_mut::<0>(t);
    let c = cos.index::<0>(t).load_tile::<{ D / 2 }>([0]).cast::<f32>();
    let s = sin.index::<0>(t).load_tile::<{ D / 2 }>([0]).cast::<f32>();
    let lo = x.load_tile::<BH, { D / 2 }>([h, 0]).cast::<f32>();
    let hi = x.load_tile::<BH, { D / 2 }>([h, 1]).cast::<f32>();
    // Both before the first is stored: a store ends what the CPU computes block by block.
    let (first, second) = (lo * c.row() - hi * s.row(), hi * c.row() + lo * s.row());
    y.store_tile([h, 0], first.cast());
    y.store_tile([h, 1], second.cast());
}

/// The rotation of `x`, `[B, H, T, D]`, by the tables of cosines and sines, whose rows are positions.
///
/// # Errors
/// If `D` is not 64 or 128, or the element types differ.
pub fn rope(
    x: &candle_core::Tensor,
    cos: &candle_core::Tensor,
    sin: &candle_core::Tensor,
) -> candle_core::Result<candle_core::Tensor> {
    let (_, heads, _, dim) = x.dims4()?;
    let block = if heads <= 8 { 8 } else { 32 };
    titan_candle::apply("rope", [x, cos, sin], (x.shape(), x.dtype()), |on, [x, cos, sin], mut y| {
        let (x, mut y) = (x.permute(&[0, 2, 1, 3])?, y.permute_mut(&[0, 2, 1, 3])?);
        on.run(dispatch!(kernel::<_, block, { dim as i32 }>(&x, &cos, &sin, &mut y)))
    })
}
