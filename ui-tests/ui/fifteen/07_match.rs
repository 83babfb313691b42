//! A `match`.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>, mode: i32) {
    let p = program_id(0);
    let v = x.load_tile::<64>([p]);
    let v = match mode {
        0 => v,
        _ => v.exp(),
    };
    y.store_tile([p], v);
}

fn main() {}
