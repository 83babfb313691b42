//! The body gives another type than the signature.
use titan::prelude::*;

#[titan::device]
fn length<const N: i32>(x: Tile<f32, N>) -> f32 {
    (x * x).reduce_sum::<0>().cast::<f16>()
}

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], length(x.load_tile::<8>([p])));
}

fn main() {}
