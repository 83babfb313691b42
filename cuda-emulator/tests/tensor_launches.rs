//! Launches of kernels whose code for Hopper takes tensor maps: that code runs where it can, other code where it cannot, and the result is
//! always the same. In processes of their own, with the emulated driver on boards of several compute capabilities.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(clippy::disallowed_methods, reason = "tests are pointed at devices by the environment")]
#![expect(unsafe_code, reason = "settings of the emulated driver")]

mod cuda_process;
mod emulator_settings;
#[path = "../../examples/gemm_ws.rs"]
#[expect(dead_code, reason = "an example has a `main`")]
mod gemm_ws;

use cuda_process::{CHILD, device, driver, process, with};
use emulator_settings::Emulator;
use titan::prelude::*;
use titan::{AsTensor, Launch};
use titan_nv::runtime::{OPTIONAL_SYMBOLS, SYMBOLS};

const ENCODER: &str = "cuTensorMapEncodeTiled";
const HOPPER: (&str, &str) = ("CUDA_EMULATOR_DEVICES", "sm_90:sms=2:memory=64");
const AMPERE: (&str, &str) = ("CUDA_EMULATOR_DEVICES", "sm_80:sms=2:memory=64");

/// `C[m, n] = Σ_k A[m, k] · B[n, k] + bias[n]`: warpgroups multiply on Hopper.
#[titan::kernel(
    instances((BM, BN, BK) in [(64, 16, 16)]),
    roles(producer: 1 warp, consumer: 1 warpgroup),
    grid(cdiv(M, BM), cdiv(N, BN)), allow(no_code),
)]
fn gemm<const BM: i32, const BN: i32, const BK: i32>(
    #[shape(M, K)] a: &Tensor<f16, 2>,
    #[shape(N, K)] b: &Tensor<f16, 2>,
    #[shape(N)] bias: Option<&Tensor<f32, 1>>,
    #[shape(M, N)] c: &mut Tensor<f32, 2>,
) {
    let (m, n, steps) = (program_id(0), program_id(1), cdiv(K, BK));
    let ring = Ring::<(Smem<f16, BM, BK>, Smem<f16, BN, BK>), 3>::new();
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
            let mut sum = acc.finish();
            if let Some(bias) = bias {
                sum = sum + bias.load_tile::<BN>([n]).row();
            }
            c.store_tile([m, n], sum);
        }
    }
}

/// Whether this process has the board with tensor maps.
fn is_hopper() -> bool {
    std::env::var(HOPPER.0).unwrap() == HOPPER.1
}

/// Small integers, whose products and sums are exact.
fn numbers(n: usize, seed: usize) -> Vec<f16> {
    (0..n).map(|i| f16::from_f32(((i * 7 + i / 5 + seed) % 5) as f32 - 2.0)).collect()
}

/// A launch whose result is known.
fn launch<'a>(
    a: &'a impl AsTensor<Tensor<f16, 2>>,
    b: &'a impl AsTensor<Tensor<f16, 2>>,
    c: &'a mut Tensor<f32, 2>,
) -> Launch<'a> {
    gemm::<64, 16, 16>(a, b, None, c)
}

/// What these arguments give, by the reference.
fn wanted(
    dev: &Device,
    a: &impl AsTensor<Tensor<f16, 2>>,
    b: &impl AsTensor<Tensor<f16, 2>>,
    mn: [usize; 2],
) -> Vec<f32> {
    let mut c = dev.full(mn, f32::NAN).unwrap();
    gemm::reference::<64, 16, 16>(a, b, None, &mut c).unwrap();
    c.to_vec().unwrap()
}

/// The launch runs code for this target, which the choice tells with this reason against the code for Hopper, and is right.
#[track_caller]
fn runs(
    dev: &Device,
    a: &impl AsTensor<Tensor<f16, 2>>,
    b: &impl AsTensor<Tensor<f16, 2>>,
    [m, n]: [usize; 2],
    (target, reason): (&str, &str),
) {
    let mut c = dev.full([m, n], f32::NAN).unwrap();
    let choice = launch(a, b, &mut c).choice().unwrap().unwrap();
    assert_eq!(choice.target, target, "{choice}");
    let told = choice.passed_over.iter().any(|(target, why)| target == "sm_90a" && why.contains(reason));
    assert!(told || reason.is_empty(), "{reason}: {choice}");
    launch(a, b, &mut c).sync().unwrap();
    assert_eq!(c.to_vec().unwrap(), wanted(dev, a, b, [m, n]));
}

