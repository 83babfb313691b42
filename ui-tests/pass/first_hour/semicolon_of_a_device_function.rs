//! The twin of `ui/first_hour/semicolon_of_a_device_function.rs`, without the mistake.
use titan::prelude::*;

#[titan::device]
fn twice(x: f32) -> f32 {
    let y = x + x;
    y
}

#[titan::kernel(grid(N))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], twice(x.get([p])));
}
