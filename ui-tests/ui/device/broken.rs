//! A broken device function is reported once, not in the kernels that call it.
use titan::prelude::*;

#[titan::device]
fn double<S: Shape>(x: Tile<f32, S>) -> Tile<f32, S> {
    let y = vec![1.0];
    x * 2.0
}

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], double(x.load_tile::<8>([p])));
}

fn main() {}
