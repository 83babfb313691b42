//! Both arms give one type.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>, n: i32) {
    let p = program_id(0);
    let v = if n > 0 { x.load_tile::<8>([p]) } else { Tile::<f32, 16>::zeros() };
    y.store_tile([p], v);
}

fn main() {}
