//! The computation of `gemm` with an explicit pipeline: one role copies, the other multiplies, and a stage that is
//! released too early does not compile.
//!
//! Run with `cargo run --release --example gemm_ws`.
mod common;

use titan::prelude::*;

/// C[m, n] = Σ_k A[m, k] · B[n, k]; every program loops over tiles of C, and the ring's clocks continue from tile to tile.
#[titan::kernel(instances((BM, BN, BK) in [(128, 128, 64), (32, 32, 16)]), roles(producer: 1 warp, consumer: 2 warpgroups))]
pub fn gemm_ws<const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(M, N)] c: &mut Tensor<f16, 2>,
) {
    let steps = cdiv(K, BK);
    let ring = Ring::<(Smem<f16, BM, BK>, Smem<f16, BN, BK>), 3>::new();
    let work = c.work::<BM, BN>();
    match role() {
        Role::Producer => {
            for [m, n] in work.indices() {
                for (t, slot) in ring.produce(0..steps) {
                    slot.copy((a.tile([m, t]), b.tile([n, t]))).commit();
                }
            }
        }
        Role::Consumer => {
            for out in work.tiles() {
                let mut acc = Acc::<f32, D2<BM, BN>, 1>::zeros();
                for (_t, ready) in ring.consume(0..steps) {
                    acc = acc.mma(ready.wait(), |s| (s.a(), s.b().t()));
                }
                out.store(acc.finish().cast());
            }
        }
    }
}

/// The same with two instances of the role that multiplies, which take tiles in turn: one stores its tile while the MMAs of the other run
/// ("ping-pong"). Each has three of the slots.
#[titan::kernel(instances((BM, BN, BK) in [(128, 128, 64), (32, 32, 16)]), roles(producer: 1 warp, consumer: [1 warpgroup; 2]))]
pub fn gemm_in_turn<const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(M, N)] c: &mut Tensor<f16, 2>,
) {
    let steps = cdiv(K, BK);
    let ring = Ring::<(Smem<f16, BM, BK>, Smem<f16, BN, BK>), 6>::new();
    let work = c.work::<BM, BN>();
    match role() {
        Role::Producer => {
            for [m, n] in work.indices() {
                for (t, slot) in ring.produce(0..steps) {
                    slot.copy((a.tile([m, t]), b.tile([n, t]))).commit();
                }
            }
        }
        Role::Consumer => {
            for out in work.tiles() {
                let mut acc = Acc::<f32, D2<BM, BN>, 1>::zeros();
                for (_t, ready) in ring.consume(0..steps) {
                    acc = acc.mma(ready.wait(), |s| (s.a(), s.b().t()));
                }
                out.store(acc.finish().cast());
            }
        }
    }
}

/// The greatest errors of the device and of the reference.
pub(crate) fn check(dev: &Device, [m, n, k]: [usize; 3]) -> titan::Result<f64> {
    let mut rng = common::Rng::new(5);
    let (ah, bh) = (rng.fill::<f16>(m * k), rng.fill::<f16>(n * k));
    let (a, b) = (dev.tensor(&ah, [m, k])?, dev.tensor(&bh, [n, k])?);
    let (mut c, mut again) = (dev.zeros([m, n])?, dev.zeros([m, n])?);
    gemm_ws::<32, 32, 16>(&a, &b, &mut c).sync()?;
    gemm_ws::reference::<32, 32, 16>(&a, &b, &mut again)?;
    let mut in_turn = dev.zeros([m, n])?;
    gemm_in_turn::<32, 32, 16>(&a, &b, &mut in_turn).sync()?;
    let want = common::matmul_nt(&common::f64s(&ah), &common::f64s(&bh), m, n, k);
    let error = |c: &Tensor<f16, 2>| Ok::<f64, titan::Error>(common::max_error(&c.to_vec()?, &want));
    Ok(error(&c)?.max(error(&again)?).max(error(&in_turn)?))
}

fn main() -> titan::Result<()> {
    let dev = Device::best()?;
    common::report("gemm_ws 129 × 257 × 65", &dev, check(&dev, [129, 257, 65])?, 2e-3);
    Ok(())
}
