//! The twin of `ui/shape_decl/on_a_scalar.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(n: i32, y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], n);
}
