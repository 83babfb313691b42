//! The twin of `ui/first_hour/greatest_of_all.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], x.load_tile::<8>([p]).reduce_max::<0>());
}
