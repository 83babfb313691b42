//! The twin of `ui/signature/reference_to_reference.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 64)))]
fn copied(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let p = program_id(0);
    y.store_tile([p], x.load_tile::<64>([p]));
}

fn main() {}
