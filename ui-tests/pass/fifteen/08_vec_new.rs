//! The twin of `ui/fifteen/08_vec_new.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let list = [x.load_tile::<64>([p])];
    y.store_tile([p], list[0]);
}
