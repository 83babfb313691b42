//! `Device::hip` to its end, over a HIP runtime that needs no GPU: tensors, and launches of code objects.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    unsafe_code,
    reason = "a test that cannot go on stops; launches of others' kernels are unsafe"
)]
#![expect(clippy::disallowed_methods, reason = "tests are set by the environment")]

mod process;

use process::{code_object, in_every_order, process, with};
use titan::hip::{Arg, Geometry, Kernel, Module};
use titan::prelude::*;
use titan::{DeviceKind, Error, Stream, Tensor};

const ONE: Geometry = Geometry { grid: [1, 1, 1], block: [256, 1, 1], dynamic_lds: 0 };

/// `z = x + y`, of 256 numbers.
fn add(
    kernel: &Kernel,
    stream: &Stream,
    (x, y): (&Tensor<f32, 1>, &Tensor<f32, 1>),
    z: &mut Tensor<f32, 1>,
) -> titan::Result<()> {
    let n = Arg::bytes(256_u32.to_le_bytes());
    // SAFETY: the kernel reads 256 numbers of two tensors and writes as many of the third.
    unsafe { kernel.launch(stream, ONE, &[Arg::input(x), Arg::input(y), Arg::output(z), n]) }
}

#[test]
fn launches_are_ordered_by_their_tensors() {
    in_every_order("launches_are_ordered_by_their_tensors", || {
        let dev = Device::hip(0).unwrap();
        assert_eq!((dev.kind(), dev.to_string().as_str()), (DeviceKind::Hip, "hip:0 (emulated AMD GPU, gfx942)"));
        let module = Module::load(&dev, &code_object()).unwrap();
        assert_eq!(module.kernels().collect::<Vec<_>>(), ["vector_add", "stray"]);
        let kernel = module.kernel("vector_add").unwrap();
        let streams: Vec<Stream> = (0..3).map(|_| dev.stream().unwrap()).collect();
        let one = dev.full([256], 1.0f32).unwrap();
        let mut x: Tensor<f32, 1> = dev.zeros([256]).unwrap();
        for round in 0..12 {
            let mut y = dev.zeros([256]).unwrap();
            add(&kernel, &streams[round % 3], (&x, &one), &mut y).unwrap();
            // The old one is dropped while the device may read it.
            x = y;
        }
        assert_eq!(x.to_vec().unwrap(), [12.0; 256]);
        streams.iter().for_each(|s| s.sync().unwrap());
    });
}

#[test]
fn wrong_launches_are_refused_and_leave_the_tensors_usable() {
    in_every_order("wrong_launches_are_refused_and_leave_the_tensors_usable", || {
        let dev = Device::hip(0).unwrap();
        let kernel = Module::load(&dev, &code_object()).unwrap().kernel("vector_add").unwrap();
        let stream = dev.default_stream();
        let (x, mut z) = (dev.full([256], 1.0f32).unwrap(), dev.zeros([256]).unwrap());
        // SAFETY: nothing is launched.
        let error = unsafe { kernel.launch(&stream, ONE, &[Arg::input(&x), Arg::output(&mut z)]) }.unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("launching kernel `vector_add` failed on hip:0"), "{text}");
        assert!(text.contains("the kernel takes 4 arguments, not 2"), "{text}");
        add(&kernel, &stream, (&x, &x), &mut z).unwrap();
        assert_eq!(z.to_vec().unwrap(), [2.0; 256]);
        assert!(Module::load(&dev, b"no code").unwrap_err().to_string().contains("code object"));
    });
}

#[test]
fn a_stray_write_is_told_by_the_launch_that_did_it() {
    with("a_stray_write_is_told_by_the_launch_that_did_it", &[("HIP_EMULATOR_ORDER", "late")], || {
        let dev = Device::hip(0).unwrap();
        let kernel = Module::load(&dev, &code_object()).unwrap().kernel("stray").unwrap();
        let mut x: Tensor<f32, 1> = dev.zeros([256]).unwrap();
        let zero = || Arg::bytes([0; 8]);
        let args = &[Arg::output(&mut x), zero(), zero(), Arg::bytes([0; 4])];
        // SAFETY: the emulator stops what it does.
        unsafe { kernel.launch(&dev.default_stream(), ONE, args) }.unwrap();
        let error = dev.default_stream().sync().unwrap_err();
        assert!(matches!(error, Error::DeviceLost { .. }), "{error}");
        assert!(error.to_string().contains("kernel `stray`"), "{error}");
    });
}

#[test]
fn without_the_runtime_the_reason_is_told() {
    process("without_the_runtime_the_reason_is_told", None, &[], || {
        let text = Device::hip(0).unwrap_err().to_string();
        assert!(text.contains("AMD's HIP runtime `libamdhip64.so.7` cannot be opened"), "{text}");
        assert!(text.contains("help: install ROCm's HIP runtime"), "{text}");
    });
}
