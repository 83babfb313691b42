//! The twin of `ui/device/is_unsafe.rs`, without the mistake.
use titan::prelude::*;

#[titan::device]
fn double<S: Shape>(x: Tile<f32, S>) -> Tile<f32, S> {
    x * 2.0
}
