//! A load of the wrong rank is one error, also if its tile is stored.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<64, 64>([p, 0]);
    y.store_tile([p], v);
}

fn main() {}
