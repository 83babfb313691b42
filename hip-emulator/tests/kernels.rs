//! TITAN's own kernels through `Device::hip` to their end, over a HIP runtime that needs no GPU.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    unsafe_code,
    reason = "a test that cannot go on stops; launches of others' kernels are unsafe"
)]
#![expect(clippy::disallowed_methods, reason = "tests are set by the environment")]

mod process;

use process::{code_object, in_every_order, is_child, with};
use titan::hip::{Arg, Geometry, Module};
use titan::prelude::*;
use titan::{DeviceKind, Error, Stream};
use titan_amd::runtime::SYMBOLS;

/// `y[i] = a · x[i]`
#[titan::kernel]
fn scaled(#[shape(N)] x: &Tensor<f32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>, a: f32) {
    let n = program_id(0);
    y.store_tile([n], x.load_tile::<64>([n]) * a);
}

/// The sum of each row, by all threads of a program together.
#[titan::kernel(grid(M))]
fn sums(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M)] y: &mut Tensor<f32, 1>) {
    let m = program_id(0);
    let mut sum = Tile::<f32, 1, 256>::zeros();
    for k in 0..cdiv(x.dim(1), 256) {
        sum = sum + x.load_tile::<1, 256>([m, k]);
    }
    y.store_tile([m], sum.reduce_sum::<1>());
}

/// The coordinates of each program, and an extent of the grid, which is a hidden argument of the code.
#[titan::kernel(grid(A, B, 2))]
fn numbered(#[shape(2, B, A)] y: &mut Tensor<i32, 3>) {
    let (i, j, k) = (program_id(2), program_id(1), program_id(0));
    y.store_tile([i, j, k], Tile::<i32, 1, 1, 1>::full(100 * i + 10 * j + k + 1000 * num_programs(1)));
}

/// Stops where an index is outside.
#[titan::kernel(grid(N))]
fn chosen(#[shape(M)] x: &Tensor<f32, 1>, #[shape(N)] at: &Tensor<i32, 1>, #[shape(N)] y: &mut Tensor<f32, 1>) {
    let n = program_id(0);
    let from = at.get([n]);
    tassert!(from >= 0, "there is no such element");
    y.set([n], x.get([from]));
}

/// A grid that the device determines: each program loops over its share of the tiles.
#[titan::kernel]
fn halved(#[shape(M, N)] x: &Tensor<f32, 2>, #[shape(M, N)] y: &mut Tensor<f32, 2>) {
    for out in y.tiles::<4, 32>() {
        let v = x.load_tile::<4, 32>(out.index());
        out.store(v * 0.5);
    }
}

fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32 / 4.0).collect()
}

/// A chain of launches over some streams: scaled by 2, eight times, and back.
fn chain(dev: &Device, streams: &[Stream]) -> titan::Result<Vec<f32>> {
    let mut x = dev.tensor(ramp(1000), [1000])?;
    for round in 0..16 {
        let mut y = dev.zeros([1000])?;
        scaled(&x, &mut y, if round < 8 { 2.0 } else { 0.5 }).launch(&streams[round % streams.len()])?;
        // The old one is dropped while the device may read it.
        x = y;
    }
    x.to_vec()
}

#[test]
fn kernels_run_in_every_order() {
    in_every_order("kernels_run_in_every_order", || {
        let dev = Device::hip(0).unwrap();
        let streams: Vec<Stream> = (0..3).map(|_| dev.stream().unwrap()).collect();
        assert_eq!(chain(&dev, &streams).unwrap(), ramp(1000));
        let x = dev.from_fn([3, 700], |[i, j]| (i * 700 + j) as f32 % 8.0).unwrap();
        let mut y = dev.zeros([3]).unwrap();
        sums(&x, &mut y).sync().unwrap();
        let rows = x.to_vec().unwrap();
        let wanted: Vec<f32> = rows.chunks(700).map(|row| row.iter().sum()).collect();
        assert_eq!(y.to_vec().unwrap(), wanted);
        let mut z = dev.zeros([2, 3, 4]).unwrap();
        numbered(&mut z).sync().unwrap();
        let wanted = dev.from_fn([2, 3, 4], |[i, j, k]| (100 * i + 10 * j + k) as i32 + 3000).unwrap();
        assert_eq!(z.to_vec().unwrap(), wanted.to_vec().unwrap());
        streams.iter().for_each(|s| s.sync().unwrap());
    });
}

