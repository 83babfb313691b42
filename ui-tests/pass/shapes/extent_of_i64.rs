//! The twin of `ui/shapes/extent_of_i64.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(B in [8, 16]))]
fn k<const B: i32>(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<B>([p]);
    y.store_tile([p], (v + Tile::<f32, B>::ones()) * v.reduce_sum::<0>());
}
