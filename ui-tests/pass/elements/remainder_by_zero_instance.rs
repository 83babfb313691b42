//! The twin of `ui/elements/remainder_by_zero_instance.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(G in [4, 8]))]
fn k<const G: i32>(y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    y.set([p], p % G);
}
