//! Parameters are described with the function.
use titan::prelude::*;

#[titan::kernel]
fn k(
    /// The input.
    x: &Tensor<f32, 1>,
    y: &mut Tensor<f32, 1>,
) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn main() {}
