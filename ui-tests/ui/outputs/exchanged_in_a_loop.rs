//! A permutation that differs in each iteration, so that programs meet.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 16) * 2))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    for i in 0..2 {
        y.store_tile([p ^ i], x.load_tile::<8>([p]));
    }
}

fn main() {}
