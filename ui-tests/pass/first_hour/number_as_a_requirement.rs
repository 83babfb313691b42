//! The twin of `ui/first_hour/number_as_a_requirement.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(require(N % 8 == 0))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}
