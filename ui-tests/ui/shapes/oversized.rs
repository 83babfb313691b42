//! A tile that no chip holds.
use titan::prelude::*;

#[titan::kernel(instances((A, B) in [(2048, 1024)]))]
fn k<const A: i32, const B: i32>(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    y.store_tile([m, n], x.load_tile::<A, B>([m, n]) + 1.0);
}

fn main() {}
