//! candle's storage on the CPU as views.

use candle_core::{CpuStorage, DType, Error, Layout, Result};
use titan::cpu::Scope;
use titan::{DynView, DynViewMut, Place};

/// The place of a tensor of candle's in its storage.
pub(crate) fn place(layout: &Layout) -> Place<'_> {
    Place { offset: layout.start_offset(), shape: layout.dims(), strides: Some(layout.stride()) }
}

/// The error of an element type that is only stored.
pub(crate) fn unsupported(dtype: DType) -> Error {
    Error::UnsupportedDTypeForOp(dtype, "a TITAN kernel").bt()
}

/// Calls `$f` with the slice of a storage.
macro_rules! each {
    ($storage:expr, $slice:ident => $f:expr) => {
        match $storage {
            CpuStorage::U8($slice) => $f,
            CpuStorage::U32($slice) => $f,
            CpuStorage::I16($slice) => $f,
            CpuStorage::I32($slice) => $f,
            CpuStorage::I64($slice) => $f,
            CpuStorage::BF16($slice) => $f,
            CpuStorage::F16($slice) => $f,
            CpuStorage::F32($slice) => $f,
            CpuStorage::F64($slice) => $f,
            CpuStorage::F8E4M3($slice) => $f,
            CpuStorage::F6E2M3(_) => Err(unsupported(DType::F6E2M3)),
            CpuStorage::F6E3M2(_) => Err(unsupported(DType::F6E3M2)),
            CpuStorage::F4(_) => Err(unsupported(DType::F4)),
            CpuStorage::F8E8M0(_) => Err(unsupported(DType::F8E8M0)),
        }
    };
}

/// A tensor of candle's on the CPU as a view, without a copy.
///
/// # Errors
/// If the element type is one that candle only stores, or the layout leaves the storage (T1114).
pub fn lend<'scope, 'env>(
    host: &'scope Scope<'scope, 'env>,
    storage: &'env CpuStorage,
    layout: &Layout,
) -> Result<DynView<'scope>> {
    each!(storage, slice => host.borrow_dyn(slice, place(layout)).map_err(crate::error))
}

/// The exclusive counterpart of [`lend`], for writing.
///
/// # Errors
/// As of [`lend`], and if two elements are one of the storage (T1114).
pub fn lend_mut<'scope, 'env>(
    host: &'scope Scope<'scope, 'env>,
    storage: &'env mut CpuStorage,
    layout: &Layout,
) -> Result<DynViewMut<'scope>> {
    each!(storage, slice => host.borrow_dyn_mut(slice, place(layout)).map_err(crate::error))
}

/// A new storage of zeros: pages that the system has zeroed, which are not written twice.
///
/// # Errors
/// If the element type is one that candle only stores.
#[expect(clippy::wildcard_enum_match_arm, reason = "candle's enum is not exhaustive")]
pub fn zeros(len: usize, dtype: DType) -> Result<CpuStorage> {
    use bytemuck::zeroed_vec;
    match dtype {
        DType::U8 => Ok(CpuStorage::U8(zeroed_vec(len))),
        DType::U32 => Ok(CpuStorage::U32(zeroed_vec(len))),
        DType::I16 => Ok(CpuStorage::I16(zeroed_vec(len))),
        DType::I32 => Ok(CpuStorage::I32(zeroed_vec(len))),
        DType::I64 => Ok(CpuStorage::I64(zeroed_vec(len))),
        DType::BF16 => Ok(CpuStorage::BF16(zeroed_vec(len))),
        DType::F16 => Ok(CpuStorage::F16(zeroed_vec(len))),
        DType::F32 => Ok(CpuStorage::F32(zeroed_vec(len))),
        DType::F64 => Ok(CpuStorage::F64(zeroed_vec(len))),
        DType::F8E4M3 => Ok(CpuStorage::F8E4M3(zeroed_vec(len))),
        // Types that candle only stores, and those of later versions: the enum is not exhaustive.
        _ => Err(unsupported(dtype)),
    }
}
