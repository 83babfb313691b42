//! The twin of `ui/tokens/wrong_shape.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<8, 16>() {
        let v = x.load_tile::<8, 16>(out.index());
        out.store(v);
    }
}
