//! The order of launches and of candle's own work, what an operator asks of the driver, and kernels that fail.

use crate::common::{DTYPES, difference, numbers, scattered, theirs, tolerance};
use crate::process::{in_every_order, outcome, run};
use candle_core::{DType, Device, Tensor};
use candle_operators::{add_assign, attention, rms_norm, rope, swiglu, w4a16};

fn device_numbers(seed: u32, shape: &[usize], dtype: DType, on: &Device) -> Tensor {
    numbers(seed, shape, dtype).to_device(on).unwrap()
}

/// One operator after the other and copies of candle's between them, without a wait; operands are dropped as soon as the launch is made, and their
/// memory is used again.
fn chain(on: &Device) {
    for dtype in DTYPES {
        let (x, w) = (numbers(1, &[4, 96], dtype), numbers(2, &[96], dtype));
        let mut found = scattered(&x).unwrap().to_device(on).unwrap();
        let mut expected = x;
        for _ in 0..4 {
            found = rms_norm(&found, &w.to_device(on).unwrap(), 1e-5).unwrap();
            expected = theirs::rms_norm(&expected, &w, 1e-5).unwrap();
            let before = found.copy().unwrap();
            add_assign(&found, &before).unwrap();
            expected = (&expected + &expected).unwrap();
        }
        titan_candle::sync(on).unwrap();
        let error = difference(&found.to_device(&Device::Cpu).unwrap(), &expected);
        assert!(error <= 4.0 * tolerance(dtype), "{dtype:?}: {error:e}");
    }
}

/// Two of candle's devices are one GPU with two streams; candle takes their tensors together, and launches wait for the stream of each operand.
fn two_streams(on: &Device) {
    let other = Device::new_cuda_with_stream(0).unwrap();
    let (x, w) = (numbers(1, &[4, 96], DType::F32), numbers(2, &[96], DType::F32));
    let expected = theirs::rms_norm(&theirs::rms_norm(&x, &w, 1e-5).unwrap(), &w, 1e-5).unwrap();
    let there = rms_norm(&x.to_device(&other).unwrap(), &w.to_device(&other).unwrap(), 1e-5).unwrap();
    // The first operand's device has the stream.
    let found = rms_norm(&there, &w.to_device(on).unwrap(), 1e-5).unwrap();
    assert!(difference(&found.to_device(&Device::Cpu).unwrap(), &expected) <= 1e-5);
}

#[test]
fn launches_run_in_the_order_of_candles_work() {
    in_every_order("streams::launches_run_in_the_order_of_candles_work", chain);
}

#[test]
fn tensors_of_two_streams_are_ordered() {
    in_every_order("streams::tensors_of_two_streams_are_ordered", two_streams);
}

/// A driver in which no stream waits for another one.
fn without_waits(order: &str) -> [(&str, &str); 2] {
    [("CUDA_EMULATOR_FAULT", "cuStreamWaitEvent:1+:0"), ("CUDA_EMULATOR_ORDER", order)]
}

/// The launches are in the stream of candle's tensors: they are ordered even where no stream waits for another one, and tensors of two streams are not.
#[test]
fn launches_are_in_candles_stream() {
    for order in ["late", "early", "random:1"] {
        let settings = without_waits(order);
        if run("streams::launches_are_in_candles_stream", &settings, || chain(&Device::new_cuda(0).unwrap())).is_none()
        {
            return;
        }
    }
}

#[test]
fn two_streams_need_waits() {
    let settings = without_waits("late");
    let body = || two_streams(&Device::new_cuda(0).unwrap());
    let Some((passed, text)) = outcome("streams::two_streams_need_waits", &settings, body) else { return };
    // It is memory that was not written yet, or accesses that nothing orders.
    assert!(!passed && text.contains("the context answers CUDA_ERROR_LAUNCH_FAILED"), "{text}");
}

/// Marks in the log of the driver's calls.
fn marked<T>(what: &str, f: impl Fn() -> T) {
    // The first time, the module is loaded.
    f();
    eprintln!("mark: begin {what}");
    let result = f();
    eprintln!("mark: end {what}");
    drop(result);
}

/// The names of the driver's functions that were called between two marks.
fn calls<'a>(log: &'a str, what: &str) -> Vec<&'a str> {
    let (_, after) = log.split_once(&format!("mark: begin {what}\n")).unwrap();
    let (between, _) = after.split_once(&format!("mark: end {what}\n")).unwrap();
    between.lines().filter_map(|line| line.strip_prefix("cuda-emulator: ")).collect()
}

