//! The embedding layer: rows of three tables, added and normalised.

use titan::prelude::*;

use super::norm::norm_rows;

/// `y[t] = norm(word[id[t]] + position[place[t]] + kind[0])`, `[T, H]`; a program takes `BT` tokens.
///
/// Numbers outside their table read a row of zeros.
#[titan::kernel(instances((BT, W) in [(4, 384), (4, 32)]), grid(cdiv(T, BT)), require(H <= W))]
pub fn embed<const BT: i32, const W: i32>(
    #[shape(T)] id: &Tensor<i32, 1>,
    #[shape(T)] place: &Tensor<i32, 1>,
    #[shape(_, H)] word: &Tensor<f32, 2>,
    #[shape(_, H)] position: &Tensor<f32, 2>,
    #[shape(_, H)] kind: &Tensor<f32, 2>,
    #[shape(H)] scale: &Tensor<f32, 1>,
    #[shape(H)] shift: &Tensor<f32, 1>,
    #[shape(T, H)] y: &mut Tensor<f32, 2>,
    eps: f32,
) {
    let t = program_id(0);
    let x = word.gather_rows::<BT, W>(id.load_tile_or::<BT>([t], -1), 0)
        + position.gather_rows::<BT, W>(place.load_tile_or::<BT>([t], -1), 0)
        + kind.gather_rows::<BT, W>(0, 0);
    y.store_tile([t, 0], norm_rows(x, H, scale.load_tile::<W>([0]), shift.load_tile::<W>([0]), eps));
}
