//! The host evaluates arithmetic on extents, not functions.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(N)] y: &mut Tensor<f32, 1>, #[shape(next(N))] x: &Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn main() {}
