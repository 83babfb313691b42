//! Two outputs that imply different grids.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>, z: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<16>([p]);
    y.store_tile([p], v);
    let (even, _) = v.split::<8>();
    z.store_tile([p], even);
}

fn main() {}
