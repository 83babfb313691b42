//! Tensors exchanged by DLPack on the CPU: elements and layouts in both directions, when memory is freed, and every structure that is refused.

#![cfg(feature = "cpu")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]
#![expect(unsafe_code, reason = "structures of C")]

mod runtime_kernels;

use runtime_kernels::{add, scale, slow_fill};
use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use titan::dlpack::{
    self, DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, Managed,
};
use titan::lang::{bf16, e4m3, e5m2, f16, i4};
use titan::{Device, DynTensor, ElemType, Result};

/// A tensor of another library, which counts how often it was freed.
struct Theirs {
    memory: Vec<f32>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    freed: Arc<AtomicUsize>,
}

/// What a structure says; the memory has 24 floats, of which element `i` is `i`.
struct Says {
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
    byte_offset: u64,
    dtype: DLDataType,
    device: DLDevice,
    flags: u64,
    version: (u32, u32),
}

const F32: DLDataType = DLDataType { code: 2, bits: 32, lanes: 1 };

impl Default for Says {
    fn default() -> Says {
        let device = DLDevice { device_type: 1, device_id: 0 };
        Says { shape: vec![24], strides: None, byte_offset: 0, dtype: F32, device, flags: 0, version: (1, 1) }
    }
}

impl Says {
    /// The tensor, whose context is `Theirs`.
    fn tensor(&self, freed: &Arc<AtomicUsize>) -> (DLTensor, *mut c_void) {
        let (shape, strides) = (self.shape.clone(), self.strides.clone().unwrap_or_default());
        let memory = (0..24u8).map(f32::from).collect();
        let theirs = Box::into_raw(Box::new(Theirs { memory, shape, strides, freed: Arc::clone(freed) }));
        // SAFETY: just allocated, and not yet shared.
        let own = unsafe { &mut *theirs };
        let dl_tensor = DLTensor {
            data: own.memory.as_mut_ptr().cast(),
            device: self.device,
            ndim: i32::try_from(own.shape.len()).unwrap(),
            dtype: self.dtype,
            shape: own.shape.as_mut_ptr(),
            strides: if self.strides.is_some() { own.strides.as_mut_ptr() } else { ptr::null_mut() },
            byte_offset: self.byte_offset,
        };
        (dl_tensor, theirs.cast())
    }

    fn structure(&self, freed: &Arc<AtomicUsize>) -> *mut DLManagedTensorVersioned {
        unsafe extern "C" fn deleter(structure: *mut DLManagedTensorVersioned) {
            // SAFETY: that of `structure`, freed once.
            unsafe { free(Box::from_raw(structure).manager_ctx) };
        }
        let (dl_tensor, manager_ctx) = self.tensor(freed);
        let version = DLPackVersion { major: self.version.0, minor: self.version.1 };
        let flags = self.flags;
        Box::into_raw(Box::new(DLManagedTensorVersioned {
            version,
            manager_ctx,
            deleter: Some(deleter),
            flags,
            dl_tensor,
        }))
    }

    fn taken(&self, freed: &Arc<AtomicUsize>) -> Result<Managed> {
        // SAFETY: a structure of this test, whose memory lives until it is freed.
        unsafe { Managed::take(&mut self.structure(freed)) }
    }

    fn legacy(&self, freed: &Arc<AtomicUsize>) -> *mut DLManagedTensor {
        unsafe extern "C" fn deleter(structure: *mut DLManagedTensor) {
            // SAFETY: that of `legacy`, freed once.
            unsafe { free(Box::from_raw(structure).manager_ctx) };
        }
        let (dl_tensor, manager_ctx) = self.tensor(freed);
        Box::into_raw(Box::new(DLManagedTensor { dl_tensor, manager_ctx, deleter: Some(deleter) }))
    }
}

/// # Safety
/// The context of a structure here, once.
unsafe fn free(context: *mut c_void) {
    // SAFETY: the caller's.
    let theirs = unsafe { Box::from_raw(context.cast::<Theirs>()) };
    theirs.freed.fetch_add(1, Ordering::Relaxed);
}

