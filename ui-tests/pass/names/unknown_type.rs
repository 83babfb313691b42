//! The twin of `ui/names/unknown_type.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let sum = Tile::<f32, 8>::zeros();
    y.store_tile([p], x.load_tile::<8>([p]) + sum);
}
