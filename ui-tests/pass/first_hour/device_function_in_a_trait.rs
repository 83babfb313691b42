//! The twin of `ui/first_hour/device_function_in_a_trait.rs`, without the mistake.
use titan::prelude::*;

#[titan::device]
fn relu(x: f32) -> f32 {
    x.max(0.0)
}
