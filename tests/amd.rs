//! Code for AMD's GPUs, without one: what the examples have for gfx942 and why some have nothing, what the emulator runs of it, and what becomes of
//! code and launches that do not go together.
//!
//! The tests of the language and of the examples run on `emulator:gfx942` as well: see `xtask/src/test/jobs.rs`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(clippy::duplicate_mod, dead_code, reason = "each example carries the common part and a `main`")]

use std::sync::{Arc, Mutex};
use titan::__private::KernelRef;
use titan::prelude::*;
use titan::{Error, KernelInfo, Launch};
use titan_core::artifact::{Artifact, Variant};

#[path = "shared/examples.rs"]
mod all;

const TARGET: &str = "gfx942";

fn device() -> Device {
    Device::emulator(TARGET).unwrap()
}

/// The kernels of the examples.
fn examples() -> Vec<KernelInfo> {
    let all = titan::kernels().unwrap();
    all.into_iter().filter(|k| k.location.file.contains("examples/")).collect()
}

fn refused(kernel: &KernelInfo) -> Option<&str> {
    kernel.refused.iter().find(|(target, _)| target == TARGET).map(|(_, why)| why.as_str())
}

/// What the examples have no code for: how the instances' names begin, and the reason.
const REFUSED: &[(&str, &str)] =
    &[("flash_attention::<bf16, 128, 128, 128", MEMORY), ("flash_attention::<f16, 128, 128, 128", MEMORY)];
const MEMORY: &str = "bytes of shared memory, but code for gfx942 may use 65536";

#[test]
fn every_example_has_code_or_a_reason_with_its_code() {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut with_code = 0;
    for kernel in examples() {
        let code: Vec<_> = kernel.variants.iter().filter(|v| v.target == TARGET).collect();
        match refused(&kernel) {
            Some(why) => {
                assert!(code.is_empty(), "{}: {why}", kernel.name);
                found.push((kernel.name.clone(), why.to_owned()));
            }
            None => {
                with_code += 1;
                assert!(code.last().is_some_and(|v| v.assumptions.is_empty()), "{}", kernel.name);
                for variant in code {
                    assert!(variant.code.starts_with(b"\x7fELF") && variant.text().is_none(), "{}", kernel.name);
                    let registers = variant.registers.unwrap();
                    let in_range = |n: u32, most: u32| (1..=most).contains(&n);
                    assert!(in_range(registers.scalar, 102) && in_range(registers.vector, 256), "{registers:?}");
                    assert!(registers.accumulation <= 256 && registers.scratch_bytes == 0, "{registers:?}");
                    assert!(variant.shared_bytes <= 64 << 10 && variant.threads % 64 == 0, "{}", kernel.name);
                }
            }
        }
    }
    let as_listed = |(name, why): &(String, String), (known, reason): &(&str, &str)| {
        name.starts_with(known) && why.starts_with("[T0902] ") && why.contains(reason)
    };
    let new: Vec<_> = found.iter().filter(|one| !REFUSED.iter().any(|known| as_listed(one, known))).collect();
    let gone: Vec<_> = REFUSED.iter().filter(|known| !found.iter().any(|one| as_listed(one, known))).collect();
    assert!(new.is_empty() && gone.is_empty(), "refused and not in the list: {new:#?}\nno longer refused: {gone:#?}");
    assert!(with_code >= 30, "only {with_code} instances have code");
}

/// Each operation that one lane does for others, and each kind of memory.
#[titan::kernel(grid(M), require(N <= 128), instances(T in [f32, f64, f16, bf16, i32, i64, u8, i16]))]
fn normalized<T: Elem>(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<T, 2>) {
    let m = program_id(0);
    let row = x.load_tile::<1, 128>([m, 0]);
    let parts = (row - row.reduce_max::<1>().col()).exp();
    y.store_tile([m, 0], (parts / parts.reduce_sum::<1>().col() * 100.0).cast::<T>());
}

/// `y[at[i]] += x[i]`, and the sum of all before.
#[titan::kernel(grid(cdiv(N, 64)))]
fn scattered(
    #[shape(N)] x: &Tensor<i32, 1>,
    #[shape(N)] at: &Tensor<i32, 1>,
    y: &mut Tensor<i32, 1>,
    #[shape(N)] sums: &mut Tensor<i32, 1>,
) {
    let n = program_id(0);
    let values = x.load_tile::<64>([n]);
    y.atomic_add([at.load_tile::<64>([n])], values);
    sums.store_tile([n], values.scan_sum::<0>());
}

/// Two lines from each program, and a stop.
#[titan::kernel(grid(N))]
fn talking(#[shape(N)] x: &Tensor<i32, 1>, #[shape(N, 4)] y: &mut Tensor<f32, 2>, limit: i32) {
    let n = program_id(0);
    let found = x.get([n]);
    tprint!("program {} has {}", n, found);
    tassert!(found < limit, "it is not less than the limit");
    let row = Tile::<f32, 1, 4>::full(found.cast::<f32>());
    tprint!("its row is {}", row);
    y.store_tile([n, 0], row);
}

