//! More of the greatest elements than a row has.
use titan::order::top_k;
use titan::prelude::*;

#[titan::kernel(grid(cdiv(M, 4)))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, _)] y: &mut Tensor<f32, 2>, #[shape(M, _)] at: &mut Tensor<i32, 2>) {
    let p = program_id(0);
    let (best, place) = top_k::<f32, 4, 8, 16>(x.load_tile::<4, 8>([p, 0]));
    y.store_tile([p, 0], best);
    at.store_tile([p, 0], place);
}

fn main() {}
