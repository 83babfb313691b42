//! A constant of an element type that kernels do not see.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<bf16, 1>, y: &mut Tensor<bf16, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]) + bf16::ONE);
}

fn main() {}
