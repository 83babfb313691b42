//! The twin of `ui/elements/literal_before_as.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 16)))]
fn k(#[shape(N)] y: &mut Tensor<f32, 1>) {
    y.store_tile([program_id(0)], Tile::<f32, 16>::full(-(1e38) as f32));
}
