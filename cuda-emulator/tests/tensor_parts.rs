//! Launches of a grouped product whose groups are parts of its tensors: on Hopper they are copied and stored by one tensor map of each
//! tensor, where the driver encodes it; elsewhere by other code, with the same result.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(clippy::disallowed_methods, reason = "tests are pointed at devices by the environment")]
#![expect(unsafe_code, reason = "settings of the emulated driver")]

mod cuda_process;
mod emulator_settings;

use cuda_process::{device, with};
use emulator_settings::Emulator;
use titan::prelude::*;

const ENCODER: &str = "cuTensorMapEncodeTiled";
const HOPPER: (&str, &str) = ("CUDA_EMULATOR_DEVICES", "sm_90:sms=2:memory=64");

/// Rows `off[e]..off[e + 1]` of `y` belong to matrix `e` of `w`, and are products of the rows of `x` of the group `ahead` further.
#[titan::kernel(instances((BM, BN, BK) in [(64, 64, 32)]))]
fn grouped<const BM: i32, const BN: i32, const BK: i32>(
    #[shape(R, K)] x: &Tensor<bf16, 2>,
    #[shape(E, N, K)] w: &Tensor<bf16, 3>,
    #[shape(E + 1)] off: &Tensor<i32, 1>,
    #[shape(R, N)] y: &mut Tensor<bf16, 2>,
    ahead: i32,
) {
    for out in y.ragged::<BM, BN>(off) {
        let (e, [m, n]) = (out.group(), out.index());
        let (x, w) = (x.segment(off, e + ahead), w.index::<0>(e));
        let mut acc = Tile::<f32, BM, BN>::zeros();
        for k in pipelined(0..cdiv(K, BK)) {
            acc = mma(x.load_tile::<BM, BK>([m, k]), w.load_tile::<BN, BK>([n, k]).t(), acc);
        }
        out.store(acc.cast());
    }
}

/// Small integers, whose products and sums are exact.
fn numbers(n: usize, seed: usize) -> Vec<bf16> {
    (0..n).map(|i| bf16::from_f32(((i * 7 + i / 5 + seed) % 5) as f32 - 2.0)).collect()
}

/// All sizes, or in the quick depth one of them, in turn.
fn in_turn<T, const N: usize>(turn: usize, sizes: [T; N]) -> impl Iterator<Item = T> {
    sizes
        .into_iter()
        .enumerate()
        .filter(move |(nth, _)| test_depth::is_full() || *nth == turn % N)
        .map(|(_, size)| size)
}

/// Runs a product of groups with so many rows; the code for this target is chosen, for this reason against the code for Hopper.
#[track_caller]
fn runs(dev: &Device, rows: &[i32], [n, k]: [usize; 2], (target, reason): (&str, &str), prepare: impl Fn()) {
    let mut off = vec![0];
    rows.iter().for_each(|rows| off.push(off[off.len() - 1] + rows));
    let (all, groups) = (off[rows.len()] as usize, rows.len());
    let x = dev.tensor(numbers(all * k, 1), [all, k]).unwrap();
    let w = dev.tensor(numbers(groups * n * k, 2), [groups, n, k]).unwrap();
    let off = dev.tensor(off, [groups + 1]).unwrap();
    let (mut y, mut want) = (dev.full([all, n], bf16::NAN).unwrap(), dev.full([all, n], bf16::NAN).unwrap());
    prepare();
    let choice = grouped::<64, 64, 32>(&x, &w, &off, &mut y, 0).choice().unwrap().unwrap();
    assert_eq!(choice.target, target, "{choice}");
    let told = choice.passed_over.iter().any(|(target, why)| target == "sm_90a" && why.contains(reason));
    assert!(told || reason.is_empty(), "{reason}: {choice}");
    prepare();
    grouped::<64, 64, 32>(&x, &w, &off, &mut y, 0).sync().unwrap();
    grouped::reference::<64, 64, 32>(&x, &w, &off, &mut want, 0).unwrap();
    assert_eq!(y.to_vec().unwrap(), want.to_vec().unwrap(), "{rows:?}, {n} by {k}");
}

