//! `split` halves the last axis.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    let (even, odd) = x.load_tile::<4, 8>([p, 0]).split::<2, 8>();
    y.store_tile([p, 0], even + odd);
}

fn main() {}
