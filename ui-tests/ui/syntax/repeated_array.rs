//! `[value; n]` is the array of the host; `full` makes a tile.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = [1.0; 8];
    y.store_tile([p], v);
}

fn main() {}
