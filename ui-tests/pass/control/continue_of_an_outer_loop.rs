//! The twin of `ui/control/continue_of_an_outer_loop.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>, n: i32) {
    let p = program_id(0);
    let mut sum = Tile::<f32, 8>::zeros();
    'outer: for j in 0..4 {
        for i in pipelined(0..n) {
            if i > j {
                continue;
            }
            sum += x.load_tile::<8, 8>([p, i]).reduce_sum::<1>();
        }
        if j > n {
            continue 'outer;
        }
    }
    y.store_tile([p], sum);
}
