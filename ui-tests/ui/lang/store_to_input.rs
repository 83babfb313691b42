//! Inputs are not stored to.
use titan::lang::{Tensor, Tile};
use titan::prelude::*;

pub fn k(a: &Tensor<f32, 1>, v: Tile<f32, D1<4>>) {
    a.store_tile([0], v);
}

fn main() {}
