//! Element types do not mix.
use titan::lang::{Tile, ops};
use titan::prelude::*;

pub fn k<const N: i32>(x: Tile<f32, D1<N>>, y: Tile<f16, D1<N>>) -> Tile<f32, D1<N>> {
    ops::mul(x, y)
}

fn main() {}