#[test]
fn groups_are_copied_by_one_map_of_each_tensor() {
    with("groups_are_copied_by_one_map_of_each_tensor", &[HOPPER], || {
        let dev = device();
        let kernels = titan::kernels().unwrap();
        let known = kernels.iter().find(|k| k.name.starts_with("grouped::")).unwrap();
        let assumed = &known.variants.iter().find(|v| v.target == "sm_90a").unwrap().assumptions;
        for sentence in [
            "`x` has a tensor map with boxes of 64 × 32 of parts along axis 0",
            "`w` has a tensor map with boxes of 1 × 64 × 32",
            "`y` has a tensor map with boxes of 64 × 64 of parts along axis 0",
        ] {
            assert!(assumed.iter().any(|a| a == sentence), "{assumed:?}");
        }
        let chosen = ("sm_90a", "");
        // Empty groups at both ends and in between, groups of one row, whole tiles, and ends inside of tiles.
        let all = [&[5][..], &[0, 70, 0, 64, 1, 130, 0], &[64, 64], &[0, 0, 0, 1], &[1; 9], &[200, 0], &[63, 65, 128]];
        for (turn, rows) in all.into_iter().enumerate() {
            for size in in_turn(turn, [[64, 32], [72, 136], [8, 40]]) {
                runs(&dev, rows, size, chosen, || ());
            }
        }
        // No rows at all: there is nothing to map, and nothing to do.
        runs(&dev, &[0, 0], [64, 32], ("sm_80", "it has no elements along axis 0"), || ());
        // Rows that are no multiples of 16 bytes.
        runs(&dev, &[70, 3], [63, 33], ("sm_80", "it needs that"), || ());
    });
}

#[test]
fn a_map_for_parts_that_the_driver_refuses_is_no_failure() {
    with("a_map_for_parts_that_the_driver_refuses_is_no_failure", &[HOPPER], || {
        let (dev, emulator) = (device(), Emulator::loaded());
        for (nth, name) in [(1, "`x`"), (2, "`w`"), (3, "`y`")] {
            for code in [1, 801] {
                let why = format!("{name} has no tensor map: ");
                let fail = || emulator.fail(&format!("{ENCODER}:{nth}:{code}"));
                // The variant for outputs of any alignment has fewer maps, and asks again for the others.
                runs(&dev, &[3, 0, 70], [72, 40], ("sm_90a", &why), fail);
                assert_eq!(emulator.struck(ENCODER), 1);
                emulator.fail("");
                runs(&dev, &[3, 0, 70], [72, 40], ("sm_90a", ""), || ());
            }
        }
    });
}

/// Only the role that copies reads the bounds of the rows of `x`, and one thread executes it: it reports a group that there is not.
#[test]
fn a_group_that_there_is_not_is_reported() {
    with("a_group_that_there_is_not_is_reported", &[HOPPER], || {
        let dev = device();
        let [rows, n, k] = [80, 64, 64];
        let x = dev.tensor(numbers(rows * k, 1), [rows, k]).unwrap();
        let w = dev.tensor(numbers(2 * n * k, 2), [2, n, k]).unwrap();
        let off = dev.tensor([0, 70, 80], [3]).unwrap();
        for ahead in [1, -1, i32::MAX] {
            let mut y = dev.zeros([rows, n]).unwrap();
            let choice = grouped::<64, 64, 32>(&x, &w, &off, &mut y, ahead).choice().unwrap().unwrap();
            assert_eq!(choice.target, "sm_90a", "{choice}");
            let error = grouped::<64, 64, 32>(&x, &w, &off, &mut y, ahead).sync().unwrap_err().to_string();
            assert!(error.contains("a segment that the offsets do not have"), "{error}");
        }
    });
}

/// `W[e] = X[.., off[e]..off[e + 1]] · Z[.., off[e]..off[e + 1]]ᵀ`: sums over groups of columns, whose maps the device makes.
#[titan::kernel(instances((BM, BN, BK) in [(64, 64, 32)]), grid(E, cdiv(M, BM), cdiv(N, BN)))]
fn grouped_sums<const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, T)] x: &Tensor<bf16, 2>,
    #[shape(N, T)] z: &Tensor<bf16, 2>,
    #[shape(E + 1)] off: &Tensor<i32, 1>,
    #[shape(E, M, N)] w: &mut Tensor<f32, 3>,
) {
    let (e, m, n) = (program_id(0), program_id(1), program_id(2));
    let (lo, hi) = (off.get([e]), off.get([e + 1]));
    let (x, z) = (x.slice::<1>(lo..hi), z.slice::<1>(lo..hi));
    let mut acc = Tile::<f32, BM, BN>::zeros();
    for k in pipelined(0..cdiv(x.dim(1), BK)) {
        acc = mma(x.load_tile::<BM, BK>([m, k]), z.load_tile::<BN, BK>([n, k]).t(), acc);
    }
    w.index_mut::<0>(e).store_tile([m, n], acc);
}

