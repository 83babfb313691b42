//! The twin of `ui/first_hour/runtime_extent.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(BN in [64, 1024]), grid(M))]
fn k<const BN: i32>(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M)] y: &mut Tensor<f32, 1>) {
    let m = program_id(0);
    let mut sum = Tile::<f32, 1>::zeros();
    for i in 0..cdiv(N, BN) {
        sum += x.load_tile::<1, BN>([m, i]).reduce_sum::<1>();
    }
    y.store_tile([m], sum);
}
