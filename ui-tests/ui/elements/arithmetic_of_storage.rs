//! Eight-bit floats are storage: they are cast before they are added.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<e4m3, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]);
    y.store_tile([p], (v + v).cast::<f32>());
}

fn main() {}
