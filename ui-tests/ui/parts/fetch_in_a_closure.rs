//! How often a closure is executed is not defined.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<i32, 1>, count: &mut Tensor<i32, 1>, y: &mut Tensor<i32, 1>) {
    let v = x.load_tile::<64>([0]);
    y.store_tile([program_id(0)], v.map(|bin| count.fetch_add([bin], 1)));
}

fn main() {}
