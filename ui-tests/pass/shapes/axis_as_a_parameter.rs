//! The twin of `ui/shapes/axis_as_a_parameter.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(A in [0, 1]), grid(1))]
fn k<const A: i32>(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>) {
    let v = x.load_tile::<8, 8>([0, 0]);
    y.store_tile([0], if A == 0 { v.reduce_sum::<0>() } else { v.reduce_sum::<1>() });
}
