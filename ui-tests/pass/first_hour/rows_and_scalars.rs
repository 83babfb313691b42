//! Rows and columns have operators among themselves and with scalars.
use titan::prelude::*;

#[titan::kernel(instances(T in [f32, f16]))]
fn k<T: Float>(x: &Tensor<T, 2>, b: &Tensor<T, 1>, y: &mut Tensor<T, 2>, s: f32) {
    let (i, j) = (program_id(0), program_id(1));
    let (row, col) = (b.load_tile::<64>([j]).row(), b.load_tile::<16>([i]).col());
    let mut scale = 1.0 - row * 2.0;
    scale += -row;
    let keep = (row > 0.0) & !(col == col + s);
    y.store_tile([i, j], select(keep, x.load_tile::<16, 64>([i, j]) * scale + (col - 1.0), 0.0));
}
