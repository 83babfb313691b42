//! Operands in a stage have elements that MMAs support.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<(Smem<f16, 8, 16>, Smem<f16, 8, 16>), 2>::new();
    ring.acquire().copy((x.tile([0, 0]), x.tile([1, 0]))).commit();
    let acc = Acc::<i32, D2<8, 8>, 1>::zeros().mma(ring.ready().wait(), |s| (s.a(), s.b().t()));
    y.store_tile([0, 0], acc.finish().cast());
}

fn main() {}
