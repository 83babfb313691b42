//! A grid that is rounded down leaves the end of the output as it was.
use titan::prelude::*;

#[titan::kernel(grid(N / 64))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64>([p]));
}

fn main() {}
