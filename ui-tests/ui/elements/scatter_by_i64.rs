//! Index tiles are `i32` where they write, too.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let i = iota::<8>().cast::<i64>();
    y.scatter([i], x.load_tile::<8>([p]));
}

fn main() {}
