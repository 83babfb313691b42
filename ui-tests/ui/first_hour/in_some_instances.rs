//! Only one of two element types lacks an operation.
use titan::prelude::*;

#[titan::kernel(instances(T in [f32, i32]))]
fn k<T: Num>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]).sqrt());
}

fn main() {}
