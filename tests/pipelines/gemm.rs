//! Matrix products: `C[m, n] = Σ_k A[m, k] · B[n, k]`.

use crate::{Random, close, product};
use titan::prelude::*;

/// One output tile per program; one product stays under way.
#[titan::kernel(
    instances((BM, BN, BK, D) in [(16, 24, 8, 4), (128, 256, 64, 4)]),
    roles(producer: 1 warp, consumer: 2 warpgroups),
    grid(cdiv(M, BM), cdiv(N, BN)),
)]
fn gemm_ws<const BM: i32, const BN: i32, const BK: i32, const D: i32>(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(M, N)] c: &mut Tensor<f16, 2>,
) {
    let (m, n, steps) = (program_id(0), program_id(1), cdiv(K, BK));
    let ring = Ring::<(Smem<f16, BM, BK>, Smem<f16, BN, BK>), D>::new();
    match role() {
        Role::Producer => for (t, slot) in ring.produce(0..steps) {
            slot.copy((a.tile([m, t]), b.tile([n, t]))).commit();
        },
        Role::Consumer => {
            let mut acc = Acc::<f32, D2<BM, BN>, 1>::zeros();
            for (_t, ready) in ring.consume(0..steps) {
                acc = acc.mma(ready.wait(), |s| (s.a(), s.b().t()));
            }
            c.store_tile([m, n], acc.finish().cast());
        }
    }
}

type Inputs<'a> = (&'a Tensor<f16, 2>, &'a Tensor<f16, 2>);

/// Every ragged shape, every number of steps from none to beyond three times round the ring.
#[track_caller]
fn agrees(bk: usize, slots: usize, kernel: impl Fn(Inputs<'_>, &mut Tensor<f16, 2>) -> titan::Result<()>) {
    let (dev, mut random) = (Device::cpu(), Random(7));
    for (m, n) in [(16, 24), (1, 1), (33, 50)] {
        for steps in 0..=3 * slots + 1 {
            let k = if steps == 0 { 0 } else { steps * bk - steps % 3 };
            let (a, b) = (random.many(m * k), random.many(n * k));
            let want = product(&a, &b, [m, n, k]);
            let (a, b) = (dev.tensor(&a, [m, k]).unwrap(), dev.tensor(&b, [n, k]).unwrap());
            let mut c = dev.full([m, n], f16::NAN).unwrap();
            kernel((&a, &b), &mut c).unwrap();
            close(&c.to_vec().unwrap(), &want, 2e-3);
        }
    }
}

#[test]
fn an_output_tile_per_program() {
    agrees(8, 4, |(a, b), c| gemm_ws::reference::<16, 24, 8, 4>(a, b, c));
}
