//! The twin of `ui/syntax/print_placeholder.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    tprint!("program {}", p);
    y.set([p], p);
}
