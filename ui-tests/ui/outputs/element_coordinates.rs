//! Coordinates of `store_tile` in elements, as pointers of other languages have them.
use titan::prelude::*;

#[titan::kernel(instances(BM in [32, 64]), grid(cdiv(M, BM)))]
fn k<const BM: i32>(#[shape(M)] x: &Tensor<f32, 1>, #[shape(M)] y: &mut Tensor<f32, 1>) {
    let m = program_id(0);
    y.store_tile([m * BM], x.load_tile::<BM>([m * BM]));
}

fn main() {}
