//! The receiver of `store` is gone when its argument is computed.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<8, 8>() {
        out.store(out.load() * 2.0);
    }
}

fn main() {}
