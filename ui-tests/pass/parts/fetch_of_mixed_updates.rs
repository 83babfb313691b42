//! The twin of `ui/parts/fetch_of_mixed_updates.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] x: &Tensor<i32, 1>, y: &mut Tensor<i32, 1>, #[shape(N)] z: &mut Tensor<i32, 1>) {
    let p = program_id(0);
    let old = y.fetch_add([x.get([p])], 1);
    z.set([p], y.fetch_add([0], old));
}
