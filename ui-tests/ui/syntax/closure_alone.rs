//! A closure that is not the argument of `map`, `reduce` or `scan`.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]);
    let double = |v: f32| v * 2.0;
    y.store_tile([p], v.map(double));
}

fn main() {}
