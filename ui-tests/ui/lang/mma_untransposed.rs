//! A forgotten transposition, in the names of the kernel.
use titan::lang::Tile;
use titan::prelude::*;

pub fn k<const BM: i32, const BN: i32, const BK: i32>(
    a: Tile<f16, D2<BM, BK>>,
    b: Tile<f16, D2<BN, BK>>,
) -> Tile<f32, D2<BM, BN>> {
    mma(a, b, Tile::<f32, D2<BM, BN>>::zeros())
}

fn main() {}
