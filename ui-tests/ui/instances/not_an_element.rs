//! A type that is not an element type.
use titan::prelude::*;

#[titan::kernel(instances(T in [f16, String]))]
fn copy<T: Float>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn main() {}
