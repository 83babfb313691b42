//! Attributes of statements mean nothing in a kernel.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    #[allow(unused_variables)]
    let v = x.load_tile::<8>([p]);
    y.store_tile([p], v);
}

fn main() {}
