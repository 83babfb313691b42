//! Functions of floats take floats.
use titan::lang::Tile;
use titan::prelude::*;

pub fn k<const N: i32>(x: Tile<i32, D1<N>>) {
    let _ = x.exp();
}

fn main() {}
