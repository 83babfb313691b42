//! The twin of `ui/parts/grid_of_an_optional_output.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 8)))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, z: Option<&mut Tensor<f32, 1>>) {
    let p = program_id(0);
    if let Some(z) = z {
        z.store_tile([p], x.load_tile::<8>([p]));
    }
}
