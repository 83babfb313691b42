//! An error of ours in all instances is one error, and names none of them.
use titan::prelude::*;

#[titan::kernel(instances(T in [f16, bf16], N in [8, 16]))]
fn k<T: Float, const N: i32>(x: &Tensor<T, 1>, y: &mut Tensor<T, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<N>([p]) as T);
}

fn main() {}
