//! The twin of `ui/grid/not_inferred.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(N))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let v = x.get([program_id(0)]);
    y.atomic_add([Tile::<i32, 1>::zeros()], Tile::<f32, 1>::full(v));
}
