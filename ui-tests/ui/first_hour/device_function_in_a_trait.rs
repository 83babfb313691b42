//! Device functions are free functions.
use titan::prelude::*;

trait Activation {
    #[titan::device]
    fn relu(x: f32) -> f32 {
        x.max(0.0)
    }
}

fn main() {}
