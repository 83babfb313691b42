//! The twin of `ui/tokens/stored_of_its_load.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<8, 8>() {
        let v = out.load();
        out.store(v * 2.0);
    }
}
