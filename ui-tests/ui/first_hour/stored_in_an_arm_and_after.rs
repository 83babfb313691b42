//! A tile is stored once on every path.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 2>, y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<32, 64>() {
        let [m, n] = out.index();
        let v = x.load_tile::<32, 64>([m, n]);
        if m > n {
            out.store(v * 2.0);
        }
        out.store(v);
    }
}

fn main() {}
