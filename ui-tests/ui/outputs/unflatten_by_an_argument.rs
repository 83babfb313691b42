//! The parts of `unflatten` are bounded by extents of tensors, not by an argument.
use titan::prelude::*;

#[titan::kernel(grid(cdiv(M, 8) * rows))]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>, rows: i32) {
    let [i, j] = unflatten(program_id(0), [cdiv(M, 8), rows]);
    y.store_at([i * 8, j * 8], x.load_at::<8, 8>([i * 8, j * 8]));
}

fn main() {}
