//! A syntax error, which rustc reports, in a kernel that is used.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.get([p]) +;
    y.set([p], v);
}

pub fn run(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) -> titan::Result<()> {
    k::reference(x, y)?;
    k(x, y).grid([4]).sync()
}

fn main() {}
