//! Tensor maps in the driver's encoding.

use super::context::Context;
use super::error::DriverError;
use super::sys::CU_TENSOR_MAP_INTERLEAVE_NONE;
use super::table::Table;
use crate::tma::{TensorMap, TensorMapError};
use std::ffi::c_void;

/// The name of the encoder's function.
const ENCODE: &str = "cuTensorMapEncodeTiled";

/// A tensor map in the driver's form, which kernels take as a parameter of 128 bytes.
///
/// It holds the address of the tensor, but keeps nothing alive. The manual requires an alignment of 64 bytes, headers since CUDA 13
/// of 128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(128))]
pub struct EncodedMap([u8; 128]);

impl EncodedMap {
    /// The address of the parameter, valid during a launch.
    pub(super) fn place(&self) -> *const c_void {
        (&raw const self.0).cast()
    }

    /// The bytes, which kernels take unchanged.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 128] {
        &self.0
    }
}

/// The reason why a map cannot be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The driver is too old for tensor maps.
    #[error("NVIDIA's driver library has no function `cuTensorMapEncodeTiled`: it is older than CUDA 12")]
    Missing,
    /// The map breaks a limit.
    #[error("{0}")]
    Map(#[from] TensorMapError),
    /// The driver or device refuses the map.
    #[error("{0}")]
    Driver(#[from] DriverError),
}

impl Context {
    /// Whether the driver supports tensor maps. Devices support them from compute capability 9.0 on.
    #[must_use]
    pub fn has_tensor_maps(&self) -> bool {
        self.calls.cuTensorMapEncodeTiled.is_some() && self.device().properties.capability >= 90
    }

    /// Encodes a map in the driver's form.
    ///
    /// # Errors
    /// [`EncodeError`]: the driver lacks the function, the map breaks a limit, or the driver refuses it.
    pub fn encode(&self, map: &TensorMap) -> Result<EncodedMap, EncodeError> {
        let encode = self.calls.cuTensorMapEncodeTiled.ok_or(EncodeError::Missing)?;
        map.check()?;
        let _entered = self.enter()?;
        let mut encoded = EncodedMap([0; 128]);
        let place: *mut c_void = (&raw mut encoded.0).cast();
        // A device address, which is never dereferenced here.
        let address = std::ptr::without_provenance_mut(usize::try_from(map.address).unwrap_or(0));
        // SAFETY: the place has 128 bytes, aligned to 64, and the arrays have at least as many elements as the map has dimensions,
        // one less for the strides: the map has been checked, so that these are at most 5. CUDA driver API, `cuTensorMapEncodeTiled`.
        let code = unsafe {
            encode(
                place,
                map.element as u32,
                map.rank.into(),
                address,
                map.extents.as_ptr(),
                map.strides.as_ptr(),
                map.box_extents.as_ptr(),
                map.element_strides.as_ptr(),
                CU_TENSOR_MAP_INTERLEAVE_NONE,
                map.swizzle as u32,
                map.l2 as u32,
                map.fill as u32,
            )
        };
        self.calls.check(ENCODE, code)?;
        Ok(encoded)
    }
}

/// The sizes of the arguments and of the result of the encoder, as it is called here.
#[must_use]
pub fn encoder_sizes() -> [usize; 13] {
    macro_rules! sizes {
        ($($letter:ident)*) => {
            fn sizes<$($letter,)* R>(
                _: impl Fn(&Table) -> Option<unsafe extern "C" fn($($letter),*) -> R>,
            ) -> [usize; 13] {
                [$(size_of::<$letter>(),)* size_of::<R>()]
            }
        };
    }
    sizes!(A B C D E F G H I J K L);
    sizes(|table| table.cuTensorMapEncodeTiled)
}
