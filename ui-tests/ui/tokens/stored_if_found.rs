//! A loop that may end without having stored the tile.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 2>, n: i32) {
    for out in y.tiles::<8, 8>() {
        for i in 0..n {
            if x.get([i]) > 0.0 {
                out.store(Tile::<f32, 8, 8>::full(x.get([i])));
                break;
            }
        }
    }
}

fn main() {}
