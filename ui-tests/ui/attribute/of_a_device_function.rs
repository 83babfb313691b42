//! Device functions take no instances: their callers give the arguments.
use titan::prelude::*;

#[titan::device(instances(N in [8]))]
fn double<const N: i32>(x: Tile<f32, N>) -> Tile<f32, N> {
    x * 2.0
}

fn main() {}
