//! Devices, memory, modules and launches that are right.

use crate::harness::{Cuda, KERNELS, OK, call, text};
use std::ffi::c_char;

#[test]
fn vectors_are_added() {
    for order in ["late", "early", "random:1", "random:2"] {
        let cuda = Cuda::new(&[("ORDER", order)]);
        let a: Vec<f32> = (0..256_u16).map(f32::from).collect();
        let b: Vec<f32> = a.iter().map(|x| 1.0 - x).collect();
        let (a, b, c) = (cuda.upload(&a), cuda.upload(&b), cuda.alloc(1024));
        let add = cuda.kernel(KERNELS, "add");
        assert_eq!(cuda.launch(add, (4, 64), 0, &[a, b, c]), OK);
        assert_eq!(cuda.download(c, 256), Ok(vec![1.0; 256]), "{order}");
        assert_eq!([a, b, c].map(|x| call!(cuda, cuMemFree_v2(x => u64))), [OK; 3]);
    }
}

#[test]
fn devices_are_those_of_the_setting() {
    let cuda = Cuda::new(&[("DEVICES", "sm_80,sm_90:sms=5:memory=1")]);
    let mut count = 0;
    assert_eq!(call!(cuda, cuDeviceGetCount(&raw mut count => *mut i32)), OK);
    assert_eq!(count, 2);
    let attribute = |number: u32, device: i32| {
        let mut value = -1;
        let done = call!(cuda, cuDeviceGetAttribute(&raw mut value => *mut i32, number => u32, device => i32));
        (done, value)
    };
    // Compute capability, SMs, shared memory by default and on request, pools.
    assert_eq!([75, 76, 16, 8, 97, 115].map(|n| attribute(n, 0)), [8, 0, 3, 49152, 163 * 1024, 1].map(|v| (OK, v)));
    assert_eq!([75, 76, 16, 97].map(|n| attribute(n, 1)), [9, 0, 5, 227 * 1024].map(|v| (OK, v)));
    assert_eq!((attribute(0, 0).0, attribute(1, 2).0), (1, 101));
    let mut name = [0_i8; 8];
    assert_eq!(call!(cuda, cuDeviceGetName(name.as_mut_ptr() => *mut i8, 8 => i32, 0 => i32)), OK);
    assert_eq!(text(name.as_ptr()), "emulate");
}

#[test]
fn errors_have_names_and_sentences() {
    let cuda = Cuda::loaded(&[]);
    let mut said = std::ptr::null::<c_char>();
    let done = call!(cuda, cuGetErrorName(2 => u32, &raw mut said => *mut *const c_char));
    assert_eq!((done, text(said)), (OK, "CUDA_ERROR_OUT_OF_MEMORY".to_owned()));
    let done = call!(cuda, cuGetErrorString(0 => u32, &raw mut said => *mut *const c_char));
    assert_eq!((done, text(said)), (OK, "no error".to_owned()));
    let done = call!(cuda, cuGetErrorName(12345 => u32, &raw mut said => *mut *const c_char));
    assert_eq!((done, text(said)), (1, String::new()));
}
