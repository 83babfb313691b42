//! A scalar is always there.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>, z: f32) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]) * z);
}