fn counter() -> (Arc<AtomicUsize>, impl Fn() -> usize) {
    let freed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&freed);
    (freed, move || count.load(Ordering::Relaxed))
}

#[test]
fn layouts_of_others_are_read_where_they_lie() {
    let (freed, count) = counter();
    let read =
        |says: Says| says.taken(&freed).unwrap().into_view().unwrap().view::<f32, 2>().unwrap().to_vec().unwrap();
    let two = |strides, byte_offset| Says { shape: vec![2, 3], strides, byte_offset, ..Says::default() };
    assert_eq!(read(two(None, 0)), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(read(two(Some(vec![1, 8]), 0)), [0.0, 8.0, 16.0, 1.0, 9.0, 17.0]);
    assert_eq!(read(two(Some(vec![12, 1]), 16)), [4.0, 5.0, 6.0, 16.0, 17.0, 18.0]);
    assert_eq!(read(two(Some(vec![0, 2]), 4)), [1.0, 3.0, 5.0, 1.0, 3.0, 5.0]);
    assert_eq!(read(Says { shape: vec![0, 3], ..Says::default() }), []);
    assert_eq!(count(), 5);
    let scalar = Says { shape: vec![], byte_offset: 92, ..Says::default() }.taken(&freed).unwrap().into_view().unwrap();
    assert_eq!(scalar.reshape(&[1]).unwrap().view::<f32, 1>().unwrap().to_vec().unwrap(), [23.0]);
    drop(scalar);
    assert_eq!(count(), 6);
}

#[test]
fn kernels_write_memory_of_others() {
    let (freed, count) = counter();
    let says = Says { shape: vec![4], strides: Some(vec![3]), byte_offset: 4, ..Says::default() };
    let structure = says.structure(&freed);
    // SAFETY: a structure of this test; its memory is only read after the tensor's last use.
    let memory = unsafe { (*structure).dl_tensor.data.cast::<f32>() };
    // SAFETY: as above.
    let mut x =
        unsafe { Managed::take(&mut { structure }) }.unwrap().into_tensor().unwrap().into_tensor::<f32, 1>().unwrap();
    let stream = Device::cpu().stream().unwrap();
    slow_fill(&mut x, 5.0, 2000).launch(&stream).unwrap();
    scale(&mut x, 3.0).launch(&stream).unwrap();
    assert_eq!(x.to_vec().unwrap(), [15.0; 4]);
    // SAFETY: the tensor keeps the memory, and no launch uses it.
    let found: Vec<f32> = (0..12).map(|i| unsafe { memory.add(i).read() }).collect();
    assert_eq!(found, [0.0, 15.0, 2.0, 3.0, 15.0, 5.0, 6.0, 15.0, 8.0, 9.0, 15.0, 11.0]);
    assert_eq!(count(), 0);
    drop(x);
    assert_eq!(count(), 1);
}

/// The deleter is called when the last handle is gone, in whatever order they are dropped, and after the launches.
#[test]
fn memory_of_others_lives_as_long_as_what_uses_it() {
    let (freed, count) = counter();
    let view = Says::default().taken(&freed).unwrap().into_view().unwrap();
    let (again, part) = (view.clone(), view.slice(0, 3..9).unwrap());
    drop(view);
    drop(again);
    assert_eq!((count(), part.view::<f32, 1>().unwrap().to_vec().unwrap()[0]), (0, 3.0));
    let typed = part.view::<f32, 1>().unwrap();
    drop(part);
    assert_eq!(count(), 0);
    let stream = Device::cpu().stream().unwrap();
    let mut y = Device::cpu().zeros([6]).unwrap();
    slow_fill(&mut y, 1.0, 5000).launch(&stream).unwrap();
    add(&typed, &mut y, 0.5).launch(&stream).unwrap();
    drop(typed);
    assert_eq!(y.to_vec().unwrap(), [3.5, 4.5, 5.5, 6.5, 7.5, 8.5]);
    stream.sync().unwrap();
    drop(stream);
    drop(y);
    // The thread of the stream drops its handles when it has run the launch.
    while count() == 0 {
        std::thread::yield_now();
    }
    assert_eq!(count(), 1);
    drop(Says::default().taken(&freed).unwrap());
    assert_eq!(count(), 2);
    std::mem::forget(Says::default().taken(&freed).unwrap().into_view().unwrap());
    assert_eq!(count(), 2);
}

#[test]
fn a_tensor_is_taken_once() {
    let (freed, count) = counter();
    let mut pointer = Says::default().structure(&freed);
    // SAFETY: a structure of this test.
    let first = unsafe { Managed::take(&mut pointer) }.unwrap();
    assert!(pointer.is_null());
    // SAFETY: a null pointer.
    let error = unsafe { Managed::take(&mut pointer) }.unwrap_err().to_string();
    assert!(error.starts_with("[T1121] take: the tensor was taken before") && error.contains("\n  help: "), "{error}");
    drop(first);
    let mut pointer = Says::default().legacy(&freed);
    // SAFETY: a structure of this test.
    drop(unsafe { Managed::take_legacy(&mut pointer) }.unwrap());
    // SAFETY: a null pointer.
    let error = unsafe { Managed::take_legacy(&mut pointer) }.unwrap_err().to_string();
    assert!(error.starts_with("[T1121] take: the tensor was taken before"), "{error}");
    assert_eq!(count(), 2);
}

#[test]
fn structures_that_cannot_be_taken_are_refused_and_freed() {
    let (freed, count) = counter();
    let dtype = |code, bits, lanes| Says { dtype: DLDataType { code, bits, lanes }, ..Says::default() };
    let device = |device_type, device_id| Says { device: DLDevice { device_type, device_id }, ..Says::default() };
    let shaped = |shape: &[i64], strides: Option<&[i64]>| {
        let strides = strides.map(<[i64]>::to_vec);
        Says { shape: shape.to_vec(), strides, ..Says::default() }
    };
    let cases = [
        (Says { version: (2, 0), ..Says::default() }, "[T1121] take: the tensor is of DLPack 2.0"),
        (dtype(2, 32, 4), "[T1121] into_view: an element consists of 4 values"),
        (dtype(5, 64, 1), "[T1121] into_view: TITAN has no element type of 64 bits of kind 5 (kDLComplex)"),
        (dtype(8, 8, 1), "(kDLFloat8_e4m3)"),
        (dtype(17, 4, 1), "(kDLFloat4_e2m1fn)"),
        (dtype(99, 8, 1), "of kind 99 (unknown)"),
        (Says { flags: 4, ..dtype(1, 4, 1) }, "each element of type `u4` has a byte of its own"),
        (device(10, 0), "is on device 0 of kind 10 (kDLROCM)"),
        (device(8, 1), "is on device 1 of kind 8 (kDLMetal)"),
        (device(-3, 0), "of kind -3 (unknown)"),
        (shaped(&[2, -1], None), "axis 1 has the extent -1"),
        (shaped(&[2, 3], Some(&[3, -1])), "axis 1 has the stride -1"),
        (shaped(&[1; 9], None), "a tensor has at most 8"),
        (shaped(&[1 << 40, 1 << 40], None), "reach beyond the memory"),
        (shaped(&[2, 2], Some(&[i64::MAX, 1])), "reach beyond the memory"),
        (Says { byte_offset: 2, ..shaped(&[4], None) }, "is not aligned to 4 bytes, the size of an element `f32`"),
        (Says { byte_offset: u64::MAX, ..shaped(&[4], None) }, "reach beyond the memory"),
    ];
    let len = cases.len();
    for (says, text) in cases {
        let error = says.taken(&freed).and_then(Managed::into_view).unwrap_err().to_string();
        assert!(error.contains(text) && error.contains("\n  help: "), "{error}");
    }
    assert_eq!(count(), len);
}

#[test]
fn what_must_not_be_written_is_only_read() {
    let (freed, count) = counter();
    let read_only = || Says { flags: dlpack::READ_ONLY, ..Says::default() };
    let error = read_only().taken(&freed).unwrap().into_tensor().unwrap_err().to_string();
    assert!(error.starts_with("[T1121] into_tensor: the elements are read-only"), "{error}");
    assert_eq!(read_only().taken(&freed).unwrap().into_view().unwrap().len(), 24);
    let repeated = Says { shape: vec![4, 2], strides: Some(vec![0, 1]), ..Says::default() };
    let error = repeated.taken(&freed).unwrap().into_tensor().unwrap_err().to_string();
    assert!(error.starts_with("[T1114] into_tensor: with strides [0, 1]"), "{error}");
    let error = read_only().taken(&freed).unwrap().into_raw_legacy().unwrap_err().to_string();
    assert!(error.starts_with("[T1121] into_raw_legacy: the elements are read-only"), "{error}");
    assert_eq!(count(), 4);
}

/// What is exported is the tensor, bit for bit, with its code.
#[test]
fn every_element_type_goes_out_and_comes_back() {
    let codes = [
        (ElemType::F64, 2, 64),
        (ElemType::F32, 2, 32),
        (ElemType::F16, 2, 16),
        (ElemType::Bf16, 4, 16),
        (ElemType::E4m3, 10, 8),
        (ElemType::E5m2, 12, 8),
        (ElemType::I64, 0, 64),
        (ElemType::I32, 0, 32),
        (ElemType::I16, 0, 16),
        (ElemType::I8, 0, 8),
        (ElemType::I4, 0, 4),
        (ElemType::U64, 1, 64),
        (ElemType::U32, 1, 32),
        (ElemType::U16, 1, 16),
        (ElemType::U8, 1, 8),
        (ElemType::U4, 1, 4),
        (ElemType::Bool, 6, 8),
    ];
    let dev = Device::cpu();
    for (elem, code, bits) in codes {
        let bytes: Vec<u8> = (0..elem.bytes_for(6))
            .map(|i| (i as u8).wrapping_mul(37) & if bits == 8 && code == 6 { 1 } else { 255 })
            .collect();
        let managed = dlpack::export(DynTensor::from_bytes(&dev, elem, &[3, 2], &bytes).unwrap()).unwrap();
        let tensor = *managed.tensor();
        assert_eq!(tensor.dtype, DLDataType { code, bits, lanes: 1 }, "{elem}");
        assert_eq!((tensor.device, tensor.ndim), (DLDevice { device_type: 1, device_id: 0 }, 2));
        // SAFETY: the structure lives, and says how many there are.
        let found = unsafe { std::slice::from_raw_parts(tensor.data.cast::<u8>(), bytes.len()) };
        assert_eq!(found, bytes, "{elem}");
        let again = managed.into_view().unwrap();
        assert_eq!((again.elem(), again.shape(), again.strides()), (elem, &[3, 2][..], &[2, 1][..]));
        assert_eq!(again.as_view().len(), 6);
    }
    let error = dlpack::export(DynTensor::zeros(&dev, ElemType::Tf32, &[2]).unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("[T1121] export: DLPack has no element type `tf32`"), "{error}");
    // Values of types that are not numbers of C.
    let values = [e4m3::from_f32(0.5), e4m3::from_f32(-448.0)];
    let back = dlpack::export(dev.tensor(values, [2]).unwrap()).unwrap().into_tensor().unwrap();
    assert_eq!(back.into_tensor::<e4m3, 1>().unwrap().to_vec().unwrap(), values);
    let values = [e5m2::from_f32(1.5), e5m2::from_f32(-3.0)];
    let back = dlpack::export(dev.tensor(values, [2]).unwrap()).unwrap().into_tensor().unwrap();
    assert_eq!(back.into_tensor::<e5m2, 1>().unwrap().to_vec().unwrap(), values);
    let values = [i4::from_i8(-8), i4::from_i8(7)];
    let back = dlpack::export(dev.tensor(values, [2]).unwrap()).unwrap().into_tensor().unwrap();
    assert_eq!(back.into_tensor::<i4, 1>().unwrap().to_vec().unwrap(), values);
    let halves = dev.full([3], f16::from_f32(0.25)).unwrap();
    let wide = dev.full([3], bf16::from_f32(-2.0)).unwrap();
    assert_eq!(dlpack::export(halves).unwrap().tensor().dtype.code, 2);
    assert_eq!(dlpack::export(wide).unwrap().tensor().dtype.code, 4);
}

/// The memory of an exported tensor is freed by its deleter, once, also when the structure passes through the one from before version 1.0.
#[test]
fn exported_tensors_are_freed_by_their_deleters() {
    let dev = Device::cpu();
    // No other test of this program has as large a tensor.
    let tensor = || dev.full([1 << 20], 2.5f64).unwrap();
    let live = || dev.memory_use().unwrap().bytes >> 23;
    let before = live();
    let managed = dlpack::export(tensor()).unwrap();
    assert_eq!(live(), before + 1);
    drop(managed);
    assert_eq!(live(), before);
    let structure = dlpack::export(tensor()).unwrap().into_raw();
    // SAFETY: the structure of `into_raw`, freed once.
    unsafe { (*structure).deleter.unwrap()(structure) };
    assert_eq!(live(), before);
    let legacy = dlpack::export(tensor()).unwrap().into_raw_legacy().unwrap();
    // SAFETY: the structure of `into_raw_legacy`, taken once.
    let again = unsafe { Managed::take_legacy(&mut { legacy }) }.unwrap().into_raw();
    assert_eq!(live(), before + 1);
    // SAFETY: the structure of `into_raw`, taken once.
    let view = unsafe { Managed::take(&mut { again }) }.unwrap().into_view().unwrap();
    assert_eq!(view.view::<f64, 1>().unwrap().to_vec().unwrap()[7], 2.5);
    drop(view);
    assert_eq!(live(), before);
}

#[test]
fn shared_tensors_are_read_on_both_sides() {
    let dev = Device::cpu();
    let mut shared = Arc::new(DynTensor::from(dev.tensor([1.0f32, 2.0, 3.0], [3]).unwrap()));
    let managed = dlpack::export_shared(&shared).unwrap();
    assert!(managed.is_read_only() && Arc::get_mut(&mut shared).is_none());
    let theirs = managed.into_view().unwrap();
    let mut y = dev.zeros([3]).unwrap();
    add(&shared.view::<f32, 1>().unwrap(), &mut y, 1.0).sync().unwrap();
    assert_eq!(
        (y.to_vec().unwrap(), theirs.view::<f32, 1>().unwrap().to_vec().unwrap()),
        (vec![2.0, 3.0, 4.0], vec![1.0, 2.0, 3.0])
    );
    drop(shared);
    assert_eq!(theirs.len(), 3);
}

/// An export waits for launches, and reports the failure of one that should have written the tensor.
#[test]
fn an_export_waits_for_launches() {
    let dev = Device::cpu();
    let stream = dev.stream().unwrap();
    let mut x = dev.zeros([16]).unwrap();
    slow_fill(&mut x, 4.0, 20_000).launch(&stream).unwrap();
    let managed = dlpack::export(x).unwrap();
    // SAFETY: the structure lives, and has 16 elements.
    let found = unsafe { std::slice::from_raw_parts(managed.tensor().data.cast::<f32>(), 16) };
    assert_eq!(found, [4.0; 16]);
    let mut x = dev.zeros([16]).unwrap();
    runtime_kernels::trap_at(&mut x, 3).launch(&stream).unwrap();
    let error = dlpack::export(x).unwrap_err().to_string();
    assert!(error.contains("trap_at"), "{error}");
}
