//! The twin of `ui/elements/scatter_by_i64.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let i = iota::<8>();
    y.scatter([i], x.load_tile::<8>([p]));
}
