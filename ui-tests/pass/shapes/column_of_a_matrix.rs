//! The twin of `ui/shapes/column_of_a_matrix.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let t = x.load_tile::<8>([p]).reshape::<2, 4>();
    y.store_tile([p], (t * t.reduce_sum::<1>().col()).reshape::<8>());
}
