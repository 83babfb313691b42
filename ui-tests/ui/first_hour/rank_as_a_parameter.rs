//! A kernel for tensors of any rank.
use titan::prelude::*;

#[titan::kernel]
fn k<const R: usize>(x: &Tensor<f32, R>, y: &mut Tensor<f32, R>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64>([p]));
}

fn main() {}
