//! The twin of `ui/first_hour/atomic_of_one_element.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(N, 8)))]
fn k(#[shape(N)] x: &Tensor<f32, 1>, y: &mut Tensor<f32, 1>) {
    let v = x.load_tile::<8>([program_id(0)]).reduce_sum::<0>();
    y.atomic_add([Tile::<i32, 1>::full(0)], Tile::<f32, 1>::full(v));
}
