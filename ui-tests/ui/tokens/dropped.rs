//! An output tile that is neither stored nor skipped.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<8, 8>() {
        let v = x.load_tile::<8, 8>(out.index());
        tprint!("{}", v.reduce_sum::<1>().reduce_sum::<0>());
    }
}

fn main() {}
