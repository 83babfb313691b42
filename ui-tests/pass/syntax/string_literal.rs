//! The twin of `ui/syntax/string_literal.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>) {
    let name = 1;
    y.set([program_id(0)], name);
}
