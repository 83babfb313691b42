//! The twin of `ui/syntax/repeated_array.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = Tile::<f32, 8>::full(1.0);
    y.store_tile([p], v);
}
