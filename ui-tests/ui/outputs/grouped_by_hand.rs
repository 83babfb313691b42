//! Tiles in groups of rows, by arithmetic that is not followed.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(M, 16) * cdiv(N, 16)))]
fn k(#[shape(M, N)] c: &mut Tensor<f32, 2>) {
    let (p, rows, columns) = (program_id(0), cdiv(M, 16), cdiv(N, 16));
    let first = p / (8 * columns) * 8;
    let size = (rows - first).min(8);
    let m = first + p % (8 * columns) % size;
    let n = p % (8 * columns) / size;
    c.store_tile([m, n], Tile::<f32, 16, 16>::ones());
}

fn main() {}
