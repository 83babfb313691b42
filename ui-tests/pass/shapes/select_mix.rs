//! The twin of `ui/shapes/select_mix.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<16>([p]);
    y.store_tile([p], select(v > 0.0, v, Tile::<f32, 16>::zeros()));
}
