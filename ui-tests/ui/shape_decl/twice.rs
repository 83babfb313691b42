//! Two shape declarations of one tensor.
use titan::prelude::*;

#[titan::kernel]
fn k(
    #[shape(N)]
    #[shape(M)]
    x: &Tensor<f32, 1>,
    #[shape(N)] y: &mut Tensor<f32, 1>,
) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn main() {}
