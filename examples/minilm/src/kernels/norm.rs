//! Layer norm: of looked-up rows, and of a sum of two.

use titan::prelude::*;

/// Each row less its mean, over the root of its variance plus `eps`, scaled and shifted; the first `n` columns count.
///
/// The other columns of `x` are zero.
#[titan::device]
pub fn norm_rows<const BT: i32, const W: i32>(
    x: Tile<f32, BT, W>,
    n: i32,
    scale: Tile<f32, W>,
    shift: Tile<f32, W>,
    eps: f32,
) -> Tile<f32, BT, W> {
    let mean = x.reduce_sum::<1>() / n as f32;
    let inside = (iota::<W>() < n).broadcast::<0, BT>();
    let centred = select(inside, x - mean.col(), 0.0);
    let variance = (centred * centred).reduce_sum::<1>() / n as f32;
    centred * (variance + eps).rsqrt().col() * scale.row() + shift.row()
}

/// `y = norm(x + residual)`, all of `[T, H]`; a program takes `BT` whole rows, at most `W` wide.
#[titan::kernel(instances((BT, W) in [(4, 384), (4, 32)]), grid(cdiv(T, BT)), require(H <= W))]
pub fn add_norm<const BT: i32, const W: i32>(
    #[shape(T, H)] x: &Tensor<f32, 2>,
    #[shape(T, H)] residual: &Tensor<f32, 2>,
    #[shape(H)] scale: &Tensor<f32, 1>,
    #[shape(H)] shift: &Tensor<f32, 1>,
    #[shape(T, H)] y: &mut Tensor<f32, 2>,
    eps: f32,
) {
    let at = [program_id(0), 0];
    let sum = x.load_tile::<BT, W>(at) + residual.load_tile::<BT, W>(at);
    y.store_tile(at, norm_rows(sum, H, scale.load_tile::<W>([0]), shift.load_tile::<W>([0]), eps));
}
