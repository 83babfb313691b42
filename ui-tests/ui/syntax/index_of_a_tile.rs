//! A tile is used as a whole.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let t = x.load_tile::<8>([p]);
    y.set([p], t[0]);
}

fn main() {}
