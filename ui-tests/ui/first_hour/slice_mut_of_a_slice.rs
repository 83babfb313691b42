//! A view to write of a view that only reads.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 64)))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.slice::<0>(p * 64..p * 64 + 64).slice_mut::<0>(0..32).store_tile([0], x.load_tile::<32>([2 * p]));
}

fn main() {}
