//! The twin of `ui/tokens/group_of_a_tile.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 2>, off: &Tensor<i32, 1>) {
    for out in y.ragged::<8, 8>(off) {
        tprint!("{}", out.group());
        out.store(Tile::zeros());
    }
}
