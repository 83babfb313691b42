//! The twin of `ui/outputs/scattered_and_read.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 8)))]
fn k(#[shape(N)] ix: &Tensor<i32, 1>, x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let i = ix.load_tile::<8>([program_id(0)]);
    let v = x.gather([i]);
    y.scatter([i], v + 1.0);
}
