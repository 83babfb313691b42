//! The twin of `ui/outputs/two_atomic_operations.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 32)))]
fn k(#[shape(N)] x: &Tensor<i32, 1>, #[shape(M)] y: &mut Tensor<i32, 1>, #[shape(M)] z: &mut Tensor<i32, 1>) {
    let bin = x.load_tile::<32>([program_id(0)]);
    y.atomic_add([bin], Tile::<i32, 32>::full(1));
    z.atomic_max([bin], Tile::<i32, 32>::full(0));
}

fn main() {}
