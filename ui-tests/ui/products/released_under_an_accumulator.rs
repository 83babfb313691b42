//! A stage that is not moved into the accumulator is kept until its MMA has been waited for.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<(Smem<f16, 8, 16>, Smem<f16, 8, 16>), 2>::new();
    ring.acquire().copy((x.tile([0, 0]), x.tile([1, 0]))).commit();
    ring.acquire().zero().commit();
    let (one, two) = (ring.ready().wait(), ring.ready().wait());
    let acc = Acc::<f32, D2<8, 8>, 1>::zeros().mma(one, |s| (two.a(), s.b().t()));
    two.release();
    y.store_tile([0, 0], acc.finish());
}

fn main() {}
