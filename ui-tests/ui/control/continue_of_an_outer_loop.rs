//! `continue` of a loop around a pipelined one leaves that one.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 1>, n: i32) {
    let p = program_id(0);
    let mut sum = Tile::<f32, 8>::zeros();
    'outer: for j in 0..4 {
        for i in pipelined(0..n) {
            if i > j { continue 'outer; }
            sum += x.load_tile::<8, 8>([p, i]).reduce_sum::<1>();
        }
    }
    y.store_tile([p], sum);
}

fn main() {}
