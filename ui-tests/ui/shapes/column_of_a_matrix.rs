//! Only a tile of rank 1 is a column.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let t = x.load_tile::<8>([p]).reshape::<2, 4>();
    y.store_tile([p], (t * t.col()).reshape::<8>());
}

fn main() {}
