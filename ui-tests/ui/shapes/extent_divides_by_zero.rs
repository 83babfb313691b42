//! A constant expression without a value.
use titan::prelude::*;

#[titan::kernel(instances((D, G) in [(64, 0)]))]
fn k<const D: i32, const G: i32>(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<{ D / G }>([p]));
}

fn main() {}
