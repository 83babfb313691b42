//! A loop runs over a range or over the tiles of an output, not over elements.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]);
    let mut sum = 0.0;
    for e in v {
        sum += e;
    }
    y.set([p], sum);
}

fn main() {}
