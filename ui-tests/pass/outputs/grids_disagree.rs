//! The twin of `ui/outputs/grids_disagree.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>, #[shape(N)] z: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    let v = x.load_tile::<16>([p]);
    y.store_tile([p], v);
    z.store_tile([p], v + 1.0);
}
