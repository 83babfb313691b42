//! The twin of `ui/fifteen/15_never_stored.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 64)))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<64>([p]) * 2.0;
    y.store_tile([p], v);
}
