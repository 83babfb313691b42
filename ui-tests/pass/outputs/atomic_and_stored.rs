//! The twin of `ui/outputs/atomic_and_stored.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] x: &Tensor<i32, 1>, #[shape(N)] y: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    y.atomic_add([Tile::<i32, 1>::full(p)], x.load_tile::<1>([p]));
}
