//! The twin of `ui/outputs/range_of_an_argument.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(G))]
fn k(#[shape(G, 64)] x: &Tensor<f32, 2>, #[shape(G, R, 64)] y: &mut Tensor<f32, 3>) {
    let g = program_id(0);
    for i in 0..R {
        let v = x.load_tile::<1, 64>([g, 0]);
        y.store_tile([g, i, 0], v.reshape::<1, 1, 64>());
    }
}
