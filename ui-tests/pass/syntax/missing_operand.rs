//! The twin of `ui/syntax/missing_operand.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.get([p]) + 1.0;
    y.set([p], v);
}

pub(crate) fn run(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) -> titan::Result<()> {
    k::reference(x, y)?;
    k(x, y).grid([4]).sync()
}