/// The results on the CPU and in the emulator.
fn both<T: Elem>(run: impl Fn(&Device) -> titan::Result<Vec<T>>) -> [Vec<T>; 2] {
    [Device::cpu(), device()].map(|dev| run(&dev).unwrap())
}

#[test]
fn reductions_and_conversions_are_those_of_the_cpu() {
    fn check<T: Elem>(within: f64, launch: impl Fn(&Tensor<f32, 2>, &mut Tensor<T, 2>) -> titan::Result<()>) {
        let [cpu, amd] = both(|dev| {
            let x = dev.from_fn([3, 90], |[i, j]| ((i * 37 + j * 11) % 64) as f32 / 16.0)?;
            let mut y = dev.zeros([3, 90])?;
            launch(&x, &mut y)?;
            y.to_vec()
        });
        for (i, (cpu, amd)) in cpu.iter().zip(&amd).enumerate() {
            let (cpu, amd): (f64, f64) = (cpu.cast(), amd.cast());
            assert!((cpu - amd).abs() <= within * (1.0 + cpu.abs()), "element {i}: {cpu} and {amd}");
        }
    }
    check::<f32>(1e-6, |x, y| normalized::<f32>(x, y).sync());
    check::<f64>(1e-6, |x, y| normalized::<f64>(x, y).sync());
    check::<f16>(1e-3, |x, y| normalized::<f16>(x, y).sync());
    check::<bf16>(1e-2, |x, y| normalized::<bf16>(x, y).sync());
    check::<i32>(1.0, |x, y| normalized::<i32>(x, y).sync());
    check::<i64>(1.0, |x, y| normalized::<i64>(x, y).sync());
    check::<u8>(1.0, |x, y| normalized::<u8>(x, y).sync());
    check::<i16>(1.0, |x, y| normalized::<i16>(x, y).sync());
}

#[test]
fn atomics_and_scans_are_those_of_the_cpu() {
    let [cpu, amd] = both(|dev| {
        let x = dev.from_fn([200], |[i]| i as i32 * 7 % 23 - 11)?;
        let at = dev.from_fn([200], |[i]| (i * 5 % 17) as i32)?;
        let (mut y, mut sums) = (dev.full([17], 3)?, dev.zeros([200])?);
        scattered(&x, &at, &mut y, &mut sums).sync()?;
        Ok([y.to_vec()?, sums.to_vec()?].concat())
    });
    assert_eq!(cpu, amd);
    assert!(cpu.iter().any(|x| *x > 10));
}

/// The lines that a launch prints, and its error.
fn said(dev: &Device, values: &[i32], limit: i32) -> (Vec<String>, Option<String>) {
    static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock();
    LINES.lock().unwrap().clear();
    titan_cpu::set_print_sink(Some(Arc::new(|text| LINES.lock().unwrap().push(text.to_owned()))));
    let x = dev.tensor(values, [values.len()]).unwrap();
    let mut y = dev.zeros([values.len(), 4]).unwrap();
    let error = talking(&x, &mut y, limit).sync().err().map(|e| e.to_string());
    titan_cpu::set_print_sink(None);
    // Programs run in any order.
    let mut lines = std::mem::take(&mut *LINES.lock().unwrap());
    lines.sort();
    (lines, error)
}

#[test]
fn lines_and_traps_are_those_of_the_cpu() {
    let (cpu, amd) = (said(&Device::cpu(), &[4, -5, 6], 9), said(&device(), &[4, -5, 6], 9));
    assert_eq!(cpu, amd);
    assert_eq!((cpu.0.len(), cpu.1), (6, None));
    let stopped = [Device::cpu(), device()].map(|dev| said(&dev, &[12], 9));
    assert_eq!(stopped[0], stopped[1]);
    let error = stopped[0].1.clone().unwrap();
    assert!(error.contains("it is not less than the limit") && error.contains("amd.rs:"), "{error}");
}

#[test]
fn the_choice_of_code_says_why_not_another() {
    let dev = device();
    let (x, mut y) = (dev.zeros([2, 90]).unwrap(), dev.zeros([2, 90]).unwrap());
    let choice = normalized::<f32>(&x, &mut y).choice().unwrap().unwrap();
    assert_eq!(choice.target, TARGET);
    assert!(choice.to_string().contains("the code for gfx942, variant 2\n  not variant 1 for gfx942: "), "{choice}");
    let (x, mut y) = (dev.zeros([2, 96]).unwrap(), dev.zeros([2, 96]).unwrap());
    let choice = normalized::<f32>(&x, &mut y).choice().unwrap().unwrap();
    assert_eq!(choice.to_string(), "the code for gfx942");
}

