//! Memory shared with cudarc and by raw pointers, with a driver that needs no GPU: in every order of streams, guards dropped,
//! forgotten and lent on, and every bad pointer.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(clippy::disallowed_methods, reason = "tests are pointed at devices by the environment")]
#![expect(unsafe_code, reason = "pointers of others")]

mod cuda_process;
#[path = "../../tests/runtime_kernels/mod.rs"]
mod runtime_kernels;

use cuda_process::{device, in_every_order, with};
use runtime_kernels::{add, add_one, fill, scale};
use titan::cuda::cudarc::driver::{CudaContext, DevicePtr, result};
use titan::cuda::{self, RawTensor};
use titan::{Device, Error, Strided};

#[test]
fn slices_of_cudarc_are_tensors() {
    in_every_order("slices_of_cudarc_are_tensors", || {
        let dev = device();
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        let source = stream.clone_htod(&[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        let mut target = stream.alloc_zeros::<f32>(4).unwrap();
        {
            let x = cuda::borrow(&dev, &source, [4]).unwrap();
            let mut y = cuda::borrow_mut(&dev, &mut target, [4]).unwrap();
            add(&x, &mut y, 1.0).launch(&dev.default_stream()).unwrap();
            scale(&mut y, 2.0).launch(&dev.stream().unwrap()).unwrap();
        }
        assert_eq!(stream.clone_dtoh(&target).unwrap(), [4.0, 6.0, 8.0, 10.0]);
        let y = cuda::borrow(&dev, &target, [2, 2]).unwrap();
        assert_eq!(y.transpose::<0, 1>().unwrap().to_vec().unwrap(), [4.0, 8.0, 6.0, 10.0]);
        drop(y);
        let x = cuda::borrow(&dev, &source, [4]).unwrap();
        let mut own = dev.zeros([4]).unwrap();
        add(&x, &mut own, 0.5).launch(&dev.default_stream()).unwrap();
        drop(x);
        drop(source);
        assert_eq!(own.to_vec().unwrap(), [1.5, 2.5, 3.5, 4.5]);
        let text = cuda::borrow(&dev, &target, [3]).unwrap_err().to_string();
        assert!(text.starts_with("4 elements were given for shape [3]"), "{text}");
        assert!(cuda::borrow(&Device::cpu(), &target, [4]).unwrap_err().to_string().contains("not a CUDA device"));
    });
}

/// The streams of a slice wait for an upload to it as for launches, and an upload for them.
#[test]
fn a_slice_waits_for_an_upload_to_it() {
    in_every_order("a_slice_waits_for_an_upload_to_it", || {
        let dev = device();
        let context = CudaContext::new(0).unwrap();
        let (stream, other) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let mut target = stream.clone_htod(&[1.0f32; 4]).unwrap();
        let mut staging = dev.pinned::<f32>(2).unwrap();
        staging.copy_from_slice(&[5.0, 6.0]);
        {
            let mut y = cuda::borrow_mut(&dev, &mut target, [4]).unwrap();
            let upload = y.slice_mut::<0>(1..3).unwrap().upload(staging, &dev.stream().unwrap()).unwrap();
            std::mem::forget((y, upload));
        }
        assert_eq!(other.clone_dtoh(&target).unwrap(), [1.0, 5.0, 6.0, 1.0]);
        drop(target);
        // What the slice's owner may free is no part of a graph.
        let mut target = stream.alloc_zeros::<f32>(4).unwrap();
        let mut y = cuda::borrow_mut(&dev, &mut target, [4]).unwrap();
        let s = dev.stream().unwrap();
        let error = s.capture(|| scale(&mut y, 2.0).launch(&s)).unwrap_err();
        assert!(error.to_string().contains(" that TITAN does not own, and "), "{error}");
    });
}

/// Neither forgetting what was borrowed nor dropping it early hides a launch from cudarc's streams: not from the slice's own, on
/// which it is freed, and not from others.
#[test]
fn borrows_need_no_destructor() {
    in_every_order("borrows_need_no_destructor", || {
        let dev = device();
        let context = CudaContext::new(0).unwrap();
        let (stream, other) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let source = stream.clone_htod(&[1.0f32, 2.0, 3.0, 4.0]).unwrap();
        let mut target = stream.alloc_zeros::<f32>(4).unwrap();
        let overwritten = stream.clone_htod(&[7.0f32; 4]).unwrap();
        {
            let x = cuda::borrow(&dev, &source, [4]).unwrap();
            let mut y = cuda::borrow_mut(&dev, &mut target, [4]).unwrap();
            add(&x, &mut y, 1.0).launch(&dev.default_stream()).unwrap();
            scale(&mut y.slice_mut::<0>(1..3).unwrap(), 2.0).launch(&dev.stream().unwrap()).unwrap();
            std::mem::forget((x, y));
        }
        // Another stream of cudarc's waits for the launches by the events of the slices: it reads what was written, and
        // overwrites what was read.
        assert_eq!(other.clone_dtoh(&target).unwrap(), [2.0, 6.0, 8.0, 5.0]);
        let mut source = source;
        other.memcpy_dtod(&overwritten, &mut source).unwrap();
        let x = cuda::borrow(&dev, &source, [4]).unwrap();
        let mut own = dev.zeros([4]).unwrap();
        add(&x, &mut own, 0.5).launch(&dev.default_stream()).unwrap();
        std::mem::forget(x);
        drop((source, target));
        assert_eq!(own.to_vec().unwrap(), [7.5; 4]);
    });
}

/// A borrowed tensor that is lent on: the slice's streams wait for the borrower as for launches.
#[test]
fn a_slice_waits_for_whom_its_tensor_was_lent_to() {
    in_every_order("a_slice_waits_for_whom_its_tensor_was_lent_to", || {
        let dev = device();
        let context = CudaContext::new(0).unwrap();
        let (stream, other) = (context.new_stream().unwrap(), context.new_stream().unwrap());
        let mut slice = stream.alloc_zeros::<f32>(4).unwrap();
        let source = other.clone_htod(&[5.0f32; 4]).unwrap();
        {
            let mut x = cuda::borrow_mut(&dev, &mut slice, [4]).unwrap();
            let lent = cuda::lend_mut(&mut x, &other).unwrap();
            let (from, _read) = source.device_ptr(&other);
            // SAFETY: both hold four elements, and the stream is in order with all other uses.
            unsafe { result::memcpy_dtod_async(lent.address(), from, 16, other.cu_stream()).unwrap() };
        }
        assert_eq!(stream.clone_dtoh(&slice).unwrap(), [5.0; 4]);
    });
}

#[test]
fn tensors_are_lent_to_streams_of_cudarc() {
    in_every_order("tensors_are_lent_to_streams_of_cudarc", || {
        let dev = device();
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        let mut x = dev.zeros([4]).unwrap();
        fill(&mut x, 3.0).launch(&dev.default_stream()).unwrap();
        let source = stream.clone_htod(&[5.0f32; 4]).unwrap();
        {
            let lent = cuda::lend_mut(&mut x, &stream).unwrap();
            let (from, _read) = source.device_ptr(&stream);
            // SAFETY: both hold four elements, and the stream is in order with all other uses.
            unsafe {
                result::memcpy_dtod_async(lent.address(), from, 16, stream.cu_stream()).unwrap();
            }
        }
        scale(&mut x, 2.0).launch(&dev.default_stream()).unwrap();
        assert_eq!(x.to_vec().unwrap(), [10.0; 4]);
    });
}

#[test]
fn raw_pointers_are_checked() {
    let settings = [("CUDA_EMULATOR_DEVICES", "sm_80,sm_80")];
    with("raw_pointers_are_checked", &settings, || {
        let dev = device();
        let context = CudaContext::new(0).unwrap();
        let stream = context.new_stream().unwrap();
        let slice = stream.clone_htod(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        let (pointer, _read) = slice.device_ptr(&stream);
        let raw = |pointer, shape, strides| {
            let raw = RawTensor { pointer, shape, strides, stream: Some(stream.cu_stream().cast()) };
            // SAFETY: where the pointer is good, the slice lives until the end of the test.
            unsafe { cuda::tensor_from_raw::<f32, 2>(&dev, raw) }
        };
        let x = raw(pointer, [3, 2], Some([1, 3])).unwrap();
        assert_eq!(x.to_vec().unwrap(), [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        let refused = |pointer, shape, strides| raw(pointer, shape, strides).unwrap_err().to_string();
        let cases = [
            (refused(pointer + 2, [1, 1], None), "is not aligned to 4 bytes, the size of an element `f32`"),
            (refused(pointer, [2, 2], Some([usize::MAX / 2, 1])), "reaches beyond 2^63 - 1 bytes"),
            (refused(pointer, [2, 2], Some([1, 1])), "elements of shape [2, 2] share memory"),
            (refused(pointer, [1 << 20, 2], None), "the tensor needs 8388608 bytes, but the allocation at"),
            (refused(0x1000, [1, 1], None), "is not memory of a CUDA device"),
        ];
        for (text, says) in cases {
            assert!(text.contains(says) && text.contains("\n  help: "), "{text}");
        }
        let other = CudaContext::new(1).unwrap().default_stream().clone_htod(&[1.0f32; 2]).unwrap();
        let (elsewhere, _read) = other.device_ptr(other.stream());
        assert!(refused(elsewhere, [1, 2], None).contains("belongs to CUDA device 1, not to cuda:0 ("));
        let text = cuda::borrow(&dev, &other, [2]).unwrap_err().to_string();
        assert!(text.contains("the stream belongs to CUDA device 1"), "{text}");
    });
}

/// The stride of an axis of one element is never used, so any number is one.
#[test]
fn strides_of_single_elements_are_any_numbers() {
    with("strides_of_single_elements_are_any_numbers", &[], || {
        let dev = device();
        let x = dev.tensor([1.0f32, 2.0], [2]).unwrap();
        // SAFETY: a stream of the context, which lives as long as the guard.
        let lent = unsafe { cuda::lend_raw(&x, std::ptr::null_mut()) }.unwrap();
        let raw = RawTensor { pointer: lent.address(), shape: [1, 2], strides: Some([usize::MAX, 1]), stream: None };
        // SAFETY: the memory of a tensor that lives longer.
        let y: titan::Tensor<f32, 2> = unsafe { cuda::tensor_from_raw(&dev, raw) }.unwrap();
        let last = y.slice::<1>(1..2).unwrap();
        assert_eq!(last.to_vec().unwrap(), [2.0]);
        assert_eq!(last.slice::<0>(1..1).unwrap().len(), 0);
    });
}

#[test]
fn slices_of_cudarc_are_borrowed_with_strides() {
    in_every_order("slices_of_cudarc_are_borrowed_with_strides", || {
        let dev = device();
        let stream = CudaContext::new(0).unwrap().new_stream().unwrap();
        let numbers: Vec<f32> = (0..24u8).map(f32::from).collect();
        let source = stream.clone_htod(&numbers).unwrap();
        let mut target = stream.clone_htod(&numbers).unwrap();
        // Two columns of three rows of eight, and a part of a slice; the other elements of the target stay as they are.
        let columns = Strided { offset: 2, shape: [3, 2], strides: [8, 1] };
        {
            let x = cuda::borrow_strided(&dev, &source, columns).unwrap();
            assert_eq!(x.to_vec().unwrap(), [2.0, 3.0, 10.0, 11.0, 18.0, 19.0]);
            let place = Strided { offset: 0, shape: [3, 2], strides: [1, 12] };
            let mut y = cuda::borrow_strided_mut(&dev, &mut target, place).unwrap();
            add_one(&x, &mut y).launch(&dev.default_stream()).unwrap();
            std::mem::forget((x, y));
        }
        let mut expected = numbers.clone();
        for (i, v) in [3.0, 11.0, 19.0].into_iter().enumerate() {
            (expected[i], expected[i + 12]) = (v, v + 1.0);
        }
        assert_eq!(stream.clone_dtoh(&target).unwrap(), expected);
        let part = source.slice(4..12);
        let repeated = Strided { offset: 7, shape: [2, 2], strides: [0, 0] };
        assert_eq!(cuda::borrow_strided(&dev, &part, repeated).unwrap().to_vec().unwrap(), [11.0; 4]);
        let none = Strided { offset: 99, shape: [0, 5], strides: [1, 1] };
        assert_eq!(cuda::borrow_strided(&dev, &part, none).unwrap().to_vec().unwrap(), []);
        let beyond = Strided { offset: 7, shape: [2, 1], strides: [1, 1] };
        let error = cuda::borrow_strided(&dev, &part, beyond).unwrap_err();
        assert!(error.to_string().starts_with("[T1114] borrow_strided: a tensor of shape [2, 1]"), "{error}");
        let error = cuda::borrow_strided_mut(&dev, &mut target, repeated).unwrap_err();
        assert!(matches!(error, Error::Strided { .. }), "{error}");
        let error = cuda::borrow_strided(&Device::cpu(), &part, repeated).unwrap_err();
        assert!(error.to_string().contains("not a CUDA device"), "{error}");
        drop(source);
    });
}
