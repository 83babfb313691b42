//! The twin of `ui/outputs/beside_the_tile.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<16, 16>() {
        let v = x.load_tile::<16, 16>(out.index());
        out.store(v * 2.0);
    }
}
