//! The loop over tiles is left when enough has been stored.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>, n: i32) {
    for out in y.tiles::<8, 8>() {
        let [i, j] = out.index();
        out.store(x.load_tile::<8, 8>([i, j]));
        if i + j >= n {
            break;
        }
    }
}

fn main() {}
