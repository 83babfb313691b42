//! Axes are constants, before the parentheses.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<16, 64>([p, 0]).reduce_sum(1));
}

fn main() {}
