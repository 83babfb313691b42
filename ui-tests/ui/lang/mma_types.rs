//! Only some triples of element types multiply.
use titan::lang::Tile;
use titan::prelude::*;

pub fn k<const N: i32>(a: Tile<u8, D2<N, N>>, c: Tile<i32, D2<N, N>>) -> Tile<i32, D2<N, N>> {
    mma(a, a, c)
}

fn main() {}
