//! The twin of `ui/outputs/element_coordinates.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(BM in [32, 64]), grid(cdiv(M, BM)))]
fn k<const BM: i32>(#[shape(M)] x: &Tensor<f32, 1>, #[shape(M)] y: &mut Tensor<f32, 1>) {
    let m = program_id(0);
    y.store_tile([m], x.load_tile::<BM>([m]));
}

/// Coordinates of these are in elements.
#[titan::kernel(instances(BM in [32, 64]), grid(cdiv(M, BM)))]
fn at<const BM: i32>(#[shape(M)] x: &Tensor<f32, 1>, #[shape(M)] y: &mut Tensor<f32, 1>) {
    let m = program_id(0);
    y.store_at([m * BM], x.load_at::<BM>([m * BM]));
}

/// The rest is meant to stay.
#[titan::kernel(instances(BM in [32, 64]), grid(unchecked cdiv(M, BM)))]
fn unchecked<const BM: i32>(#[shape(M)] x: &Tensor<f32, 1>, #[shape(M)] y: &mut Tensor<f32, 1>) {
    let m = program_id(0);
    y.store_tile([m * BM], x.load_tile::<BM>([m * BM]));
}
