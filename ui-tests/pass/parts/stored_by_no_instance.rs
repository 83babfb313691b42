//! The twin of `ui/parts/stored_by_no_instance.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(instances(KEPT in [false, true]))]
fn k<const KEPT: bool>(
    #[shape(N)] x: &Tensor<f32, 1>,
    #[shape(N)] y: &mut Tensor<f32, 1>,
    #[shape(N)] z: &mut Tensor<f32, 1>,
) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]);
    y.store_tile([p], v);
    if KEPT {
        z.store_tile([p], v);
    }
}
