//! The twin of `ui/outputs/grouped_by_hand.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(M, 16) * cdiv(N, 16)))]
fn k(#[shape(M, N)] c: &mut Tensor<f32, 2>) {
    let (p, rows, columns) = (program_id(0), cdiv(M, 16), cdiv(N, 16));
    let [m, n] = unflatten_grouped::<8>(p, [rows, columns]);
    c.store_tile([m, n], Tile::<f32, 16, 16>::ones());
}

#[titan::kernel]
fn dealt(#[shape(M, N)] c: &mut Tensor<f32, 2>) {
    for out in c.tiles_grouped::<16, 16, 8>() {
        out.store(Tile::ones());
    }
}

#[titan::kernel]
fn of_a_batch(#[shape(B, M, N)] c: &mut Tensor<f32, 3>) {
    for out in c.tiles_grouped::<1, 16, 16, 8>() {
        out.store(Tile::ones());
    }
}
