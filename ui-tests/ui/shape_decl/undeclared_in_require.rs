//! A requirement on a name that no tensor declares.
use titan::prelude::*;

#[titan::kernel(require(K % 8 == 0))]
fn k(x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn main() {}
