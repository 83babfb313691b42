//! A transpose that does not fit into the shared memory of a GPU.
use titan::prelude::*;

#[titan::kernel]
fn k(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(N, M)] y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    let v = x.load_tile::<512, 256>([n, m]);
    y.store_tile([m, n], v.t());
}

fn main() {}
