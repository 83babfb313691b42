//! A group of rows has at least one.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(M, 16) * cdiv(N, 16)))]
fn k(#[shape(M, N)] c: &mut Tensor<f32, 2>) {
    let at = unflatten_grouped::<0>(program_id(0), [cdiv(M, 16), cdiv(N, 16)]);
    c.store_tile(at, Tile::<f32, 16, 16>::ones());
}

fn main() {}
