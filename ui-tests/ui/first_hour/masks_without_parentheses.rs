//! `&` binds closer than comparisons.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]);
    let small = v < 1.0;
    y.store_tile([p], select(v > 0.0 & small, v, 0.0));
}

fn main() {}
