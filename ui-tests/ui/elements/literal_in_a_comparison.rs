//! `0` is not a float, in a comparison either.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]);
    y.store_tile([p], select(v > 0, v, 0.0));
}

fn main() {}
