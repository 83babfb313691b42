//! Matrix products: `C[m, n] = Σ_k A[m, k] · B[n, k]`.

use crate::{Random, close, device, product};
use titan::prelude::*;

/// One output tile per program; one MMA stays in flight.
#[titan::kernel(
    instances((BM, BN, BK, D) in [(16, 24, 8, 4), (128, 256, 64, 4)]),
    roles(producer: 1 warp, consumer: 2 warpgroups),
    grid(cdiv(M, BM), cdiv(N, BN)), allow(no_code),
)]
fn gemm_ws<const BM: i32, const BN: i32, const BK: i32, const D: i32>(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(M, N)] c: &mut Tensor<f16, 2>,
) {
    let (m, n, steps) = (program_id(0), program_id(1), cdiv(K, BK));
    let ring = Ring::<(Smem<f16, BM, BK>, Smem<f16, BN, BK>), D>::new();
    match role() {
        Role::Producer => {
            for (t, slot) in ring.produce(0..steps) {
                slot.copy((a.tile([m, t]), b.tile([n, t]))).commit();
            }
        }
        Role::Consumer => {
            let mut acc = Acc::<f32, D2<BM, BN>, 1>::zeros();
            for (_t, ready) in ring.consume(0..steps) {
                acc = acc.mma(ready.wait(), |s| (s.a(), s.b().t()));
            }
            c.store_tile([m, n], acc.finish().cast());
        }
    }
}

/// Both roles walk the same output tiles; the ring's clocks run on from tile to tile.
#[titan::kernel(
    instances((BM, BN, BK, D) in [(16, 24, 8, 4), (128, 256, 64, 4)]),
    roles(producer: 1 warp, consumer: 2 warpgroups), allow(no_code),
)]
fn gemm_ws_persistent<const BM: i32, const BN: i32, const BK: i32, const D: i32>(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(M, N)] c: &mut Tensor<f16, 2>,
) {
    let steps = cdiv(K, BK);
    let ring = Ring::<(Smem<f16, BM, BK>, Smem<f16, BN, BK>), D>::new();
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

/// Each MMA borrows its stage, which is released explicitly.
#[titan::kernel(
    instances((BM, BN, BK, D) in [(16, 24, 8, 1), (16, 24, 8, 3), (128, 256, 64, 4)]),
    roles(producer: 1 warp, consumer: 2 warpgroups),
    grid(cdiv(M, BM), cdiv(N, BN)), allow(no_code),
)]
fn gemm_ws_sync<const BM: i32, const BN: i32, const BK: i32, const D: i32>(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(M, N)] c: &mut Tensor<f16, 2>,
) {
    let (m, n, steps) = (program_id(0), program_id(1), cdiv(a.dim(1), BK));
    let ring = Ring::<(Smem<f16, BM, BK>, Smem<f16, BN, BK>), D>::new();
    match role() {
        Role::Producer => {
            for (t, slot) in ring.produce(0..steps) {
                slot.copy((a.tile_at([m * BM, t * BK]), b.tile::<BN, BK>([n, t]))).commit();
            }
        }
        Role::Consumer => {
            let mut acc = Tile::<f32, BM, BN>::zeros();
            for (_t, ready) in ring.consume(0..steps) {
                let stage = ready.wait();
                acc = mma_async(stage.a(), stage.b().t(), acc).wait();
                stage.release();
            }
            c.store_tile([m, n], acc.cast());
        }
    }
}

/// Two readers of a stage: each has a part of it, and the halves of the result are added at the end.
#[titan::kernel(
    instances((BM, BN, BK, D) in [(16, 24, 8, 2)]),
    roles(producer: 1 warp, consumer: 1 warpgroup),
    grid(cdiv(M, BM), cdiv(N, 2 * BN)), allow(no_code),
)]
fn gemm_halves<const BM: i32, const BN: i32, const BK: i32, const D: i32>(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(M, N)] c: &mut Tensor<f16, 2>,
) {
    let (m, n, steps) = (program_id(0), program_id(1), cdiv(K, BK));
    let ring = Ring::<(Smem<f16, BM, BK>, Smem<f16, BN, BK>, Smem<f16, BN, BK>), D>::new();
    match role() {
        Role::Producer => {
            for (t, slot) in ring.produce(0..steps) {
                slot.copy((a.tile([m, t]), b.tile([2 * n, t]), b.tile([2 * n + 1, t]))).commit();
            }
        }
        Role::Consumer => {
            let (mut left, mut right) = (Tile::<f32, BM, BN>::zeros(), Tile::<f32, BM, BN>::zeros());
            for (_t, ready) in ring.consume(0..steps) {
                let [p, q] = ready.wait().split::<2>();
                let first = mma_async(p.a(), p.b().t(), left);
                let second = mma_async_reg(q.a().load(), q.c().t(), right);
                left = first.wait();
                right = second.wait();
                Stage::join([p, q]).release();
            }
            c.store_tile([m, 2 * n], left.cast());
            c.store_tile([m, 2 * n + 1], right.cast());
        }
    }
}

