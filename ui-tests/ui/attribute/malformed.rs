//! `instances` that does not read as `names in [values]`.
use titan::prelude::*;

#[titan::kernel(instances(N = [8, 16]))]
fn k<const N: i32>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<N>([p]));
}

fn main() {}
