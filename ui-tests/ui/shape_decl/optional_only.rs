//! A name that only an optional tensor declares may have no value.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 1>, #[shape(N)] bias: Option<&Tensor<f32, 1>>) {
    let p = program_id(0);
    if let Some(b) = bias {
        y.store_tile([p], b.load_tile::<8>([p]));
    }
}

fn main() {}
