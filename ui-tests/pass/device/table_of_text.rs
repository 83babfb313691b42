//! The twin of `ui/device/table_of_text.rs`, without the mistake.
use titan::prelude::*;

#[titan::constant]
const FACTORS: [f32; 2] = [0.5, 2.0];

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]) * FACTORS[0]);
}
