//! A `return` in a closure.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]).map(|e| {
        if e > 2.0 {
            return 2.0;
        }
        e
    });
    y.store_tile([p], v);
}

fn main() {}
