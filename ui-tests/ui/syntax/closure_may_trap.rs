//! A trap under a condition of one element: both sides of the `if` are computed.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]).map(|e| if e > 2.0 { x.get([9]) } else { e });
    y.store_tile([p], v);
}

fn main() {}