/// Runs sums over groups of `t` columns with these bounds, and compares the results; the code that was chosen, or the error.
fn sums(dev: &Device, off: &[i32], [m, n, t]: [usize; 3], prepare: impl Fn()) -> titan::Result<titan::Choice> {
    let groups = off.len() - 1;
    let x = dev.tensor(numbers(m * t, 1), [m, t])?;
    let z = dev.tensor(numbers(n * t, 2), [n, t])?;
    let off = dev.tensor(off, [groups + 1])?;
    let (mut w, mut want) = (dev.full([groups, m, n], f32::NAN)?, dev.full([groups, m, n], f32::NAN)?);
    let choice = grouped_sums::<64, 64, 32>(&x, &z, &off, &mut w).choice()?.unwrap();
    prepare();
    grouped_sums::<64, 64, 32>(&x, &z, &off, &mut w).sync()?;
    grouped_sums::reference::<64, 64, 32>(&x, &z, &off, &mut want)?;
    assert_eq!(w.to_vec()?, want.to_vec()?);
    Ok(choice)
}

#[test]
fn the_device_makes_a_map_for_each_end_of_a_part() {
    with("the_device_makes_a_map_for_each_end_of_a_part", &[HOPPER], || {
        let dev = device();
        let kernels = titan::kernels().unwrap();
        let known = kernels.iter().find(|k| k.name.starts_with("grouped_sums::")).unwrap();
        let assumed = &known.variants.iter().find(|v| v.target == "sm_90a").unwrap().assumptions;
        let sentence = "`x` has a tensor map with boxes of 64 × 32 of parts along axis 1, made on the device";
        assert!(assumed.iter().any(|a| a == sentence), "{assumed:?}");
        // Groups that are empty, of one column, of whole steps and not; overlapping ones, and bounds that are no columns.
        let all =
            [&[0, 136][..], &[0, 0, 70, 70, 71, 136], &[64, 128, 136], &[5, 3, 100, 7], &[-9, 20, 500, 0, i32::MAX]];
        for (turn, off) in all.into_iter().enumerate() {
            for size in in_turn(turn, [[64, 64, 136], [70, 4, 136], [1, 72, 136]]) {
                let choice = sums(&dev, off, size, || ()).unwrap();
                assert_eq!(choice.target, "sm_90a", "{choice}");
            }
        }
        // Rows that are no multiples of 16 bytes.
        assert_eq!(sums(&dev, &[0, 7, 33], [8, 8, 33], || ()).unwrap().target, "sm_80");
        let (x, z) = (dev.tensor(numbers(8, 1), [1, 8]).unwrap(), dev.tensor(numbers(32, 2), [4, 8]).unwrap());
        for (groups, target) in [((1 << 16) - 1, "sm_90a"), (1 << 16, "sm_80")] {
            let off = dev.tensor(vec![0; groups + 1], [groups + 1]).unwrap();
            let mut w = dev.zeros([groups, 1, 4]).unwrap();
            let choice = grouped_sums::<64, 64, 32>(&x, &z, &off, &mut w).choice().unwrap().unwrap();
            let why = "parts of it would have 65537 maps, and 65536 are possible";
            let told = choice.passed_over.iter().any(|(_, told)| told.contains(why));
            assert_eq!((&*choice.target, told), (target, target == "sm_80"), "{choice}");
        }
    });
}

/// Each call for the table may fail: the launch reports an error or works, and the next one works.
#[test]
fn calls_for_tables_of_maps_may_fail() {
    with("calls_for_tables_of_maps_may_fail", &[HOPPER], || {
        let (dev, emulator) = (device(), Emulator::loaded());
        let off = [0, 70, 136];
        // One tile of each sum: the calls are the same for more.
        let run = |prepare: &dyn Fn()| sums(&dev, &off, [8, 8, 136], prepare);
        let mut struck = 0;
        for call in ["cuLaunchKernel", "cuMemAllocAsync", "cuStreamWaitEvent", "cuEventRecord", "cuEventCreate"] {
            for nth in 1..=3 {
                let result = run(&|| emulator.fail(&format!("{call}:{nth}:2")));
                if emulator.struck(call) == 1 {
                    struck += 1;
                    // An allocation is tried again, and calls that only wait or free are made up for.
                    assert!(result.is_err() || call != "cuLaunchKernel", "{call} {nth}");
                }
                emulator.fail("");
                assert_eq!(run(&|| ()).unwrap().target, "sm_90a", "after {call} {nth}");
            }
        }
        assert!(struck >= 6, "{struck}");
    });
}
