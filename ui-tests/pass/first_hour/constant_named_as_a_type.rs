//! A constant parameter may have the name of a type.
use titan::prelude::*;

#[titan::kernel(instances(D2 in [64]), grid(M), require(D2 <= 64))]
fn k<const D2: i32>(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M)] y: &mut Tensor<f32, 1>) {
    let m = program_id(0);
    let v = x.load_tile::<1, D2>([m, 0]) + Tile::<f32, 1, D2>::ones();
    let halves = v.reshape::<2, { D2 / 2 }>().reduce_sum::<1>();
    y.store_tile([m], halves.reshape::<1, 2>().reduce_sum::<1>());
}
