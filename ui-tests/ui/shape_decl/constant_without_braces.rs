//! A single name in a shape is the name of an extent, which hides a constant.
use titan::prelude::*;

#[titan::constant]
const BLOCK: i32 = 64;

#[titan::kernel]
fn k(#[shape(BLOCK)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<BLOCK>([0]));
}

fn main() {}