#[test]
fn each_device_runs_the_best_code_that_it_has() {
    for board in [HOPPER, AMPERE, ("CUDA_EMULATOR_DEVICES", "sm_89")] {
        with("each_device_runs_the_best_code_that_it_has", &[board], || {
            let dev = device();
            let target = if is_hopper() { "sm_90a" } else { "sm_80" };
            for [m, n, k] in [[64, 16, 16], [70, 24, 40], [1, 4, 8], [64, 16, 200], [130, 36, 16]] {
                let a = dev.tensor(numbers(m * k, 1), [m, k]).unwrap();
                let b = dev.tensor(numbers(n * k, 2), [n, k]).unwrap();
                runs(&dev, &a, &b, [m, n], (target, ""));
            }
            let kernels = titan::kernels().unwrap();
            let gemm = kernels.iter().find(|k| k.name.starts_with("gemm::")).unwrap();
            let targets: Vec<&str> = gemm.variants.iter().map(|v| v.target.as_str()).collect();
            let first = targets.iter().position(|t| *t == "sm_80").unwrap();
            assert!(targets[1..first].iter().all(|t| *t == "sm_90a") && first > 1, "{targets:?}");
            assert!(gemm.variants[1].assumptions.iter().any(|a| a == "`a` has a tensor map with boxes of 64 × 16"));
            assert!(gemm.variants.last().unwrap().assumptions.is_empty());
        });
        if std::env::var(CHILD).is_ok() {
            return;
        }
    }
}

#[test]
fn arguments_without_tensor_maps_run_other_code() {
    with("arguments_without_tensor_maps_run_other_code", &[HOPPER], || {
        let dev = device();
        let tensor =
            |rows: usize, columns: usize, seed| dev.tensor(numbers(rows * columns, seed), [rows, columns]).unwrap();
        let (m, n) = (66, 20);
        let right = |k| tensor(n, k, 2);
        let other = |why| ("sm_80", why);
        // Nothing to sum: the tensors have no elements, and the result is zeros.
        runs(&dev, &tensor(m, 0, 1), &right(0), [m, n], other("`a`"));
        // Rows that do not begin at multiples of 16 bytes.
        for k in [1, 7, 17, 31] {
            runs(&dev, &tensor(m, k, 1), &right(k), [m, n], other("it needs that"));
        }
        // One side only.
        let wide = tensor(n, 35, 2);
        runs(&dev, &tensor(m, 24, 1), &wide.slice::<1>(0..24).unwrap(), [m, n], other("`b`"));
        // Views that are narrower than the rows that they lie in: what is beyond is not theirs.
        let wide = tensor(m, 48, 1);
        runs(&dev, &wide.slice::<1>(8..32).unwrap(), &right(24), [m, n], ("sm_90a", ""));
        let below = wide.slice::<0>(1..65).unwrap();
        runs(&dev, &below.slice::<1>(16..24).unwrap(), &right(8), [64, n], ("sm_90a", ""));
        // A first element that is not at a multiple of 16 bytes.
        runs(&dev, &wide.slice::<1>(1..25).unwrap(), &right(24), [m, n], other("`a` starts at a multiple of 16 bytes"));
        // Neighbours in a row that are not adjacent.
        let turned = tensor(24, m, 1);
        let turned = turned.transpose::<0, 1>().unwrap();
        runs(&dev, &turned, &right(24), [m, n], other("`a` is contiguous along axis 1"));
        // Rows that are one and the same.
        let row = tensor(1, 24, 1);
        runs(&dev, &row.broadcast([m, 24]).unwrap(), &right(24), [m, n], other("`a` has a tensor map"));
        let column = tensor(m, 1, 1);
        runs(&dev, &column.broadcast([m, 24]).unwrap(), &right(24), [m, n], other("`a`"));
        // A row alone has no neighbours.
        runs(&dev, &row, &right(24), [1, n], ("sm_90a", ""));
        // No programs, no code.
        let (none, mut c) = (tensor(0, 24, 1), dev.zeros([0, n]).unwrap());
        assert_eq!(launch(&none, &right(24), &mut c).choice().unwrap(), None);
        launch(&none, &right(24), &mut c).sync().unwrap();
    });
}

