//! The twin of `ui/parts/fetch_in_a_closure.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<i32, 1>, count: &mut Tensor<i32, 1>, y: &mut Tensor<i32, 1>) {
    let v = x.load_tile::<64>([0]);
    y.store_tile([program_id(0)], count.fetch_add([v], Tile::<i32, 64>::ones()));
}
