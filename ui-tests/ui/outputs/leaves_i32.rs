//! In a large grid the index wraps into another program's part.
use titan::prelude::*;

#[titan::kernel(grid(n))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>, n: i32) {
    let at = program_id(0) * 8;
    y.store_at([at], x.load_at::<8>([at]));
}

fn main() {}