#[test]
fn optional_tensors_are_there_or_not() {
    with("optional_tensors_are_there_or_not", &[HOPPER], || {
        let dev = device();
        let [m, n, k] = [70, 20, 24];
        let (a, b) = (dev.tensor(numbers(m * k, 1), [m, k]).unwrap(), dev.tensor(numbers(n * k, 2), [n, k]).unwrap());
        let bias = dev.from_fn([n], |[i]| i as f32).unwrap();
        for bias in [None, Some(&bias)] {
            let (mut c, mut want) = (dev.zeros([m, n]).unwrap(), dev.zeros([m, n]).unwrap());
            let choice = gemm::<64, 16, 16>(&a, &b, bias, &mut c).choice().unwrap().unwrap();
            assert_eq!(choice.to_string(), "the code for sm_90a");
            gemm::<64, 16, 16>(&a, &b, bias, &mut c).sync().unwrap();
            gemm::reference::<64, 16, 16>(&a, &b, bias, &mut want).unwrap();
            assert_eq!(c.to_vec().unwrap(), want.to_vec().unwrap());
        }
    });
}

#[test]
fn a_driver_without_the_encoder_runs_other_code() {
    let folder = driver(&[ENCODER]);
    process("a_driver_without_the_encoder_runs_other_code", &folder, &[HOPPER], || {
        let dev = device();
        let (a, b) =
            (dev.tensor(numbers(64 * 16, 1), [64, 16]).unwrap(), dev.tensor(numbers(16 * 16, 2), [16, 16]).unwrap());
        runs(&dev, &a, &b, [64, 16], ("sm_80", "the driver is older than tensor maps"));
    });
}

#[test]
fn an_encoder_that_fails_is_no_failure_of_the_launch() {
    with("an_encoder_that_fails_is_no_failure_of_the_launch", &[HOPPER], || {
        let (dev, emulator) = (device(), Emulator::loaded());
        let (a, b) =
            (dev.tensor(numbers(64 * 16, 1), [64, 16]).unwrap(), dev.tensor(numbers(16 * 16, 2), [16, 16]).unwrap());
        for (nth, name) in [(1, "`a`"), (2, "`b`")] {
            for code in [1, 2, 304, 801, 999] {
                emulator.fail(&format!("{ENCODER}:{nth}:{code}"));
                let mut c = dev.zeros([64, 16]).unwrap();
                let choice = launch(&a, &b, &mut c).choice().unwrap().unwrap();
                // The variant for outputs of any alignment asks again for the maps of the operands.
                assert_eq!((choice.target.as_str(), emulator.struck(ENCODER)), ("sm_90a", 1), "{choice}");
                let why = &choice.passed_over[0].1;
                assert!(why.contains(&format!("{name} has no tensor map: ")) && why.contains(ENCODER), "{why}");
                emulator.fail(&format!("{ENCODER}:{nth}:{code}"));
                launch(&a, &b, &mut c).sync().unwrap();
                assert_eq!(emulator.struck(ENCODER), 1);
                assert_eq!(c.to_vec().unwrap(), wanted(&dev, &a, &b, [64, 16]));
                // If it fails again, the code for sm_80 runs.
                emulator.fail(&format!("{ENCODER}:{nth}+:{code}"));
                runs(&dev, &a, &b, [64, 16], ("sm_80", ENCODER));
                emulator.fail("");
                // The next launch has its maps again.
                runs(&dev, &a, &b, [64, 16], ("sm_90a", ""));
            }
        }
    });
}

