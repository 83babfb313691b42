//! Both arms are of one type.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f16, 1>, y: &mut Tensor<f16, 1>, n: i32) {
    let p = program_id(0);
    let v = if n > 3 { x.load_tile::<64>([p]) } else { 0.0 };
    y.store_tile([p], v);
}

fn main() {}
