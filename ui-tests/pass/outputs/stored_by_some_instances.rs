//! The twin of `ui/outputs/stored_by_some_instances.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(BOTH in [false, true]))]
fn k<const BOTH: bool>(
    #[shape(N)] x: &Tensor<f32, 1>,
    #[shape(N)] y: &mut Tensor<f32, 1>,
    #[shape(N)] z: &mut Tensor<f32, 1>,
) {
    let (p, v) = (program_id(0), x.load_tile::<8>([program_id(0)]));
    y.store_tile([p], v);
    z.store_tile([p], if BOTH { v } else { Tile::<f32, 8>::zeros() });
}
