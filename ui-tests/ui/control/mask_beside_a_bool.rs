//! `&&` is of two `bool`s, a mask is neither.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]);
    if p > 0 && v > 0.0 {
        y.store_tile([p], v);
    }
}

fn main() {}
