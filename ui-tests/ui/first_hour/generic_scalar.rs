//! Scalars of a launch have one type.
use titan::prelude::*;

#[titan::kernel(instances(T in [f32, f16]))]
fn k<T: Float>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>, s: T) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]) * s);
}

fn main() {}
