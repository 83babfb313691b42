//! The twin of `ui/staging/work_walked_twice.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(y: &mut Tensor<f32, 2>) {
    let work = y.work::<8, 8>();
    for [_i, _j] in work.indices() {
        tprint!("one");
    }
    for out in work.tiles() {
        let v = out.load();
        out.store(v + 1.0);
    }
}
