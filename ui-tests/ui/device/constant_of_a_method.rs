//! The macro evaluates arithmetic, not methods.
use titan::prelude::*;

#[titan::constant]
const WIDTH: i32 = 2i32.pow(3);

#[titan::constant]
const TWICE: i32 = 2 * WIDTH;

#[titan::kernel]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<TWICE>([p]));
}

fn main() {}
