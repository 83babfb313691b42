//! The twin of `ui/parts/part_at_run_time.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>, from: i32) {
    let v = x.load_tile::<64>([0]);
    y.store_tile([program_id(0)], v.slice::<16>([48]) + x.load_at::<16>([from]));
}
