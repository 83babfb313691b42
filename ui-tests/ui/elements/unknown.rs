//! Nothing says to what the values are cast.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]).cast();
    y.store_tile([p], v.cast::<f32>());
}

fn main() {}