/// As many programs as fit on the device run, of which most have no tile here.
#[test]
fn a_grid_that_the_device_determines_covers_all_tiles() {
    with("a_grid_that_the_device_determines_covers_all_tiles", &[], || {
        let dev = Device::hip(0).unwrap();
        let x = dev.from_fn([9, 70], |[i, j]| (i * 70 + j) as f32).unwrap();
        let mut y = dev.zeros([9, 70]).unwrap();
        halved(&x, &mut y).sync().unwrap();
        assert_eq!(y.to_vec().unwrap(), (0..630).map(|i| i as f32 / 2.0).collect::<Vec<f32>>());
    });
}

#[test]
fn awaited_launches_end() {
    in_every_order("awaited_launches_end", || {
        let dev = Device::hip(0).unwrap();
        let (x, mut y) = (dev.tensor(ramp(300), [300]).unwrap(), dev.zeros([300]).unwrap());
        {
            let mut launch = std::pin::pin!(scaled(&x, &mut y, 4.0).into_future());
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            let mut rounds = 0;
            while launch.as_mut().poll(&mut context).is_pending() {
                rounds += 1;
                assert!(rounds < 10_000, "the launch does not end");
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
        assert_eq!(y.to_vec().unwrap(), (0..300).map(|i| i as f32).collect::<Vec<_>>());
    });
}

/// A failed assertion and an index outside of its tensor are told with the program and the line, and the device goes on.
#[test]
fn traps_name_the_program_and_the_line() {
    in_every_order("traps_name_the_program_and_the_line", || {
        let dev = Device::hip(0).unwrap();
        let x = dev.tensor(ramp(4), [4]).unwrap();
        for (at, what) in [([0, 3, -7, 1], "there is no such element"), ([0, 3, 4, 1], "outside")] {
            let (at, mut y) = (dev.tensor(at, [4]).unwrap(), dev.zeros([4]).unwrap());
            let error = chosen(&x, &at, &mut y).sync().unwrap_err();
            let Error::Trap { message, location, program, .. } = &error else { panic!("{error}") };
            assert!(message.contains(what), "{message}");
            assert_eq!((*program, location.file.ends_with("kernels.rs")), ([2, 0, 0], true), "{error}");
            // Later launches of the same kernel use the same memory for what they report.
            let (at, mut y) = (dev.tensor([3, 2, 1, 0], [4]).unwrap(), dev.zeros([4]).unwrap());
            chosen(&x, &at, &mut y).sync().unwrap();
            assert_eq!(y.to_vec().unwrap(), [0.75, 0.5, 0.25, 0.0]);
        }
    });
}

#[test]
fn the_best_device_is_a_gpu_for_which_there_is_code() {
    let devices = ("HIP_EMULATOR_DEVICES", "gfx90a:sramecc+:xnack-,gfx942:sramecc+:xnack-");
    with("the_best_device_is_a_gpu_for_which_there_is_code", &[devices], || {
        let best = Device::best().unwrap();
        assert_eq!((best.kind(), best.ordinal()), (DeviceKind::Hip, 1));
        let available = Device::available();
        assert_eq!(available.first(), Some(&best));
        assert_eq!(available.last(), Some(&Device::hip(0).unwrap()));
        let (x, mut y) = (best.full([9], 1.5f32).unwrap(), best.zeros([9]).unwrap());
        scaled(&x, &mut y, 2.0).sync().unwrap();
        assert_eq!(y.to_vec().unwrap(), [3.0; 9]);
        let choice = scaled(&x, &mut y, 2.0).choice().unwrap().unwrap();
        assert_eq!(choice.target, "gfx942");
    });
}

#[test]
fn another_gpu_is_refused_with_its_code() {
    let devices = ("HIP_EMULATOR_DEVICES", "gfx90a:sramecc+:xnack-");
    with("another_gpu_is_refused_with_its_code", &[devices], || {
        let dev = Device::hip(0).unwrap();
        let (x, mut y) = (dev.full([9], 1.5f32).unwrap(), dev.zeros([9]).unwrap());
        let error = scaled(&x, &mut y, 2.0).sync().unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::ForeignGpu { .. }), "{text}");
        assert!(text.starts_with("[T1107] kernel `scaled` cannot run on hip:0"), "{text}");
        assert!(text.contains("which is gfx90a: its code is for gfx942\n  help: "), "{text}");
        // Tensors are usable.
        assert_eq!(x.to_vec().unwrap(), [1.5; 9]);
        let error = Module::load(&dev, &code_object()).unwrap_err();
        assert!(error.to_string().starts_with("[T1107] the code object cannot run on hip:0"), "{error}");
    });
}

