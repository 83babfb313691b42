//! A loop around the loop over tiles is left from inside of both.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>, n: i32) {
    'rounds: for round in 0..n {
        for out in y.tiles::<8, 8>() {
            let [i, j] = out.index();
            if i + j >= round {
                out.skip();
                break 'rounds;
            }
            out.store(x.load_tile::<8, 8>([i, j]));
        }
    }
}

fn main() {}
