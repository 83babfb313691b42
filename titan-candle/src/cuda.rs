//! candle's storage on CUDA devices as views, and candle's stream for launches.
//!
//! candle allocates, copies and computes on one stream of a device. Launches are put on the same stream, and borrowed slices belong to it, so
//! that nothing waits and no other stream is involved.

use crate::host::{place, unsupported};
use candle_core::cuda_backend::cudarc::driver::CudaStream;
use candle_core::cuda_backend::{CudaDevice, CudaStorageSlice};
use candle_core::{CudaStorage, DType, Layout, Result};
use std::sync::{Arc, Mutex, PoisonError};
use titan::{DynView, DynViewMut, Stream};

/// The device of candle's as TITAN's.
///
/// # Errors
/// If TITAN cannot use it.
pub fn device(device: &CudaDevice) -> Result<titan::Device> {
    let ordinal = device.cuda_stream().context().ordinal();
    let Ok(ordinal) = u32::try_from(ordinal) else { candle_core::bail!("CUDA device {ordinal}") };
    titan::Device::cuda(ordinal).map_err(crate::error)
}

/// The streams that launches have been put on, each with the one of candle's. They have what `sync` reports.
static STREAMS: Mutex<Vec<(Arc<CudaStream>, Stream)>> = Mutex::new(Vec::new());

/// The handles of a stream of candle's that [`STREAMS`] has: its own, and that of TITAN's stream.
const KEPT: usize = 2;

/// The stream of candle's device, for launches. A device that `Device::new_cuda` has made has a stream for each thread of the host: that of the
/// calling thread.
///
/// # Errors
/// If TITAN cannot use the device.
pub fn stream(device: &CudaDevice) -> Result<Stream> {
    let theirs = device.cuda_stream();
    let mut known = STREAMS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, stream)) = known.iter().find(|(stream, _)| *stream == theirs) {
        return Ok(stream.clone());
    }
    let stream = titan::cuda::stream_of(&self::device(device)?, &theirs).map_err(crate::error)?;
    // Those of devices that have been dropped.
    known.retain(|(theirs, _)| Arc::strong_count(theirs) > KEPT);
    known.push((theirs, stream.clone()));
    Ok(stream)
}

/// Calls `$f` with the slice of a storage.
macro_rules! each {
    ($storage:expr, $slice:ident => $f:expr) => {
        match $storage {
            CudaStorageSlice::U8($slice) => $f,
            CudaStorageSlice::U32($slice) => $f,
            CudaStorageSlice::I16($slice) => $f,
            CudaStorageSlice::I32($slice) => $f,
            CudaStorageSlice::I64($slice) => $f,
            CudaStorageSlice::BF16($slice) => $f,
            CudaStorageSlice::F16($slice) => $f,
            CudaStorageSlice::F32($slice) => $f,
            CudaStorageSlice::F64($slice) => $f,
            CudaStorageSlice::F8E4M3($slice) => $f,
            CudaStorageSlice::F6E2M3(_) => Err(unsupported(DType::F6E2M3)),
            CudaStorageSlice::F6E3M2(_) => Err(unsupported(DType::F6E3M2)),
            CudaStorageSlice::F4(_) => Err(unsupported(DType::F4)),
            CudaStorageSlice::F8E8M0(_) => Err(unsupported(DType::F8E8M0)),
        }
    };
}

/// A tensor of candle's on a CUDA device as a view, without a copy.
///
/// # Errors
/// If the element type is one that candle only stores, or the layout leaves the storage (T1114).
pub fn lend<'a>(storage: &'a CudaStorage, layout: &Layout) -> Result<DynView<'a>> {
    let device = device(&storage.device)?;
    each!(&storage.slice, slice => titan::cuda::borrow_dyn(&device, slice, place(layout)).map_err(crate::error))
}

/// The exclusive counterpart of [`lend`], for writing.
///
/// # Errors
/// As of [`lend`], and if two elements are one of the storage (T1114).
pub fn lend_mut<'a>(storage: &'a mut CudaStorage, layout: &Layout) -> Result<DynViewMut<'a>> {
    let device = device(&storage.device)?;
    each!(&mut storage.slice, slice => titan::cuda::borrow_dyn_mut(&device, slice, place(layout)).map_err(crate::error))
}

/// A new storage of zeros.
///
/// # Errors
/// If the element type is one that candle only stores, or there is not enough memory.
pub fn zeros(device: &CudaDevice, len: usize, dtype: DType) -> Result<CudaStorage> {
    let slice = match dtype {
        DType::U8 => CudaStorageSlice::U8(device.alloc_zeros(len)?),
        DType::U32 => CudaStorageSlice::U32(device.alloc_zeros(len)?),
        DType::I16 => CudaStorageSlice::I16(device.alloc_zeros(len)?),
        DType::I32 => CudaStorageSlice::I32(device.alloc_zeros(len)?),
        DType::I64 => CudaStorageSlice::I64(device.alloc_zeros(len)?),
        DType::BF16 => CudaStorageSlice::BF16(device.alloc_zeros(len)?),
        DType::F16 => CudaStorageSlice::F16(device.alloc_zeros(len)?),
        DType::F32 => CudaStorageSlice::F32(device.alloc_zeros(len)?),
        DType::F64 => CudaStorageSlice::F64(device.alloc_zeros(len)?),
        DType::F8E4M3 => CudaStorageSlice::F8E4M3(device.alloc_zeros(len)?),
        // Types that candle only stores, and those of later versions: the enum is not exhaustive.
        _ => return Err(unsupported(dtype)),
    };
    Ok(CudaStorage { slice, device: device.clone() })
}
