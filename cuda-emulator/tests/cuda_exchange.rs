//! Slices of cudarc of run-time type and rank, 8-bit floats among them, launches on its streams, and tensors exchanged by DLPack, with a driver
//! that needs no GPU: in every order of streams, and what does not belong together.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(clippy::disallowed_methods, reason = "tests are pointed at devices by the environment")]
#![expect(unsafe_code, reason = "structures of C")]

mod cuda_process;
#[path = "../../tests/runtime_kernels/mod.rs"]
mod runtime_kernels;

use cuda_process::{device, in_every_order, with};
use runtime_kernels::{add, fill, scale};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use titan::cuda;
use titan::cuda::cudarc::driver::{CudaContext, CudaSlice, DevicePtr};
use titan::dlpack::{self, DLDataType, DLDevice, DLManagedTensorVersioned, DLPackVersion, DLTensor, Managed};
use titan::prelude::*;
use titan::{Device, DynTensor, ElemType, Place};

/// y = x · 2, in 8-bit floats.
#[titan::kernel(instances(W in [16]))]
fn double<const W: i32>(#[shape(M, N)] x: &Tensor<e4m3, 2>, #[shape(M, N)] y: &mut Tensor<e4m3, 2>) {
    let at = [program_id(0), program_id(1)];
    y.store_tile(at, (x.load_tile::<2, W>(at).cast::<f32>() * 2.0).cast());
}

/// Bytes of others are 8-bit floats, to read and to write, under any strides, without raw pointers.
#[test]
fn bytes_of_cudarc_are_8_bit_floats() {
    in_every_order("bytes_of_cudarc_are_8_bit_floats", || {
        let dev = device();
        let stream = CudaContext::new(0).unwrap().new_stream().unwrap();
        let values: Vec<f32> = (0..24u8).map(|i| f32::from(i) / 4.0).collect();
        let bytes: Vec<u8> = values.iter().map(|v| e4m3::from_f32(*v).to_bits()).collect();
        let source = stream.clone_htod(&bytes).unwrap();
        let mut target = stream.clone_htod(&[0x7Eu8; 30]).unwrap();
        {
            // Columns 1 to 5 of four rows of six, transposed.
            let place = Place { offset: 1, shape: &[4, 5], strides: Some(&[6, 1]) };
            let x = cuda::borrow_dyn(&dev, &source, place)
                .unwrap()
                .bits_as(ElemType::E4m3)
                .unwrap()
                .permute(&[1, 0])
                .unwrap();
            let place = Place { offset: 2, shape: &[5, 4], strides: Some(&[5, 1]) };
            let mut y = cuda::borrow_dyn_mut(&dev, &mut target, place).unwrap();
            let mut y = y.bits_as_mut(ElemType::E4m3).unwrap();
            titan::dispatch!(double::<16>(&x, &mut y)).launch(&cuda::stream_of(&dev, &stream).unwrap()).unwrap();
            std::mem::forget(x);
        }
        let mut expected = vec![0x7Eu8; 30];
        for i in 0..20 {
            let (row, column) = (i / 4, i % 4);
            expected[2 + 5 * row + column] = e4m3::from_f32(values[6 * column + row + 1] * 2.0).to_bits();
        }
        assert_eq!(stream.clone_dtoh(&target).unwrap(), expected);
    });
}

/// Launches on a stream of cudarc's run in the order of its other work, also where slices have no events.
#[test]
fn launches_run_on_streams_of_cudarc() {
    in_every_order("launches_run_on_streams_of_cudarc", || {
        let dev = device();
        let context = CudaContext::new(0).unwrap();
        // SAFETY: one stream uses each slice.
        unsafe { context.disable_event_tracking() };
        for theirs in [context.new_stream().unwrap(), context.default_stream(), context.per_thread_stream()] {
            let ours = cuda::stream_of(&dev, &theirs).unwrap();
            assert_eq!(ours.device(), &dev);
            let mut x = theirs.clone_htod(&[1.0f32, 2.0, 3.0]).unwrap();
            let mut y = theirs.alloc_zeros::<f32>(3).unwrap();
            for round in 0..3u8 {
                let place = Place { offset: 0, shape: &[3], strides: None };
                let from = cuda::borrow_dyn(&dev, &x, place).unwrap();
                let mut to = cuda::borrow_dyn_mut(&dev, &mut y, place).unwrap();
                add(&from.view::<f32, 1>().unwrap(), &mut to.view_mut::<f32, 1>().unwrap(), round.into())
                    .launch(&ours)
                    .unwrap();
                drop((from, to));
                theirs.memcpy_dtod(&y, &mut x).unwrap();
            }
            drop(x);
            assert_eq!(theirs.clone_dtoh(&y).unwrap(), [4.0, 5.0, 6.0]);
            ours.sync().unwrap();
        }
    });
}