/// The sums of blocks that a mask leaves out are not computed: their stages hold nothing.
#[titan::kernel(
    instances((BM, BN, BK, D) in [(16, 24, 8, 3)]),
    roles(producer: 1 warp, consumer: 1 warpgroup),
    grid(cdiv(M, BM), cdiv(N, BN)), allow(no_code),
)]
fn gemm_masked<const BM: i32, const BN: i32, const BK: i32, const D: i32>(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(cdiv(K, BK))] keep: &Tensor<i32, 1>,
    #[shape(M, N)] c: &mut Tensor<f16, 2>,
) {
    let (m, n, steps) = (program_id(0), program_id(1), cdiv(K, BK));
    let ring = Ring::<(Smem<f16, BM, BK>, Smem<f16, BN, BK>), D>::new();
    match role() {
        Role::Producer => {
            for (t, slot) in ring.produce(0..steps) {
                slot.copy_or_poison(keep.get([t]) != 0, (a.tile([m, t]), b.tile([n, t]))).commit();
            }
        }
        Role::Consumer => {
            let mut acc = Tile::<f32, BM, BN>::zeros();
            for (_t, ready) in ring.consume(0..steps) {
                if let Some(stage) = ready.wait_filled() {
                    acc = mma(stage.a(), stage.b().t(), acc);
                    stage.release();
                }
            }
            c.store_tile([m, n], acc.cast());
        }
    }
}

/// Blocks that a mask leaves out are zeros; output tiles are stored out of shared memory while the next one is computed.
#[titan::kernel(
    instances((BM, BN, BK, D) in [(16, 24, 8, 3)]),
    roles(producer: 1 warp, consumer: 1 warpgroup), allow(no_code),
)]
fn gemm_staged<const BM: i32, const BN: i32, const BK: i32, const D: i32>(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(cdiv(K, BK))] keep: &Tensor<i32, 1>,
    #[shape(M, N)] c: &mut Tensor<f16, 2>,
) {
    let steps = cdiv(K, BK);
    let ring = Ring::<(Smem<f16, BM, BK>, Smem<f16, BN, BK>), D>::new();
    let staging = Staging::<Smem<f16, BM, BN>, 2>::new();
    let work = c.work::<BM, BN>();
    match role() {
        Role::Producer => {
            for [m, n] in work.indices() {
                for (t, slot) in ring.produce(0..steps) {
                    if t % 2 == 0 {
                        slot.copy_if(keep.get([t]) != 0, (a.tile([m, t]), b.tile([n, t]))).commit();
                    } else if keep.get([t]) != 0 {
                        slot.copy((a.tile([m, t]), b.tile([n, t]))).commit();
                    } else {
                        slot.zero().commit();
                    }
                }
            }
        }
        Role::Consumer => {
            for out in work.tiles() {
                let mut acc = Acc::<f32, _, 2>::from_tile(Tile::<f32, BM, BN>::zeros());
                for (_t, ready) in ring.consume(0..steps) {
                    acc = acc.mma(ready.wait(), |s| (s.a(), s.b().t()));
                }
                let written = staging.acquire().write(acc.finish().cast());
                out.store_from(written).wait();
            }
        }
    }
}

type Inputs<'a> = (&'a Tensor<f16, 2>, &'a Tensor<f16, 2>);

