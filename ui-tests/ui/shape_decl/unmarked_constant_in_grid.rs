//! A grid of a constant that kernels do not see.
use titan::prelude::*;

const BLOCK: i32 = 8;

#[titan::kernel(grid(cdiv(N, BLOCK)))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn main() {}
