//! The twin of `ui/control/nested_pipelined.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>, n: i32) {
    let p = program_id(0);
    let mut sum = Tile::<f32, 8>::zeros();
    for i in 0..n {
        for j in pipelined(0..4) {
            sum += x.load_tile::<8, 8>([p, i * 4 + j]).reduce_sum::<1>();
        }
    }
    y.store_tile([p], sum);
}
