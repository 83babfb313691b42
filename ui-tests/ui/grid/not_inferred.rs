//! The stores do not say how many programs there are.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let v = x.get([program_id(0)]);
    y.atomic_add([Tile::<i32, 1>::zeros()], Tile::<f32, 1>::full(v));
}

fn main() {}