#[test]
fn what_belongs_to_others_is_refused() {
    let settings = [("CUDA_EMULATOR_DEVICES", "sm_80,sm_80")];
    with("what_belongs_to_others_is_refused", &settings, || {
        let dev = device();
        let (context, other) = (CudaContext::new(0).unwrap(), CudaContext::new(1).unwrap());
        let (stream, elsewhere) = (context.new_stream().unwrap(), other.new_stream().unwrap());
        let place = Place { offset: 0, shape: &[2, 2], strides: None };
        let slice = elsewhere.clone_htod(&[1.0f32; 4]).unwrap();
        let refused = |error: titan::Error, says: &str| {
            let text = error.to_string();
            assert!(text.starts_with(says) && text.contains("\n  help: "), "{text}");
        };
        refused(
            cuda::borrow_dyn(&dev, &slice, place).unwrap_err(),
            "[T1120] borrow_dyn: the stream belongs to CUDA device 1",
        );
        refused(
            cuda::stream_of(&dev, &elsewhere).unwrap_err(),
            "[T1120] stream_of: the stream belongs to CUDA device 1",
        );
        refused(cuda::stream_of(&Device::cpu(), &stream).unwrap_err(), "[T1120] stream_of: cpu");
        let slice = stream.clone_htod(&[1.0f32; 4]).unwrap();
        refused(cuda::borrow_dyn(&Device::cpu(), &slice, place).unwrap_err(), "[T1120] borrow_dyn: cpu");
        let beyond = Place { offset: 1, ..place };
        refused(cuda::borrow_dyn(&dev, &slice, beyond).unwrap_err(), "[T1114] borrow_dyn: a tensor of shape [2, 2]");
        let few = Place { strides: Some(&[1]), ..place };
        refused(
            cuda::borrow_dyn(&dev, &slice, few).unwrap_err(),
            "[T1114] borrow_dyn: [1] are 1 strides for the 2 axes",
        );
        let x = cuda::borrow_dyn(&dev, &slice, place).unwrap();
        refused(
            x.bits_as(ElemType::F64).unwrap_err(),
            "bits_as: elements of type `f32` are not elements of type `f64`",
        );
        refused(
            x.bits_as(ElemType::Bool).unwrap_err(),
            "bits_as: elements of type `f32` are not elements of type `bool`",
        );
        refused(x.view::<f32, 3>().unwrap_err(), "[T1102]");
        // A launch on the stream of another device.
        let mut y = dev.zeros([4]).unwrap();
        let theirs = cuda::stream_of(&Device::cuda(1).unwrap(), &elsewhere).unwrap();
        let text = fill(&mut y, 1.0).launch(&theirs).unwrap_err().to_string();
        assert!(text.contains("is on cuda:0") && text.contains("is on cuda:1"), "{text}");
    });
}

/// A slice of cudarc's as a structure of DLPack, which counts when it is freed.
fn structure(slice: CudaSlice<f32>, device_id: i32, freed: &Arc<AtomicUsize>) -> *mut DLManagedTensorVersioned {
    struct Theirs {
        _slice: CudaSlice<f32>,
        shape: [i64; 2],
        freed: Arc<AtomicUsize>,
    }
    unsafe extern "C" fn deleter(structure: *mut DLManagedTensorVersioned) {
        // SAFETY: both are those of `structure`, freed once.
        let theirs = unsafe { Box::from_raw(Box::from_raw(structure).manager_ctx.cast::<Theirs>()) };
        theirs.freed.fetch_add(1, Ordering::Relaxed);
    }
    let address = {
        let (address, _read) = slice.device_ptr(slice.stream());
        address
    };
    let theirs = Box::into_raw(Box::new(Theirs { _slice: slice, shape: [2, 3], freed: Arc::clone(freed) }));
    let dl_tensor = DLTensor {
        data: std::ptr::without_provenance_mut(usize::try_from(address).unwrap()),
        device: DLDevice { device_type: 2, device_id },
        ndim: 2,
        dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
        // SAFETY: just allocated.
        shape: unsafe { (&raw mut (*theirs).shape).cast() },
        strides: std::ptr::null_mut(),
        byte_offset: 8,
    };
    let version = DLPackVersion { major: 1, minor: 0 };
    let all =
        DLManagedTensorVersioned { version, manager_ctx: theirs.cast(), deleter: Some(deleter), flags: 0, dl_tensor };
    Box::into_raw(Box::new(all))
}

