//! The twin of `ui/names/assigned_without_mut.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let mut v = x.load_tile::<8>([p]);
    v += 1.0;
    y.store_tile([p], v);
}
