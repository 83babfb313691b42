//! What rustc says of one tuple of element types is not said of the others.
use titan::prelude::*;

#[titan::kernel(instances(T in [f16, i32]))]
fn k<T: Num>(a: &Tensor<T, 2>, b: &Tensor<T, 2>, y: &mut Tensor<f32, 2>) {
    let (i, j) = (program_id(0), program_id(1));
    let (at, bt) = (a.load_tile::<16, 16>([i, 0]), b.load_tile::<16, 16>([0, j]));
    y.store_tile([i, j], mma(at, bt, Tile::<f32, 16, 16>::zeros()));
}

fn main() {}
