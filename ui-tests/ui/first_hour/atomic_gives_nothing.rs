//! Atomics do not give what was there before.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<i32, 1>, count: &mut Tensor<i32, 1>, y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    let before = count.atomic_add([x.load_tile::<8>([p])], Tile::<i32, 8>::ones());
    y.store_tile([p], before);
}

fn main() {}
