//! The twin of `ui/first_hour/broadcast_of_a_column.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    y.store_tile([p, 0], x.load_tile::<16>([p]).broadcast::<1, 8>());
}
