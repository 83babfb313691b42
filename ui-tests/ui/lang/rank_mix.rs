//! A rank-1 tile meets a rank-2 one only as a row or a column.
use titan::lang::{Tile, ops};
use titan::prelude::*;

pub fn k<const A: i32, const B: i32>(x: Tile<f32, D2<A, B>>, y: Tile<f32, D1<B>>) {
    let z = ops::add(x, y);
    let _ = z.exp();
}

fn main() {}
