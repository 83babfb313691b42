//! A loop that each element would leave at its own time.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]).map(|e| {
        let mut half = e;
        while half > 1.0 {
            half = half / 2.0;
        }
        half
    });
    y.store_tile([p], v);
}

fn main() {}
