//! The twin of `ui/instances/too_many.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(
    A in [1, 2, 3, 4, 5, 6, 7, 8],
    B in [1, 2, 3, 4, 5, 6, 7, 8],
    C in [1],
))]
fn k<const A: i32, const B: i32, const C: i32>(y: &mut Tensor<i32, 1>) {
    y.set([program_id(0)], A * B * C);
}
