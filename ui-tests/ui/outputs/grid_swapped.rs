//! The extents of the grid are in the order of another axis.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 16), cdiv(M, 64)))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    y.store_tile([m, n], x.load_tile::<64, 16>([m, n]));
}

fn main() {}
