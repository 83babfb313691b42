//! A device function is plain.
use titan::prelude::*;

#[titan::device]
unsafe fn double<S: Shape>(x: Tile<f32, S>) -> Tile<f32, S> {
    x * 2.0
}

fn main() {}
