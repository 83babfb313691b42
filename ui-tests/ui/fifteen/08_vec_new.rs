//! A `Vec`.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let mut list = Vec::new();
    list.push(x.load_tile::<64>([p]));
    y.store_tile([p], list[0]);
}

fn main() {}