/// Each call of the driver fails at some time during launches with tensor maps: they return errors, or are right.
#[test]
fn every_call_may_fail_beside_tensor_maps() {
    for (number, order) in ["late", "early", "random:1"].into_iter().enumerate() {
        let settings = [HOPPER, ("CUDA_EMULATOR_ORDER", order)];
        with("every_call_may_fail_beside_tensor_maps", &settings, || {
            let (dev, emulator) = (device(), Emulator::loaded());
            let (a, b) = (
                dev.tensor(numbers(66 * 16, 1), [66, 16]).unwrap(),
                dev.tensor(numbers(20 * 16, 2), [20, 16]).unwrap(),
            );
            let want = wanted(&dev, &a, &b, [66, 20]);
            let run = || {
                let stream = dev.stream()?;
                let mut c = dev.zeros([66, 20])?;
                launch(&a, &b, &mut c).launch(&stream)?;
                // Both tensors are gone before the work has run.
                let (a, b) = (a.copy()?, b.copy()?);
                let mut d = dev.full([66, 20], 1.0f32)?;
                launch(&a, &b, &mut d).launch(&stream)?;
                drop((a, b));
                Ok::<_, titan::Error>((c.to_vec()?, d.to_vec()?))
            };
            for call in SYMBOLS.iter().chain(OPTIONAL_SYMBOLS) {
                // In the quick depth, each call fails the first time, and once more later; another time in each order.
                let faults = [(1, 304), (2, 2), (3, 304), (4, 1), (7, 304)];
                let is_meant = |nth: usize| test_depth::is_full() || nth == 0 || nth == 1 + number;
                for (_, (nth, code)) in faults.into_iter().enumerate().filter(|(nth, _)| is_meant(*nth)) {
                    emulator.fail(&format!("{call}:{nth}:{code}"));
                    if let Ok((c, d)) = run() {
                        assert!(c == want && d == want, "{call}:{nth}:{code}");
                    }
                    let struck = emulator.struck(call);
                    assert!(*call != ENCODER || nth > 4 || struck == 1, "{nth} encodings");
                    emulator.fail("");
                    assert_eq!(run().unwrap(), (want.clone(), want.clone()), "after {call}:{nth}:{code}");
                }
            }
        });
        if std::env::var(CHILD).is_ok() {
            return;
        }
    }
}

#[test]
fn code_that_is_too_new_for_the_driver_gives_way() {
    use titan_core::artifact::{Artifact, Variant};
    with("code_that_is_too_new_for_the_driver_gives_way", &[HOPPER], || {
        let source = "kernel @ones(%y: mut tensor<f32>[N]) grid(N) {
            %p = program_id<0> : i32
            %one = const 1.0 : f32
            set %y[%p], %one
            return
        }";
        let cpu = Variant { target: "cpu".to_owned(), payload: source.as_bytes().to_vec(), ..Variant::default() };
        let kernel = titan_core::verify::verify(titan_core::text::parse_one(source).unwrap()).unwrap();
        let machine = titan_nv::Machine::from_name("sm_80").unwrap();
        let old = titan_core::driver::compile(&kernel, machine, None).unwrap();
        let text = String::from_utf8(old[0].payload.clone()).unwrap();
        let text = text.replace(".target sm_80", ".target sm_90a").replacen(".version 7.0", ".version 99.0", 1);
        let new = |threads, text: &str| Variant {
            target: "sm_90a".to_owned(),
            threads,
            payload: text.as_bytes().to_vec(),
            ..old[0].clone()
        };
        let huge = Variant { shared_bytes: 400_000, ..new(32, &text) };
        for (new, reason) in [(new(32, &text), "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"), (huge, "400000 bytes")] {
            let artifact = |more: &[Variant]| {
                let variants = [&[cpu.clone(), new.clone()], more].concat();
                let bytes = Artifact { kernel: "ones".to_owned(), variants, refused: Vec::new() }.encode();
                let kernel = titan::__private::KernelRef::new("ones", bytes.leak(), "src/kernels.rs", [1, 8]);
                &*Box::leak(Box::new(kernel))
            };
            let mut y = device().zeros::<f32, 1>([3]).unwrap();
            let both = artifact(&old);
            let choice = Launch::new(both, vec![(&mut y).into()]).choice().unwrap().unwrap();
            assert_eq!(choice.target, "sm_80");
            assert!(choice.passed_over[0].1.contains(reason), "{choice}");
            Launch::new(both, vec![(&mut y).into()]).sync().unwrap();
            assert_eq!(y.to_vec().unwrap(), [1.0; 3]);
            // Alone, it is the error.
            let error = Launch::new(artifact(&[]), vec![(&mut y).into()]).sync().unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    });
}

