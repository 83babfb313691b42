//! The twin of `ui/launch/host_data.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<8>([p]));
}

fn host(x: &[f32], y: &mut Tensor<f32, 1>) -> titan::Result<()> {
    k(&y.device().tensor(x, [x.len()])?, y).sync()
}
