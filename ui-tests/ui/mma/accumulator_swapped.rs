//! The accumulator has the rows of `a` and the columns of `b`, also where it is carried by a loop.
use titan::prelude::*;

#[titan::kernel]
fn k(a: &Tensor<f16, 2>, b: &Tensor<f16, 2>, c: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    let mut acc = Tile::<f32, 64, 128>::zeros();
    for k in pipelined(0..cdiv(a.dim(1), 32)) {
        let at = a.load_tile::<128, 32>([m, k]);
        let bt = b.load_tile::<64, 32>([n, k]);
        acc = mma(at, bt.t(), acc);
    }
    c.store_tile([m, n], acc);
}

fn main() {}
