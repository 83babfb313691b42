//! While tiles of an output are owned, the rest of it is out of reach.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<8, 8>() {
        let v = y.load_tile::<8, 8>(out.index());
        out.store(v);
    }
}

fn main() {}
