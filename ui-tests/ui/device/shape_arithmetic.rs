//! Stable Rust has no arithmetic in a shape: the caller gives the number.
use titan::prelude::*;

#[titan::device]
fn halve<const N: i32>(x: Tile<f32, N>) -> (Tile<f32, { N / 2 }>, Tile<f32, { N / 2 }>) {
    x.split::<{ N / 2 }>()
}

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let (a, b) = halve::<16>(x.load_tile::<16>([p]));
    y.store_tile([p], a * b);
}

fn main() {}
