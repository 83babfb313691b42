//! The twin of `ui/shape_decl/constant_without_braces.rs`, without the mistake.
use titan::prelude::*;

#[titan::constant]
const BLOCK: i32 = 64;

#[titan::kernel]
fn k(#[shape({ BLOCK })] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<BLOCK>([0]));
}
