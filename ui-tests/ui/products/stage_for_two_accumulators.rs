//! One accumulator takes a stage.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<(Smem<f16, 8, 16>, Smem<f16, 8, 16>), 2>::new();
    ring.acquire().copy((x.tile([0, 0]), x.tile([1, 0]))).commit();
    let stage = ring.ready().wait();
    let a = Acc::<f32, D2<8, 8>, 1>::zeros().mma(stage, |s| (s.a(), s.b().t()));
    let b = Acc::<f32, D2<8, 8>, 1>::zeros().mma(stage, |s| (s.b(), s.a().t()));
    y.store_tile([0, 0], a.finish() + b.finish());
}

fn main() {}
