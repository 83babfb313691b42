//! A parameter is a tensor behind one reference.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 64)))]
fn copied(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64>([p]));
}

fn main() {}
