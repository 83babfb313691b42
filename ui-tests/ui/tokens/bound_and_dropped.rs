//! A binding does not store a tile.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<8, 8>() {
        let _mine = out;
        tprint!("dropped");
    }
}

fn main() {}
