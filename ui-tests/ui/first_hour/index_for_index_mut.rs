//! A store through a view that only reads.
use titan::prelude::*;

#[titan::kernel(grid(B))]
fn k(#[shape(B, 64)] x: &Tensor<f32, 2>, #[shape(B, 64)] y: &mut Tensor<f32, 2>) {
    let b = program_id(0);
    let mut row = y.index::<0>(b);
    row.store_tile([0], x.index::<0>(b).load_tile::<64>([0]));
}

fn main() {}
