//! A `#[cfg]` inside would be ignored.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    #[cfg(debug_assertions)]
    tassert!(x.get([p]) > 0.0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn main() {}
