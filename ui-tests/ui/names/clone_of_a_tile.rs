//! Tiles are values.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let t = x.load_tile::<8>([p]);
    y.store_tile([p], t + t.clone());
}

fn main() {}
