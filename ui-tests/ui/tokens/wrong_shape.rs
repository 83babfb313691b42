//! The stored tile has the shape of the place.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<8, 16>() {
        let v = x.load_tile::<16, 8>(out.index());
        out.store(v);
    }
}

fn main() {}
