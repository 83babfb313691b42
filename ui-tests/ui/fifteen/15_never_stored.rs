//! An output that is never stored.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 64)))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let _v = x.load_tile::<64>([p]) * 2.0;
}

fn main() {}
