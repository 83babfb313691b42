//! candle's tensors on a CUDA device, which is emulated: every operator, in each element type, with strides and offsets, in candle's stream.
//!
//! The results are compared with those of the same operators on the CPU, which `examples/candle` compares with candle's own.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use candle_core::{DType, Device, Tensor};
use candle_operators::{add_assign, attention, rms_norm, rope, swiglu, w4a16};
use std::process::Command;

const CHILD: &str = "TITAN_CANDLE_CUDA_TEST";

/// Runs `body` in processes that have the emulated driver, in which streams run as late, as early and as randomly as they may.
fn emulated(test: &str, body: impl Fn(&Device)) {
    if std::env::var_os(CHILD).is_some() {
        return body(&Device::new_cuda(0).unwrap());
    }
    let program = std::env::current_exe().unwrap();
    let folder = std::env::temp_dir().join(format!("titan-candle-{}-{test}", std::process::id()));
    cuda_emulator::place::place(&program.with_file_name("libcuda_emulator.so"), &folder, &[]).unwrap();
    let toolkit = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
    for order in ["late", "early", "random:1"] {
        let mut child = Command::new(&program);
        child.args(["--exact", test, "--nocapture"]).env(CHILD, "1").env("CUDA_EMULATOR_ORDER", order);
        child.env("LD_LIBRARY_PATH", format!("{}:{toolkit}", folder.display()));
        // Before the libraries that stand for the rest of the toolkit.
        child.env("LD_PRELOAD", folder.join("libcuda.so.1"));
        let done = child.output().unwrap();
        let text = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && text.contains("1 passed"), "{order}: {text}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Numbers from -1 to 1, on the CPU.
fn numbers(seed: u32, shape: &[usize], dtype: DType) -> Tensor {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..shape.iter().product()).map(|_| next()).collect();
    Tensor::from_vec(values, shape, &Device::Cpu).unwrap().to_dtype(dtype).unwrap()
}

/// Compares a tensor of the device with one of the CPU.
fn close(what: &str, found: &Tensor, expected: &Tensor) {
    assert!(matches!(found.device(), Device::Cuda(_)) && found.is_contiguous());
    let list = |t: &Tensor| {
        t.to_device(&Device::Cpu)
            .unwrap()
            .to_dtype(DType::F32)
            .unwrap()
            .flatten_all()
            .unwrap()
            .to_vec1::<f32>()
            .unwrap()
    };
    assert_eq!((found.shape(), found.dtype()), (expected.shape(), expected.dtype()));
    let limit = match found.dtype() {
        DType::F32 => 2e-3, // matrix products of f32 round to tf32 on the device
        DType::F16 => 3e-3,
        _ => 2e-2,
    };
    for (a, b) in list(found).into_iter().zip(list(expected)) {
        assert!((a - b).abs() <= limit * b.abs().max(1.0), "{what} in {:?}: {a} and {b}", found.dtype());
    }
}

const DTYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

#[test]
fn norms_and_activations_run_on_candles_tensors() {
    emulated("norms_and_activations_run_on_candles_tensors", |device| {
        for dtype in DTYPES {
            // A view with strides and an offset, on both devices.
            let view = |x: &Tensor| x.transpose(0, 1).unwrap().narrow(0, 1, 3).unwrap();
            let (x, w) = (numbers(1, &[2, 5, 96], dtype), numbers(2, &[96], dtype));
            let (dx, dw) = (x.to_device(device).unwrap(), w.to_device(device).unwrap());
            let expected = rms_norm(&view(&x), &w, 1e-5).unwrap();
            close("rms_norm", &rms_norm(&view(&dx), &dw, 1e-5).unwrap(), &expected);
            close("swiglu", &swiglu(&view(&dx)).unwrap(), &swiglu(&view(&x)).unwrap());
            // One operator after the other, in the order of the stream, without a wait.
            let twice = rms_norm(&rms_norm(&view(&dx), &dw, 1e-5).unwrap(), &dw, 1e-5).unwrap();
            close("twice", &twice, &rms_norm(&expected, &w, 1e-5).unwrap());
            add_assign(&dx.narrow(1, 0, 2).unwrap(), &dx.copy().unwrap().narrow(1, 2, 2).unwrap()).unwrap();
            add_assign(&x.narrow(1, 0, 2).unwrap(), &x.copy().unwrap().narrow(1, 2, 2).unwrap()).unwrap();
            close("add_assign", &dx, &x);
        }
        titan_candle::sync(device).unwrap();
    });
}

#[test]
fn attention_runs_on_candles_tensors() {
    emulated("attention_runs_on_candles_tensors", |device| {
        for dtype in DTYPES {
            let x = numbers(3, &[1, 9, 4, 64], dtype);
            let (cos, sin) = (numbers(4, &[9, 32], dtype), numbers(5, &[9, 32], dtype));
            let keys = numbers(6, &[1, 9, 2, 128], dtype);
            let run = |device: &Device| {
                let [x, cos, sin, keys] = [&x, &cos, &sin, &keys].map(|t| t.to_device(device).unwrap());
                let q = rope(&x.transpose(1, 2).unwrap(), &cos, &sin).unwrap();
                let part = |at| keys.narrow(3, at, 64).unwrap().transpose(1, 2).unwrap();
                attention(&q, &part(0), &part(64), 0.125).unwrap()
            };
            close("attention", &run(device), &run(&Device::Cpu));
        }
    });
}

#[test]
fn products_with_weights_of_4_bits_run_on_candles_tensors() {
    emulated("products_with_weights_of_4_bits_run_on_candles_tensors", |device| {
        let codes: Vec<u8> = (0..40 * 32).map(|i| (i * 37 + i / 5 + 11) as u8).collect();
        let codes = Tensor::from_vec(codes, (40, 32), &Device::Cpu).unwrap();
        for (dtype, rows) in DTYPES.into_iter().flat_map(|dtype| [(dtype, 1), (dtype, 6)]) {
            let (x, scales) = (numbers(7, &[rows, 64], dtype), numbers(8, &[40, 2], dtype));
            let run = |device: &Device| {
                let [x, codes, scales] = [&x, &codes, &scales].map(|t| t.to_device(device).unwrap());
                w4a16(&x, &codes, &scales).unwrap()
            };
            let (found, expected) = (run(device), run(&Device::Cpu));
            // Sums of 64 products of up to 8.
            close("w4a16", &found, &expected);
        }
    });
}

/// A mistake is an error on the device as well, and what another device has does not go together.
#[test]
fn bad_input_is_an_error() {
    emulated("bad_input_is_an_error", |device| {
        let (x, w) = (numbers(1, &[3, 100], DType::F32), numbers(2, &[99], DType::F32));
        let (dx, dw) = (x.to_device(device).unwrap(), w.to_device(device).unwrap());
        let text = rms_norm(&dx, &dw, 1e-5).unwrap_err().to_string();
        assert!(text.contains("`w`") && text.contains("99"), "{text}");
        assert!(rms_norm(&dx, &w, 1e-5).unwrap_err().to_string().contains("device mismatch"));
    });
}
