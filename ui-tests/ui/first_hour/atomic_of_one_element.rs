//! Atomics work on tiles.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let v = x.load_tile::<8>([program_id(0)]).reduce_sum::<0>();
    y.atomic_add([0], v);
}

fn main() {}