/// Launches may still run when the last handle is dropped: the deleter is called after them.
#[test]
fn tensors_of_others_come_by_dlpack() {
    in_every_order("tensors_of_others_come_by_dlpack", || {
        let dev = device();
        let stream = CudaContext::new(0).unwrap().new_stream().unwrap();
        let numbers: Vec<f32> = (0..8u8).map(f32::from).collect();
        let freed = Arc::new(AtomicUsize::new(0));
        let made = || {
            let slice = stream.clone_htod(&numbers).unwrap();
            stream.synchronize().unwrap();
            // SAFETY: a structure of this test.
            unsafe { Managed::take(&mut structure(slice, 0, &freed)) }.unwrap()
        };
        let x = made().into_view().unwrap();
        assert_eq!((x.device(), x.shape()), (&dev, &[2, 3][..]));
        let mut y = dev.zeros([6]).unwrap();
        add(&x.reshape(&[6]).unwrap().view::<f32, 1>().unwrap(), &mut y, 0.5).launch(&dev.stream().unwrap()).unwrap();
        drop(x);
        assert_eq!(y.to_vec().unwrap(), [2.5, 3.5, 4.5, 5.5, 6.5, 7.5]);
        assert_eq!(freed.load(Ordering::Relaxed), 1);
        let mut x = made().into_tensor().unwrap().into_tensor::<f32, 2>().unwrap();
        scale(&mut x.reshape_mut([6]).unwrap(), 2.0).launch(&dev.default_stream()).unwrap();
        assert_eq!(x.to_vec().unwrap(), [4.0, 6.0, 8.0, 10.0, 12.0, 14.0]);
        drop(x);
        assert_eq!(freed.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn tensors_go_out_by_dlpack() {
    in_every_order("tensors_go_out_by_dlpack", || {
        let dev = device();
        let mut x = dev.zeros([1 << 10]).unwrap();
        fill(&mut x, 3.0).launch(&dev.stream().unwrap()).unwrap();
        let before = dev.memory_use().unwrap().tensors;
        let managed = dlpack::export(x).unwrap();
        assert_eq!(managed.tensor().device, DLDevice { device_type: 2, device_id: 0 });
        let address = managed.tensor().data;
        let again = managed.into_tensor().unwrap();
        let other = dlpack::export(again).unwrap();
        assert_eq!(other.tensor().data, address);
        let x = other.into_tensor().unwrap().into_tensor::<f32, 1>().unwrap();
        assert_eq!((x.to_vec().unwrap()[1 << 9], dev.memory_use().unwrap().tensors), (3.0, before));
        drop(x);
        assert_eq!(dev.memory_use().unwrap().tensors, before - 1);
        let shared = Arc::new(DynTensor::from(dev.full([5], 2.0f32).unwrap()));
        let theirs = dlpack::export_shared(&shared).unwrap().into_view().unwrap();
        assert_eq!(
            theirs.view::<f32, 1>().unwrap().to_vec().unwrap(),
            shared.view::<f32, 1>().unwrap().to_vec().unwrap()
        );
    });
}

#[test]
fn memory_that_is_not_the_devices_is_refused() {
    let settings = [("CUDA_EMULATOR_DEVICES", "sm_80,sm_80")];
    with("memory_that_is_not_the_devices_is_refused", &settings, || {
        let stream = CudaContext::new(0).unwrap().new_stream().unwrap();
        let freed = Arc::new(AtomicUsize::new(0));
        let taken = |slice, device_id| {
            // SAFETY: a structure of this test; what it says is checked before the memory is used.
            unsafe { Managed::take(&mut structure(slice, device_id, &freed)) }.unwrap()
        };
        let slice = || stream.clone_htod(&[0.0f32; 8]).unwrap();
        let text = taken(slice(), 1).into_view().unwrap_err().to_string();
        assert!(
            text.starts_with("[T1120] into_view: the pointer") && text.contains("belongs to CUDA device 0"),
            "{text}"
        );
        let text = taken(slice(), -1).into_view().unwrap_err().to_string();
        assert!(text.starts_with("[T1121] into_view: there is no CUDA device -1"), "{text}");
        let text = taken(slice(), 7).into_view().unwrap_err().to_string();
        assert!(text.contains("the available devices are"), "{text}");
        let text = taken(stream.clone_htod(&[0.0f32; 3]).unwrap(), 0).into_view().unwrap_err().to_string();
        assert!(text.starts_with("[T1120] into_view: the tensor needs 24 bytes"), "{text}");
        assert_eq!(freed.load(Ordering::Relaxed), 4);
        // Memory that was freed.
        let slice = slice();
        let (pointer, shape) = (slice.device_ptr(&stream).0, [8]);
        drop(slice);
        stream.synchronize().unwrap();
        let raw = cuda::RawTensor { pointer, shape, strides: None, stream: None };
        // SAFETY: the pointer is checked, and refused.
        let text = unsafe { cuda::tensor_from_raw::<f32, 1>(&device(), raw) }.unwrap_err().to_string();
        assert!(
            text.starts_with("[T1120] tensor_from_raw: the pointer") && text.contains("is not memory of a CUDA device"),
            "{text}"
        );
    });
}
