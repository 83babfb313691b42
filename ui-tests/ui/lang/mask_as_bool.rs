//! A mask is not a condition.
use titan::lang::{Tile, ops};
use titan::prelude::*;

pub fn k<const N: i32>(x: Tile<f32, D1<N>>) {
    if ops::lt(x, 0.0) {
        titan::tprint!("negative");
    }
}

fn main() {}
