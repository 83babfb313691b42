//! A store that begins with the second tile of each row.
use titan::prelude::*;

#[titan::kernel(grid(M, cdiv(N, 64)))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    y.store_tile([m, n + 1], x.load_tile::<1, 64>([m, n + 1]));
}

fn main() {}
