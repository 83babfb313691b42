//! The twin of `ui/syntax/vec_new.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = Tile::<f32, 8>::zeros();
    y.store_tile([p], v);
}
