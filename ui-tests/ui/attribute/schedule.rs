//! The word in `schedule(..)` is one of two.
use titan::prelude::*;

#[titan::kernel(schedule(fast))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64>([p]));
}

fn main() {}
