//! The twin of `ui/parts/fetch_of_small_integers.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] x: &Tensor<u16, 1>, y: &mut Tensor<u16, 1>, z: &mut Tensor<u16, 1>) {
    let p = program_id(0);
    z.set([p], y.fetch_or([p], x.get([p])));
}
