//! A program reads what another one writes.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 8)))]
fn k(#[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], y.load_tile::<8>([p + 1]));
}

fn main() {}
