//! rustc reports what it cannot parse, and the macro does not repeat it.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0)
    y.store_tile([p], x.load_tile::<8>([p]));
}

#[allow(dead_code)]
fn launch(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) -> titan::Result<()> {
    k(x, y).sync()
}

fn main() {}
