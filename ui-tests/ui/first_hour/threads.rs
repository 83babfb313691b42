//! There are no threads, and no structs that say so.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let i = block_idx.x * block_dim.x + thread_idx.x;
    y.set([i], x.get([i]));
}

fn main() {}
