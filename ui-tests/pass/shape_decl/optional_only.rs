//! The twin of `ui/shape_decl/optional_only.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(N)] y: &mut Tensor<f32, 1>, #[shape(N)] bias: Option<&Tensor<f32, 1>>) {
    let p = program_id(0);
    if let Some(b) = bias {
        y.store_tile([p], b.load_tile::<8>([p]));
    }
}
