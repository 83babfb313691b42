//! A role with too few warps for Hopper, whose roles keep their warps; a warning.
#![deny(deprecated)]
use titan::prelude::*;

#[titan::kernel(roles(load: 1 warp, work: 1 warpgroup), grid(cdiv(M, 128), cdiv(N, 256)))]
fn k(#[shape(M, K)] a: &Tensor<f16, 2>, #[shape(K, N)] b: &Tensor<f16, 2>, #[shape(M, N)] c: &mut Tensor<f32, 2>) {
    let (m, n, ks) = (program_id(0), program_id(1), cdiv(K, 32));
    let ring = Ring::<(Smem<f16, 128, 32>, Smem<f16, 32, 256>), 2>::new();
    match role() {
        Role::Load => for i in 0..ks {
            ring.acquire().copy((a.tile([m, i]), b.tile([i, n]))).commit();
        },
        Role::Work => {
            let mut acc = Tile::<f32, 128, 256>::zeros();
            for _ in 0..ks {
                let stage = ring.ready().wait();
                acc = mma_async(stage.a(), stage.b(), acc).wait();
                stage.release();
            }
            c.store_tile([m, n], acc);
        }
    }
}
fn main() {}
