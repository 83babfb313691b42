//! The twin of `ui/first_hour/scalar_in_the_other_arm.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f16, 1>, y: &mut Tensor<f16, 1>, n: i32) {
    let p = program_id(0);
    let v = if n > 3 { x.load_tile::<64>([p]) } else { Tile::<f32, 64>::full(0.0).cast::<f16>() };
    y.store_tile([p], v);
}
