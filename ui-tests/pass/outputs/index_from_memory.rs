//! The twin of `ui/outputs/index_from_memory.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] row: &Tensor<i32, 1>, #[shape(N)] x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let r = row.load_tile::<1>([p]);
    y.scatter([r], x.load_tile::<1>([p]));
}
