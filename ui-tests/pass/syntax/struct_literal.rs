//! The twin of `ui/syntax/struct_literal.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    let (a, b) = (p, 2);
    y.set([p], a * b);
}