#[titan::kernel(targets(cpu, sm_80))]
fn elsewhere(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let n = program_id(0);
    y.store_tile([n], x.load_tile::<64>([n]));
}

/// More shared memory than gfx942 has, and less than NVIDIA's GPUs.
#[titan::kernel(allow(no_code))]
fn large(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    let (m, n) = (program_id(0), program_id(1));
    let ring = Ring::<Smem<f32, 128, 256>, 1>::new();
    ring.acquire().copy(x.tile([m, n])).commit();
    let stage = ring.ready().wait();
    y.store_tile([m, n], stage.get().load() * 2.0);
    stage.release();
}

#[test]
fn kernels_without_code_are_refused_with_the_reason() {
    let dev = device();
    let (x, mut y) = (dev.zeros([9]).unwrap(), dev.zeros([9]).unwrap());
    let error = elsewhere(&x, &mut y).sync().unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Unsupported { .. }), "{text}");
    assert!(text.contains("cannot run on emulator:gfx942: it has no code for this device: `targets(..)`"), "{text}");
    assert!(text.contains("lists only `sm_80`\n  help: list a target that this device runs"), "{text}");
    let (x, mut y) = (dev.zeros([3, 4]).unwrap(), dev.zeros([3, 4]).unwrap());
    let text = large(&x, &mut y).sync().unwrap_err().to_string();
    assert!(text.contains("cannot run on emulator:gfx942: [T0902] `large`: it needs "), "{text}");
    assert!(text.contains("bytes of shared memory"), "{text}");
    // It runs where it has code.
    let dev = Device::emulator("sm_80").unwrap();
    let (x, mut y) = (dev.full([3, 4], 1.5f32).unwrap(), dev.zeros([3, 4]).unwrap());
    large(&x, &mut y).sync().unwrap();
    assert_eq!(y.to_vec().unwrap(), [3.0; 12]);
}

/// The kernel with another code for gfx942.
fn with_code(name: &str, change: impl Fn(&mut Vec<u8>)) -> &'static KernelRef {
    let info = titan::kernels().unwrap().into_iter().find(|k| k.name == name).unwrap();
    let variant = |v: &titan::VariantInfo| {
        let mut payload = v.code.clone();
        if v.target == TARGET {
            change(&mut payload);
        }
        let config = vec![("entry".to_owned(), name.to_owned())];
        Variant { target: v.target.clone(), config, threads: v.threads, payload, ..Variant::default() }
    };
    // The last one, which takes all arguments.
    let last = info.variants.iter().rfind(|v| v.target == TARGET).map(variant);
    let variants = info.variants.iter().filter(|v| v.target == "cpu").map(variant).chain(last).collect();
    let artifact = Artifact { kernel: name.to_owned(), variants, refused: Vec::new() };
    let bytes: &'static [u8] = artifact.encode().leak();
    Box::leak(Box::new(KernelRef::new(Box::leak(name.to_owned().into_boxed_str()), bytes, "tests/amd.rs", [1, 1])))
}

/// What is left of a code object when it is cut, or when bytes of its headers are changed, is told and never run.
#[test]
fn damaged_code_is_refused_with_its_code() {
    let dev = device();
    let (x, mut y) = (dev.zeros::<f32, 1>([9]).unwrap(), dev.full([9], 1.0f32).unwrap());
    let mut launch = |kernel| Launch::new(kernel, vec![(&x).into(), (&mut y).into(), 2.0f32.into()]).sync();
    launch(with_code("scaled", |_| {})).unwrap();
    for cut in [0, 1, 4, 63, 64, 200, 600] {
        let error = launch(with_code("scaled", |code| code.truncate(cut))).unwrap_err();
        assert!(matches!(error, Error::CodeObject { .. }), "{cut}: {error}");
        assert!(
            error.to_string().starts_with("[T1108] kernel `scaled` cannot be loaded on emulator:gfx942"),
            "{error}"
        );
    }
    for at in [0, 4, 5, 18, 48] {
        let error = launch(with_code("scaled", |code| code[at] ^= 0x55)).unwrap_err();
        assert!(matches!(error, Error::CodeObject { .. }), "byte {at}: {error}");
    }
}

#[titan::kernel]
fn scaled(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>, a: f32) {
    let n = program_id(0);
    y.store_tile([n], x.load_tile::<64>([n]) * a);
}

#[test]
fn emulators_that_do_not_exist_are_told() {
    for target in ["gfx90a", "gfx950", "gfx9420", ""] {
        let text = Device::emulator(target).unwrap_err().to_string();
        assert!(text.contains(&format!("is `{target}`")) && text.contains("sm_120a, gfx942"), "{text}");
    }
    let named = Device::named("emulator:gfx942").unwrap();
    assert_eq!(named.to_string(), "emulator:gfx942");
    assert_eq!(named, Device::named("emulator:gfx942").unwrap());
}
