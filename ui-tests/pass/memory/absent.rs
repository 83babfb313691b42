//! The twin of `ui/memory/absent.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(bias: Option<&Tensor<f32, 1>>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let mut v = Tile::<f32, 8>::zeros();
    if let Some(bias) = bias {
        v += bias.load_tile::<8>([p]);
    }
    y.store_tile([p], v);
}
