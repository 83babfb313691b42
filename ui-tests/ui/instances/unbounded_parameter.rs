//! A type parameter says what it is.
use titan::prelude::*;

#[titan::kernel(instances(T in [f32, f64]))]
fn k<T>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn main() {}