/// Every ragged shape, every number of steps from none to beyond three times round the ring; in the quick depth, each number with one of the
/// shapes.
#[track_caller]
fn agrees(
    dev: &Device,
    bk: usize,
    slots: usize,
    kernel: impl Fn(Inputs<'_>, &mut Tensor<f16, 2>) -> titan::Result<()>,
) {
    let mut random = Random(7);
    for (nth, (m, n)) in [(16, 24), (1, 1), (33, 50)].into_iter().enumerate() {
        for steps in (0..=3 * slots + 1).filter(|steps| test_depth::is_full() || steps % 3 == nth) {
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
    agrees(&Device::cpu(), 8, 4, |(a, b), c| gemm_ws::reference::<16, 24, 8, 4>(a, b, c));
    agrees(&device(), 8, 4, |(a, b), c| gemm_ws::<16, 24, 8, 4>(a, b, c).sync());
}

#[test]
fn persistent_over_output_tiles() {
    agrees(&Device::cpu(), 8, 4, |(a, b), c| gemm_ws_persistent::reference::<16, 24, 8, 4>(a, b, c));
    agrees(&device(), 8, 4, |(a, b), c| gemm_ws_persistent::<16, 24, 8, 4>(a, b, c).sync());
}

#[test]
fn stages_released_by_hand() {
    agrees(&Device::cpu(), 8, 1, |(a, b), c| gemm_ws_sync::reference::<16, 24, 8, 1>(a, b, c));
    agrees(&device(), 8, 1, |(a, b), c| gemm_ws_sync::<16, 24, 8, 1>(a, b, c).sync());
    agrees(&Device::cpu(), 8, 3, |(a, b), c| gemm_ws_sync::reference::<16, 24, 8, 3>(a, b, c));
    agrees(&device(), 8, 3, |(a, b), c| gemm_ws_sync::<16, 24, 8, 3>(a, b, c).sync());
}

#[test]
fn two_readers_of_a_stage() {
    agrees(&Device::cpu(), 8, 2, |(a, b), c| gemm_halves::reference::<16, 24, 8, 2>(a, b, c));
    agrees(&device(), 8, 2, |(a, b), c| gemm_halves::<16, 24, 8, 2>(a, b, c).sync());
}

/// Every other pair of steps counts. In the quick depth, numbers of steps have one shape each.
#[track_caller]
fn agrees_masked(dev: &Device, kernel: impl Fn(Inputs<'_>, &Tensor<i32, 1>, &mut Tensor<f16, 2>) -> titan::Result<()>) {
    let (mut random, bk) = (Random(9), 8);
    for (nth, (m, n)) in [(16, 24), (33, 50)].into_iter().enumerate() {
        for steps in (0..=10).filter(|steps| test_depth::is_full() || steps / 2 % 2 == nth) {
            let k = steps * bk;
            let keep: Vec<i32> = (0..steps).map(|t| i32::from(t % 4 < 2)).collect();
            let (mut a, b): (Vec<f16>, Vec<f16>) = (random.many(m * k), random.many(n * k));
            let inputs =
                (dev.tensor(&a, [m, k]).unwrap(), dev.tensor(&b, [n, k]).unwrap(), dev.tensor(&keep, [steps]).unwrap());
            (0..m * k).filter(|i| keep[i % k / bk] == 0).for_each(|i| a[i] = f16::ZERO);
            let want = product(&a, &b, [m, n, k]);
            let mut c = dev.full([m, n], f16::NAN).unwrap();
            kernel((&inputs.0, &inputs.1), &inputs.2, &mut c).unwrap();
            close(&c.to_vec().unwrap(), &want, 2e-3);
        }
    }
}

#[test]
fn stages_that_hold_nothing_are_passed_over() {
    agrees_masked(&Device::cpu(), |(a, b), keep, c| gemm_masked::reference::<16, 24, 8, 3>(a, b, keep, c));
    agrees_masked(&device(), |(a, b), keep, c| gemm_masked::<16, 24, 8, 3>(a, b, keep, c).sync());
}

#[test]
fn stores_by_themselves_and_stages_of_zeros() {
    agrees_masked(&Device::cpu(), |(a, b), keep, c| gemm_staged::reference::<16, 24, 8, 3>(a, b, keep, c));
    agrees_masked(&device(), |(a, b), keep, c| gemm_staged::<16, 24, 8, 3>(a, b, keep, c).sync());
}

#[cfg(feature = "emulator")]
mod named_devices {
    use super::*;

    type Kernel = fn(&Tensor<f16, 2>, &Tensor<f16, 2>, &mut Tensor<f16, 2>, bool) -> Option<titan::Choice>;

    /// Devices of compute capability 9.0 run code with bulk copies and MMAs of warpgroups; the others do not, and have the same results. In the
    /// quick depth, a shape is run by one kernel on a device, if at all.
    #[test]
    fn hopper_has_code_of_its_own() {
        let mut random = Random(9);
        let targets = [("emulator:sm_80", "sm_80"), ("emulator:sm_89", "sm_80"), ("emulator:sm_90a", "sm_90a")];
        for (turn, (target, code)) in targets.into_iter().enumerate() {
            let dev = Device::named(target).unwrap();
            // Rows of the output need not be aligned.
            let shapes = [[128, 256, 64], [70, 40, 144], [70, 45, 144], [131, 257, 72], [5, 8, 0]];
            for (nth, [m, n, k]) in shapes.into_iter().enumerate() {
                let (a, b) = (random.many::<f16>(m * k), random.many::<f16>(n * k));
                let want = product(&a, &b, [m, n, k]);
                let (a, b) = (dev.tensor(&a, [m, k]).unwrap(), dev.tensor(&b, [n, k]).unwrap());
                let mut c = dev.full([m, n], f16::NAN).unwrap();
                // Tensors without elements have no maps.
                let code = if k == 0 { "sm_80" } else { code };
                let kernels: [Kernel; 3] = [
                    |a, b, c, told| told_or_run(gemm_ws::<128, 256, 64, 4>(a, b, c), told),
                    |a, b, c, told| told_or_run(gemm_ws_persistent::<128, 256, 64, 4>(a, b, c), told),
                    |a, b, c, told| told_or_run(gemm_ws_sync::<128, 256, 64, 4>(a, b, c), told),
                ];
                for (which, kernel) in kernels.into_iter().enumerate() {
                    let choice = kernel(&a, &b, &mut c, true).unwrap();
                    assert_eq!(choice.target, code, "{choice}");
                    // Devices with the code of another one run least.
                    let is_meant = which == (turn + nth) % 3 && nth < [3, 1, 5][turn];
                    if !test_depth::is_full() && !is_meant {
                        continue;
                    }
                    kernel(&a, &b, &mut c, false);
                    close(&c.to_vec().unwrap(), &want, 2e-3);
                }
            }
        }
    }

    /// Views with other strides than those of maps run other code, with the same results. In the quick depth, each view is run with one of the
    /// two outputs.
    #[test]
    fn views_that_have_no_map_run_other_code() {
        let dev = Device::named("emulator:sm_90a").unwrap();
        let mut random = Random(10);
        let [m, n, k] = [130, 144, 72];
        let (a, b) = (random.many::<f16>(m * k), random.many::<f16>(n * k));
        let (of_a, of_b) = (dev.tensor(&a, [m, k]).unwrap(), dev.tensor(&b, [n, k]).unwrap());
        // A with rows one element longer; A by columns; one row for all.
        let odd: Vec<f16> = (0..m * (k + 1))
            .map(|i| if i % (k + 1) < k { a[i / (k + 1) * k + i % (k + 1)] } else { f16::NAN })
            .collect();
        let odd = dev.tensor(&odd, [m, k + 1]).unwrap();
        let columns: Vec<f16> = (0..k * m).map(|i| a[i % m * k + i / m]).collect();
        let columns = dev.tensor(&columns, [k, m]).unwrap();
        let one = dev.tensor(&a[..k], [1, k]).unwrap();
        let same = a[..k].repeat(m);
        let all = [
            (of_a.slice::<0>(0..m).unwrap(), &a, "sm_90a"),
            (odd.slice::<1>(0..k).unwrap(), &a, "sm_80"),
            (columns.transpose::<0, 1>().unwrap(), &a, "sm_80"),
            (one.broadcast([m, k]).unwrap(), &same, "sm_80"),
        ];
        for (number, (view, values, code)) in all.iter().enumerate() {
            let want = product(values, &b, [m, n, k]);
            let mut c = dev.full([m, n], f16::NAN).unwrap();
            let choice = gemm_ws::<128, 256, 64, 4>(view, &of_b, &mut c).choice().unwrap().unwrap();
            assert_eq!(choice.target, *code, "view {number}: {choice}");
            if test_depth::is_full() || number % 2 == 0 {
                gemm_ws::<128, 256, 64, 4>(view, &of_b, &mut c).sync().unwrap();
                close(&c.to_vec().unwrap(), &want, 2e-3);
            }
            // An output of every second column.
            let mut wide = dev.full([m, 2 * n], f16::NAN).unwrap();
            let mut pairs = wide.reshape_mut([m, n, 2]).unwrap();
            let mut c = pairs.index_mut::<2>(0).unwrap();
            let choice = gemm_ws::<128, 256, 64, 4>(view, &of_b, &mut c).choice().unwrap().unwrap();
            assert_eq!(choice.target, *code, "view {number}, every second column: {choice}");
            if !test_depth::is_full() && number % 2 == 0 {
                continue;
            }
            gemm_ws::<128, 256, 64, 4>(view, &of_b, &mut c).sync().unwrap();
            drop(c);
            let wide = wide.to_vec().unwrap();
            let even: Vec<f16> = wide.iter().step_by(2).copied().collect();
            close(&even, &want, 2e-3);
            assert!(wide.iter().skip(1).step_by(2).all(|x| x.is_nan()), "view {number}");
        }
    }

    fn told_or_run(launch: titan::Launch<'_>, told: bool) -> Option<titan::Choice> {
        if told { launch.choice().unwrap() } else { launch.sync().map(|()| None).unwrap() }
    }
}
