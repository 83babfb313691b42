//! The twin of `ui/elements/literals_of_two_kinds.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(s: f32, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], s * (1.0 + 0.5));
}
