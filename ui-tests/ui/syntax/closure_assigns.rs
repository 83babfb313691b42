//! A closure that assigns to a variable outside of it: elements have no order.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let mut sum = 0.0;
    let v = x.load_tile::<8>([p]).map(|e| {
        sum += e;
        e
    });
    y.store_tile([p], v / sum);
}

fn main() {}
