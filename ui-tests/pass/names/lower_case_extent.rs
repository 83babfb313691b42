//! The twin of `ui/names/lower_case_extent.rs`, without the mistake.
use titan::prelude::*;

#[titan::constant]
#[allow(non_upper_case_globals, reason = "it is the subject")]
const Width: i32 = 8;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<{ self::Width }>([p]));
}
