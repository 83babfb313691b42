//! The twin of `ui/parts/at_in_a_closure.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<i32, 1>, table: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let (at, t) = (x.load_tile::<16>([0]), table.load_tile::<16>([0]));
    y.store_tile([program_id(0)], table.gather([at]) + t.at([3]));
}
