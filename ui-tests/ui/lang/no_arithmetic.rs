//! Storage types have no arithmetic.
use titan::lang::{Tile, ops};
use titan::prelude::*;

pub fn k<const N: i32>(x: Tile<i4, D1<N>>) -> Tile<i4, D1<N>> {
    ops::add(x, x)
}

fn main() {}
