//! The twin of `ui/syntax/let_else.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 8)))]
fn k(bias: Option<&Tensor<f32, 1>>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    if let Some(b) = bias {
        y.store_tile([p], b.load_tile::<8>([p]));
    }
}
