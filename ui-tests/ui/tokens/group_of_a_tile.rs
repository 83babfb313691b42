//! Only the tiles of `ragged` have a group.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<8, 8>() {
        tprint!("{}", out.group());
        out.store(Tile::zeros());
    }
}

fn main() {}
