//! The twin of `ui/roles/in_a_device_function.rs`, without the mistake.
use titan::prelude::*;

#[titan::device]
fn part(x: Tile<f32, 8>) -> Tile<f32, 8> {
    tprint!("one");
    x
}
