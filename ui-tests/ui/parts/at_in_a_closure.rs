//! An element that is picked by the argument of a closure.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<i32, 1>, table: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let (at, t) = (x.load_tile::<16>([0]), table.load_tile::<16>([0]));
    y.store_tile([program_id(0)], at.map(|i| t.at([i])));
}

fn main() {}
