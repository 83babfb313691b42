//! The twin of `ui/syntax/array_method.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let a = [p, p + 1];
    y.set([p], x.get([a[0]]) + x.get([a[1]]));
}
