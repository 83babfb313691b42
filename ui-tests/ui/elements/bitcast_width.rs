//! `bitcast` keeps the width.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<i16, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]).bitcast::<i16>());
}

fn main() {}
