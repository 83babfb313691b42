//! The twin of `ui/products/stage_of_another_ring.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(grid(1))]
fn k(x: &Tensor<f16, 2>, y: &mut Tensor<f32, 2>) {
    let ring = Ring::<(Smem<f16, 8, 16>, Smem<f16, 8, 16>), 2>::new();
    let other = Ring::<Smem<f16, 8, 16>, 2>::new();
    ring.acquire().copy((x.tile([0, 0]), x.tile([1, 0]))).commit();
    other.acquire().copy(x.tile([0, 0])).commit();
    let mut acc = Acc::<f32, D2<8, 8>, 1>::zeros();
    acc = acc.mma(ring.ready().wait(), |s| (s.a(), s.b().t()));
    acc = acc.mma(other.ready().wait(), |s| (s.get(), s.get().t()));
    y.store_tile([0, 0], acc.finish());
}
