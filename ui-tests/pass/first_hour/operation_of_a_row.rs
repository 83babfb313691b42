//! The twin of `ui/first_hour/operation_of_a_row.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, b: &Tensor<f32, 1>, y: &mut Tensor<f32, 2>) {
    let (i, j) = (program_id(0), program_id(1));
    let scale = b.load_tile::<64>([j]).exp().row();
    y.store_tile([i, j], x.load_tile::<16, 64>([i, j]) * scale);
}