/// An operator allocates its output, sets it to zero and launches its kernel: it copies nothing, makes no stream, and no thread waits.
#[test]
fn operators_copy_nothing_and_wait_for_nothing() {
    let log = run("streams::operators_copy_nothing_and_wait_for_nothing", &[("CUDA_EMULATOR_LOG", "1")], || {
        let on = &Device::new_cuda(0).unwrap();
        let dtype = DType::F16;
        let x = scattered(&numbers(1, &[2, 3, 128], dtype)).unwrap().to_device(on).unwrap();
        let w = device_numbers(2, &[128], dtype, on);
        let heads = scattered(&numbers(3, &[1, 2, 3, 64], dtype)).unwrap().to_device(on).unwrap();
        let table = device_numbers(5, &[3, 32], dtype, on);
        let codes = Tensor::zeros((16, 64), DType::U8, on).unwrap();
        let scales = device_numbers(6, &[16, 4], dtype, on);
        marked("rms_norm", || rms_norm(&x, &w, 1e-5).unwrap());
        marked("swiglu", || swiglu(&x).unwrap());
        marked("rope", || rope(&heads, &table, &table).unwrap());
        marked("attention", || attention(&heads, &heads, &heads, 0.1).unwrap());
        let rows = scattered(&numbers(8, &[3, 128], dtype)).unwrap().to_device(on).unwrap();
        marked("w4a16", || w4a16(&rows, &codes, &scales).unwrap());
        let y = device_numbers(7, &[2, 3, 128], dtype, on);
        marked("add_assign", || add_assign(&x, &y).unwrap());
        // A copy and a wait are seen.
        marked("a copy", || y.copy().unwrap());
        marked("a wait", || on.synchronize().unwrap());
    });
    let Some(log) = log else { return };
    let count = |calls: &[&str], part: &str| calls.iter().filter(|call| call.contains(part)).count();
    let suspect = ["Memcpy", "Synchronize", "StreamCreate"];
    for (what, allocations) in
        [("rms_norm", 1), ("swiglu", 1), ("rope", 1), ("attention", 1), ("w4a16", 1), ("add_assign", 0)]
    {
        let calls = calls(&log, what);
        assert!(suspect.iter().all(|part| count(&calls, part) == 0), "{what}: {calls:?}");
        let counts = ["cuMemAlloc", "cuMemset", "cuLaunchKernel"].map(|part| count(&calls, part));
        assert_eq!(counts, [allocations, allocations, 1], "{what}: {calls:?}");
    }
    assert_eq!(count(&calls(&log, "a copy"), "Memcpy"), 1);
    assert!(count(&calls(&log, "a wait"), "Synchronize") >= 1);
}

/// The stream of a device that has been dropped is destroyed when a launch is made on another one.
#[test]
fn streams_of_dropped_devices_are_destroyed() {
    let log = run("streams::streams_of_dropped_devices_are_destroyed", &[("CUDA_EMULATOR_LOG", "1")], || {
        let on = || Device::new_cuda_with_stream(0).unwrap();
        let first = on();
        let sum = |on: &Device| swiglu(&device_numbers(1, &[2, 64], DType::F32, on)).unwrap();
        let kept = sum(&first);
        marked("devices", || (0..5).for_each(|_| drop(sum(&on()))));
        // That of a device that is there is not.
        assert_eq!(sum(&first).to_device(&Device::Cpu).unwrap().dims(), kept.dims());
    });
    let Some(log) = log else { return };
    let calls = calls(&log, "devices");
    let count = |name: &str| calls.iter().filter(|call| **call == name).count();
    assert_eq!(["cuStreamCreate", "cuStreamDestroy_v2"].map(count), [5, 5], "{calls:?}");
}

mod failing {
    use titan::prelude::*;

    /// y = x, for elements that are not negative.
    #[titan::kernel]
    pub fn checked(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
        let p = [program_id(0)];
        let v = x.load_tile::<32>(p);
        tassert!(v >= 0.0, "an element is negative");
        y.store_tile(p, v);
    }
}

/// What fails on the device is reported by `sync`, once, and the device goes on.
#[test]
fn kernels_that_fail_are_reported() {
    in_every_order("streams::kernels_that_fail_are_reported", |on| {
        let operator = |values: &[f32]| {
            let x = Tensor::new(values, on).unwrap();
            titan_candle::apply("checked", [&x], (x.shape(), x.dtype()), |on, [x], mut y| {
                on.run(failing::checked(&x.view()?, &mut y.view_mut()?))
            })
        };
        for _ in 0..2 {
            let fine = operator(&[1.0, 2.0]).unwrap();
            titan_candle::sync(on).unwrap();
            // The launch is made; that it fails is known when it has ended.
            operator(&[1.0, -2.0]).unwrap();
            let text = titan_candle::sync(on).unwrap_err().to_string();
            assert!(text.contains("an element is negative") && text.contains("streams.rs"), "{text}");
            titan_candle::sync(on).unwrap();
            assert_eq!(fine.to_device(&Device::Cpu).unwrap().to_vec1::<f32>().unwrap(), [1.0, 2.0]);
        }
    });
}
