//! A choice per element is no branch, and its arms are not another mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]);
    y.store_tile([p], if v > 0.0 { v } else { 0.0 });
}

fn main() {}
