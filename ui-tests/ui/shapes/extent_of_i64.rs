//! Extents are `i32`: a constant parameter of another type is one mistake.
use titan::prelude::*;

#[titan::kernel(instances(B in [8, 16]))]
fn k<const B: i64>(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<B>([p]);
    y.store_tile([p], (v + Tile::<f32, B>::ones()) * v.reduce_sum::<0>());
}

fn main() {}
