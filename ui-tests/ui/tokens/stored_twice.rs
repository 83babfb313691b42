//! A tile is stored once.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<8, 8>() {
        let v = out.load();
        out.store(v);
        out.store(v + 1.0);
    }
}

fn main() {}
