//! The twin of `ui/tokens/dropped.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<8, 8>() {
        let v = x.load_tile::<8, 8>(out.index());
        out.store(v);
    }
}
