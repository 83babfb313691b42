//! The twin of `ui/attribute/of_a_device_function.rs`, without the mistake.
use titan::prelude::*;

#[titan::device]
fn double<const N: i32>(x: Tile<f32, N>) -> Tile<f32, N> {
    x * 2.0
}
