//! `as` supports Rust's own numbers only.
use titan::prelude::*;

#[titan::kernel(instances(T in [f16, bf16]))]
fn k<T: Float>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>, s: f32) {
    let p = program_id(0);
    y.set([p], x.get([p]) * (s as T));
}

fn main() {}
