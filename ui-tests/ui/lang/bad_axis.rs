//! Axes count from zero.
use titan::lang::{Tensor, Tile};
use titan::prelude::*;

pub fn k<const A: i32, const B: i32>(x: Tile<f32, D2<A, B>>, t: &Tensor<f32, 2>) {
    let _ = x.reduce_sum::<2>();
    let _ = t.index::<2>(0);
}

fn main() {}
