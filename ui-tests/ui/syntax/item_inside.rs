//! An item inside a kernel: the macro of another item cannot see it.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    const WIDTH: i32 = 8;
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<WIDTH>([p]));
}

fn main() {}
