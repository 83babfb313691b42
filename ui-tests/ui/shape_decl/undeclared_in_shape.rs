//! An extent computed from a name that stands nowhere alone.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(N)] y: &mut Tensor<f32, 1>, #[shape(K / 2)] x: &Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn main() {}
