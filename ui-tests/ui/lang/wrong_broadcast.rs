//! A column of the wrong length.
use titan::lang::{Tile, ops};
use titan::prelude::*;

pub fn k<const A: i32, const B: i32>(x: Tile<f32, D2<A, B>>, y: Tile<f32, D1<B>>) -> Tile<bool, D2<A, B>> {
    ops::lt(x, y.col())
}

fn main() {}
