//! Tensor maps through the runtime of titan-nv, in processes of their own: with drivers that have them and drivers that do not.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_methods, reason = "tests are pointed at devices by the environment")]

mod cuda_process;

use cuda_process::{driver, process, with};
use titan_nv::runtime::{Context, Driver, EncodeError};
use titan_nv::tma::{Element, TensorMap, TensorMapError};

fn context() -> &'static Context {
    Driver::get().unwrap().devices()[0].context().unwrap()
}

fn map() -> TensorMap {
    TensorMap::tiled(Element::F16, 0x7000_1000, &[1000, 70], &[2000], &[64, 16])
}

const HOPPER: (&str, &str) = ("CUDA_EMULATOR_DEVICES", "sm_90:sms=1:memory=16");

#[test]
fn a_map_is_encoded() {
    with("a_map_is_encoded", &[HOPPER], || {
        let context = context();
        assert!(context.has_tensor_maps());
        let encoded = context.encode(&map()).unwrap();
        assert_eq!(encoded.bytes(), &map().to_bytes());
        assert_eq!((&raw const encoded).addr() % 128, 0);
        let odd = TensorMap { strides: [2002, 0, 0, 0], ..map() };
        let refused = TensorMapError::Stride { dim: 1, stride: 2002 };
        assert_eq!(context.encode(&odd), Err(EncodeError::Map(refused)));
    });
}

#[test]
fn a_driver_that_refuses_a_map_is_told() {
    let settings = [HOPPER, ("CUDA_EMULATOR_FAULT", "cuTensorMapEncodeTiled:1:1")];
    with("a_driver_that_refuses_a_map_is_told", &settings, || {
        let text = context().encode(&map()).unwrap_err().to_string();
        assert!(text.contains("cuTensorMapEncodeTiled"), "{text}");
        assert!(text.contains("CUDA_ERROR_INVALID_VALUE"), "{text}");
        // The next one is taken.
        assert!(context().encode(&map()).is_ok());
    });
}

#[test]
fn a_driver_without_tensor_maps_is_a_driver() {
    let folder = driver(&["cuTensorMapEncodeTiled"]);
    process("a_driver_without_tensor_maps_is_a_driver", &folder, &[HOPPER], || {
        let context = context();
        assert!(!context.has_tensor_maps());
        assert_eq!(context.encode(&map()), Err(EncodeError::Missing));
        // What needs no maps runs.
        let x = cuda_process::device().zeros::<f32, 1>([16]).unwrap();
        assert_eq!(x.to_vec().unwrap(), [0.0; 16]);
    });
}

#[test]
fn a_device_before_hopper_has_no_maps() {
    with("a_device_before_hopper_has_no_maps", &[("CUDA_EMULATOR_DEVICES", "sm_80:sms=1:memory=16")], || {
        assert!(!context().has_tensor_maps());
        assert!(matches!(context().encode(&map()), Err(EncodeError::Driver(_))));
    });
}
