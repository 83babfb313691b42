//! A constant with a name that is not in upper case, in a device function.
use titan::prelude::*;

#[titan::constant]
#[allow(non_upper_case_globals, reason = "it is the subject")]
const scale: f32 = 2.0;

#[titan::device]
fn scaled(v: f32) -> f32 {
    v * scale
}

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], scaled(x.get([p])));
}

fn main() {}
