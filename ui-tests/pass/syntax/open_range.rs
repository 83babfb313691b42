//! The twin of `ui/syntax/open_range.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>, n: i32) {
    let mut sum = Tile::<f32, 8>::zeros();
    for i in 0..n {
        sum += x.load_tile::<8>([i]);
    }
    y.store_tile([program_id(0)], sum);
}
