//! The twin of `ui/first_hour/function_of_a_number_type.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], x.get([p]).max(0.0));
}
