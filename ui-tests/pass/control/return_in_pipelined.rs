//! The twin of `ui/control/return_in_pipelined.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>, n: i32) {
    let p = program_id(0);
    if n > 16 {
        return;
    }
    let mut sum = Tile::<f32, 8>::zeros();
    for i in pipelined(0..n) {
        sum += x.load_tile::<8, 8>([p, i]).reduce_sum::<1>();
    }
    y.store_tile([p], sum);
}
