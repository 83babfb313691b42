//! The twin of `ui/names/lower_case_constant.rs`, without the mistake.
use titan::prelude::*;

#[titan::constant]
#[allow(non_upper_case_globals, reason = "it is the subject")]
const scale: f32 = 2.0;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.set([p], x.get([p]) * self::scale);
}