/// The example's product, of two warpgroups, on both boards.
#[test]
fn the_example_runs_on_both_boards() {
    for board in [HOPPER, AMPERE] {
        with("the_example_runs_on_both_boards", &[board], || {
            let dev = device();
            let [m, n, k] = [130, 72, 136];
            let (a, b) =
                (dev.tensor(numbers(m * k, 3), [m, k]).unwrap(), dev.tensor(numbers(n * k, 4), [n, k]).unwrap());
            let (mut c, mut want) = (dev.zeros([m, n]).unwrap(), dev.zeros([m, n]).unwrap());
            let choice = gemm_ws::gemm_ws::<128, 128, 64>(&a, &b, &mut c).choice().unwrap().unwrap();
            let hopper = is_hopper();
            assert_eq!(choice.target, if hopper { "sm_90a" } else { "sm_80" }, "{choice}");
            gemm_ws::gemm_ws::<128, 128, 64>(&a, &b, &mut c).sync().unwrap();
            gemm_ws::gemm_ws::reference::<128, 128, 64>(&a, &b, &mut want).unwrap();
            assert_eq!(c.to_vec().unwrap(), want.to_vec().unwrap());
            // Two instances that take tiles in turn, where boxes are copied.
            let mut c = dev.zeros([m, n]).unwrap();
            let choice = gemm_ws::gemm_in_turn::<128, 128, 64>(&a, &b, &mut c).choice().unwrap().unwrap();
            assert_eq!(choice.target, if hopper { "sm_90a" } else { "sm_80" }, "{choice}");
            gemm_ws::gemm_in_turn::<128, 128, 64>(&a, &b, &mut c).sync().unwrap();
            assert_eq!(c.to_vec().unwrap(), want.to_vec().unwrap());
            // Tiles of 32 rows are none of a warpgroup's: there is no code for Hopper alone, and the choice says so.
            let choice = gemm_ws::gemm_ws::<32, 32, 16>(&a, &b, &mut c).choice().unwrap().unwrap();
            assert_eq!(choice.target, "sm_80");
            let told = choice.passed_over.iter().any(|(target, why)| target == "sm_90a" && why.contains("its M is 32"));
            assert_eq!(told, hopper, "{choice}");
        });
        if std::env::var(CHILD).is_ok() {
            return;
        }
    }
}

/// Programs of a cluster take tiles that are neighbours along one axis. With one tile there, code without clusters runs: every second program
/// would have nothing to do.
#[test]
fn one_tile_along_the_axis_of_clusters_runs_code_without_them() {
    with("one_tile_along_the_axis_of_clusters_runs_code_without_them", &[HOPPER], || {
        let dev = device();
        for ([m, n, k], alone) in [
            ([1, 304, 72], true),
            ([128, 72, 64], true),
            ([129, 72, 64], false),
            ([300, 8, 136], false),
            ([100, 128, 200], true),
        ] {
            let (a, b) =
                (dev.tensor(numbers(m * k, 5), [m, k]).unwrap(), dev.tensor(numbers(n * k, 6), [n, k]).unwrap());
            let (mut c, mut want) = (dev.full([m, n], f16::NAN).unwrap(), dev.zeros([m, n]).unwrap());
            let choice = gemm_ws::gemm_ws::<128, 128, 64>(&a, &b, &mut c).choice().unwrap().unwrap();
            assert_eq!(choice.target, "sm_90a", "{choice}");
            let passed: Vec<&str> = choice.passed_over.iter().map(|(_, why)| why.as_str()).collect();
            assert_eq!(passed, if alone { &["it needs that `M > 128`"][..] } else { &[] }, "{m} by {n}");
            gemm_ws::gemm_ws::<128, 128, 64>(&a, &b, &mut c).sync().unwrap();
            gemm_ws::gemm_ws::reference::<128, 128, 64>(&a, &b, &mut want).unwrap();
            assert_eq!(c.to_vec().unwrap(), want.to_vec().unwrap(), "{m} by {n} by {k}");
        }
    });
}
