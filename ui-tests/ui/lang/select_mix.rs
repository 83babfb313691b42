//! The arms of a select have one element type.
use titan::lang::{Tile, ops};
use titan::prelude::*;

pub fn k<const N: i32>(x: Tile<f32, D1<N>>) -> Tile<f32, D1<N>> {
    select(ops::lt(x, 0.0), x, 1)
}

fn main() {}
