//! The output tiles of a program are walked once.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 2>) {
    let work = y.work::<8, 8>();
    for out in work.tiles() {
        let v = out.load();
        out.store(v + 1.0);
    }
    for out in work.tiles() {
        out.skip();
    }
}

fn main() {}
