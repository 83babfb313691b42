//! Rows are named by one index for every axis but the last.
use titan::lang::{Tensor, Tile};
use titan::prelude::*;

pub fn k<const N: i32>(t: &Tensor<f16, 3>, ix: Tile<i32, D1<N>>) {
    let _ = t.gather_rows::<N, 4>(ix, 0);
}

fn main() {}
