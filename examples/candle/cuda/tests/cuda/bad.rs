//! Bad input is an error on the device as on the CPU, and so is what belongs to different devices.

use crate::common::{bad, numbers};
use crate::process::run;
use candle_core::{DType, Device, Tensor};
use candle_operators::{add_assign, rms_norm, swiglu};

#[test]
fn bad_input_is_an_error() {
    run("bad::bad_input_is_an_error", &[], || {
        let on = Device::new_cuda(0).unwrap();
        bad::extents_that_do_not_fit_are_errors(&on);
        bad::element_types_that_do_not_fit_are_errors(&on);
        bad::codes_with_strides_are_an_error(&on);
        bad::tensors_in_place_share_nothing(&on);
        // The device goes on after errors.
        let x = numbers(1, &[2, 64], DType::F32).to_device(&on).unwrap();
        assert_eq!(swiglu(&x).unwrap().to_device(&Device::Cpu).unwrap().dims(), [2, 32]);
    });
}

#[test]
fn tensors_of_different_devices_are_an_error() {
    let settings = [("CUDA_EMULATOR_DEVICES", "sm_80,sm_80")];
    run("bad::tensors_of_different_devices_are_an_error", &settings, || {
        // With streams of their own: cudarc 0.19.10 frees memory of the stream of each thread in whatever context the thread has entered last, and so in
        // the stream of the other device, which the driver reports.
        let [first, second] = [0, 1].map(|n| Device::new_cuda_with_stream(n).unwrap());
        let (x, w) = (numbers(1, &[3, 96], DType::F32), numbers(2, &[96], DType::F32));
        let on = |t: &Tensor, device: &Device| t.to_device(device).unwrap();
        for (x, w) in [
            (on(&x, &first), w.clone()),
            (x.clone(), on(&w, &first)),
            (on(&x, &first), on(&w, &second)),
            (on(&x, &second), on(&w, &first)),
        ] {
            bad::refused(rms_norm(&x, &w, 1e-5), &["device mismatch"]);
            let text = add_assign(&x, &w.expand((3, 96)).unwrap()).unwrap_err().to_string();
            assert!(text.contains("device mismatch"), "{text}");
        }
        // Each device has its own stream and memory.
        let results = [&first, &second].map(|device| rms_norm(&on(&x, device), &on(&w, device), 1e-5).unwrap());
        let [a, b] = results.map(|y| on(&y, &Device::Cpu).to_vec2::<f32>().unwrap());
        assert_eq!(a, b);
    });
}

#[test]
fn too_little_memory_is_an_error() {
    let settings = [("CUDA_EMULATOR_DEVICES", "sm_80:memory=2")];
    run("bad::too_little_memory_is_an_error", &settings, || {
        let on = Device::new_cuda(0).unwrap();
        let x = numbers(1, &[96, 4096], DType::F32).to_device(&on).unwrap();
        bad::refused(
            rms_norm(&x, &x.narrow(0, 0, 1).unwrap().squeeze(0).unwrap(), 1e-5),
            &["CUDA_ERROR_OUT_OF_MEMORY"],
        );
    });
}
