//! A place read from memory: nothing is known of it.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] row: &Tensor<i32, 1>, #[shape(N)] x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let r = row.get([p]);
    y.set([r], x.get([p]));
}

fn main() {}
