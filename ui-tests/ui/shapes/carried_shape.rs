//! A loop cannot change the shape of what it carries.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>, n: i32) {
    let p = program_id(0);
    let mut v = x.load_tile::<8, 4>([p, 0]);
    for _ in 0..n {
        v = v.t();
    }
    y.store_tile([p, 0], v);
}

fn main() {}
