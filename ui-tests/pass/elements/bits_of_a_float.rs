//! The bits of a float are counted in an integer.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<u32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]).bitcast::<u32>().leading_zeros());
}

fn main() {}
