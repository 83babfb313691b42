//! Only an output that may be absent would give the grid.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(N)] x: &Tensor<f32, 1>, z: Option<&mut Tensor<f32, 1>>) {
    let p = program_id(0);
    if let Some(z) = z {
        z.store_tile([p], x.load_tile::<8>([p]));
    }
}

fn main() {}
