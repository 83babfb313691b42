//! An extent of 48: not a mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    y.store_tile([m, n], x.load_tile::<48, 60>([m, n]) * 2.0);
}
