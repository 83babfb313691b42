//! A constant with a name that is not in upper case, as an extent.
use titan::prelude::*;

#[titan::constant]
#[allow(non_upper_case_globals, reason = "it is the subject")]
const Width: i32 = 8;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<Width>([p]));
}

fn main() {}
