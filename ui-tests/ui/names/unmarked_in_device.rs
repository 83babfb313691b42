//! A function of the host in a device function.
use titan::prelude::*;

fn double(v: f32) -> f32 {
    v * 2.0
}

#[titan::device]
fn quadruple(v: f32) -> f32 {
    double(double(v))
}

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], quadruple(x.get([p])));
}

fn main() {}
