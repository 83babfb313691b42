//! Both sides of `select` have the shape of the mask.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<16>([p]);
    y.store_tile([p], select(v > 0.0, v, Tile::<f32, 8>::zeros()));
}

fn main() {}
