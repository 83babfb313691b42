//! An output tile is stored once, also out of a staging slot.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 2>) {
    let ring = Staging::<Smem<f32, 8, 8>, 2>::new();
    for out in y.tiles::<8, 8>() {
        let written = ring.acquire().write(out.load() + 1.0);
        out.store(Tile::zeros());
        out.store_from(written).wait();
    }
}

fn main() {}
