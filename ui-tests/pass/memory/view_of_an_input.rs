//! The twin of `ui/memory/view_of_an_input.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &mut Tensor<f32, 2>) {
    let p = program_id(0);
    x.index_mut::<0>(p).set([0], 1.0);
}
