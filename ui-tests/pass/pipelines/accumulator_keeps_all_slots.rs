//! The twin of `ui/pipelines/accumulator_keeps_all_slots.rs`, without the mistake.
use titan::prelude::*;

#[titan::kernel(roles(load: 1 warp, math: 1 warpgroup))]
fn logits(#[shape(T, K)] x: &Tensor<f16, 2>, #[shape(V, K)] w: &Tensor<f16, 2>, #[shape(T, V)] y: &mut Tensor<f32, 2>) {
    let ring = Ring::<(Smem<f16, 64, 64>, Smem<f16, 64, 64>), 4>::new();
    let steps = cdiv(K, 64);
    let work = y.work::<64, 64>();
    match role() {
        Role::Load => {
            for [t, v] in work.indices() {
                for (k, slot) in ring.produce(0..steps) {
                    slot.copy((x.tile([t, k]), w.tile([v, k]))).commit();
                }
            }
        }
        Role::Math => {
            for out in work.tiles() {
                let mut acc = Acc::<f32, D2<64, 64>, 3>::zeros();
                for (_, ready) in ring.consume(0..steps) {
                    acc = acc.mma(ready.wait(), |s| (s.a(), s.b().t()));
                }
                out.store(acc.finish());
            }
        }
    }
}
