//! The twin of `ui/first_hour/threads.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let i = program_id(0);
    y.set([i], x.get([i]));
}
