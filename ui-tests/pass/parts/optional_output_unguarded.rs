//! The twin of `ui/parts/optional_output_unguarded.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>, #[shape(N)] z: Option<&mut Tensor<f32, 1>>) {
    let p = program_id(0);
    let v = x.load_tile::<8>([p]);
    y.store_tile([p], v);
    if let Some(z) = z {
        z.store_tile([p], v);
    }
}
