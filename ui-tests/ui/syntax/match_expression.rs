//! A `match` on a scalar: kernels choose with `if`.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>, mode: i32) {
    let p = program_id(0);
    let s = match mode {
        0 => 1.0,
        _ => 2.0,
    };
    y.store_tile([p], x.load_tile::<8>([p]) * s);
}

fn main() {}
