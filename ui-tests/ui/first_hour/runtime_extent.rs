//! An extent of a tile that is known only at launch.
use titan::prelude::*;

#[titan::kernel(grid(M))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M)] y: &mut Tensor<f32, 1>) {
    let m = program_id(0);
    y.store_tile([m], x.load_tile::<1, N>([m, 0]).reduce_sum::<1>());
}

fn main() {}
