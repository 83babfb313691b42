//! What an atomic update found is not given, in an operand neither.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, sum: &mut Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], 1.0 + sum.atomic_add_tile([0], x.load_tile::<8>([p])));
}

fn main() {}