#[test]
fn misuse_is_told_with_its_code() {
    with("misuse_is_told_with_its_code", &[], || {
        let dev = Device::hip(0).unwrap();
        let bytes = code_object();
        for cut in [0, 1, 63, bytes.len() / 2, bytes.len() - 1] {
            let error = Module::load(&dev, &bytes[..cut]).unwrap_err();
            assert!(matches!(error, Error::CodeObject { .. }), "{error}");
            assert!(error.to_string().starts_with("[T1108] the code object cannot be loaded on hip:0"), "{error}");
        }
        let module = Module::load(&dev, &bytes).unwrap();
        let error = module.kernel("sub").unwrap_err();
        assert!(error.to_string().starts_with("[T1108] kernel `sub` cannot be loaded on hip:0"), "{error}");
        let kernel = module.kernel("vector_add").unwrap();
        let geometry = Geometry { grid: [1, 1, 1], block: [256, 1, 1], dynamic_lds: 70_000 };
        let (x, mut z) = (dev.full([256], 1.0f32).unwrap(), dev.zeros::<f32, 1>([256]).unwrap());
        let args = [Arg::input(&x), Arg::input(&x), Arg::output(&mut z), Arg::bytes(256_u32.to_le_bytes())];
        // SAFETY: nothing is launched.
        let error = unsafe { kernel.launch(&dev.default_stream(), geometry, &args) }.unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("[T1109] kernel `vector_add` needs 70000 bytes of shared memory"), "{text}");
        assert!(text.contains("has 65536"), "{text}");
    });
}

/// Grids that the device does not have are refused before anything is launched.
#[test]
fn a_grid_beyond_the_device_is_refused() {
    with("a_grid_beyond_the_device_is_refused", &[], || {
        let dev = Device::hip(0).unwrap();
        let mut y = dev.zeros([2, 70_000, 1]).unwrap();
        let error = numbered(&mut y).sync().unwrap_err();
        let text = error.to_string();
        assert!(text.contains("its grid has 70000 programs along axis 1, but the device allows 65535"), "{text}");
    });
}

/// A code object is loaded once on each device: a second load would fail here.
#[test]
fn code_is_loaded_once_on_each_device() {
    let settings = [
        ("HIP_EMULATOR_DEVICES", "gfx942:sramecc+:xnack-,gfx942:sramecc+:xnack-"),
        ("HIP_EMULATOR_FAULT", "hipModuleLoadData:3+:304"),
    ];
    with("code_is_loaded_once_on_each_device", &settings, || {
        for ordinal in [0, 1, 0, 1] {
            let dev = Device::hip(ordinal).unwrap();
            let (x, mut y) = (dev.full([64], 1.5f32).unwrap(), dev.zeros([64]).unwrap());
            for _ in 0..3 {
                scaled(&x, &mut y, 2.0).sync().unwrap();
            }
            assert_eq!(y.to_vec().unwrap(), [3.0; 64]);
        }
        let dev = Device::hip(0).unwrap();
        let (x, mut y) = (dev.zeros([1, 5]).unwrap(), dev.zeros([1]).unwrap());
        assert!(sums(&x, &mut y).sync().is_err(), "another kernel is another code object");
    });
}

/// What is made of the kernels when everything works: results, and the error of a trap.
fn whole() -> titan::Result<Vec<f32>> {
    let dev = Device::hip(0)?;
    let streams = [dev.stream()?, dev.stream()?];
    let out = chain(&dev, &streams)?;
    streams.iter().try_for_each(Stream::sync)?;
    let (x, at, mut y) = (dev.tensor(ramp(4), [4])?, dev.tensor([0, 9, 1, 2], [4])?, dev.zeros([4])?);
    match chosen(&x, &at, &mut y).sync() {
        Err(Error::Trap { .. }) => Ok(out),
        Err(error) => Err(error),
        Ok(()) => panic!("an index outside of its tensor is told"),
    }
}

#[test]
fn each_call_that_fails_once_is_an_error_in_words_or_made_up_for() {
    for function in SYMBOLS {
        for call in [1, 2, 5] {
            let fault = format!("{function}:{call}:304");
            let settings = [("HIP_EMULATOR_FAULT", fault.as_str())];
            with("each_call_that_fails_once_is_an_error_in_words_or_made_up_for", &settings, || {
                let outcomes = [whole(), whole(), whole()];
                let failed: Vec<String> = outcomes.iter().filter_map(|o| Some(o.as_ref().err()?.to_string())).collect();
                let in_words = |text: &String| text.contains("hipErrorOperatingSystem from hip");
                assert!(failed.len() <= 1 && failed.iter().all(in_words), "{failed:?}");
                assert!(outcomes.iter().flatten().all(|out| *out == ramp(1000)));
                // Afterwards everything works as before.
                assert_eq!(whole().unwrap(), ramp(1000));
            });
            if is_child() {
                return;
            }
        }
    }
}
