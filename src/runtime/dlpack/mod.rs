//! Tensors exchanged with other frameworks by DLPack, in both directions and without copies.
//!
//! DLPack is how NumPy, PyTorch, JAX, CuPy and others pass tensors to each other: a C structure with a pointer, a device, an element type,
//! extents and strides, and a function that frees it. [`Managed`] owns such a structure.
//!
//! * [`export`] gives a tensor away; [`export_shared`] lets others read one that this program goes on reading;
//! * [`Managed::take`] takes a structure of others; [`Managed::into_view`] reads its elements, [`Managed::into_tensor`] also writes them.
//!
//! ```
//! use titan::{Device, dlpack};
//!
//! # fn main() -> titan::Result<()> {
//! let x = Device::cpu().tensor([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3])?;
//! // To another framework, which calls the deleter when it does not need the tensor any more; here, from one.
//! let mut pointer = dlpack::export(x)?.into_raw();
//! // SAFETY: the structure is that of `export`, and nothing else uses it.
//! let x = unsafe { dlpack::Managed::take(&mut pointer)? }.into_view()?;
//! assert_eq!(x.view::<f32, 2>()?.transpose::<0, 1>()?.to_vec()?, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
//! assert!(pointer.is_null());
//! # Ok(())
//! # }
//! ```
//!
//! In Python a capsule of the name [`CAPSULE`] has the pointer to the structure; who takes it renames the capsule to [`USED_CAPSULE`].
//!
//! **Order of work.** The CPU has no streams: what is exported is finished, and so must be what is taken. On CUDA devices, `export` waits for
//! all launches that use the tensor, and the memory is freed after all work of the device, of which DLPack says nothing. What is taken may
//! be used by launches at once, so its producer must have been given a stream, or have been synchronized, as `__dlpack__(stream=..)` does.
//! When the last view of it is dropped, its deleter is called after the launches that use it have ended; the thread waits for them.
//!
//! Deliberately absent: other devices than the CPU and CUDA's, elements that are vectors, complex numbers and narrower floats, and negative
//! strides. They are errors (T1125).

mod abi;
mod elements;
mod export;
mod import;

pub use abi::{DLDataType, DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, READ_ONLY};
pub use export::{export, export_shared};

use crate::error::{Error, Refused, Result};
use std::ffi::CStr;
use std::fmt;
use std::ptr::NonNull;

/// The name of a Python capsule with a pointer to a [`DLManagedTensorVersioned`].
pub const CAPSULE: &CStr = c"dltensor_versioned";

/// The name that such a capsule is given by who takes the pointer.
pub const USED_CAPSULE: &CStr = c"used_dltensor_versioned";

/// The same names for a [`DLManagedTensor`], as frameworks gave it before version 1.0.
pub const LEGACY_CAPSULES: (&CStr, &CStr) = (c"dltensor", c"used_dltensor");

/// A tensor that is exchanged by DLPack: owns the structure, and calls its deleter when it is dropped.
pub struct Managed(Structure);

/// The two kinds of structures.
#[derive(Clone, Copy)]
enum Structure {
    Versioned(NonNull<DLManagedTensorVersioned>),
    Legacy(NonNull<DLManagedTensor>),
}

// SAFETY: the structure is owned and only read here, and `take` asks that its deleter may be called on any thread.
#[expect(unsafe_code, reason = "a structure of C")]
unsafe impl Send for Managed {}
// SAFETY: shared references only read it.
#[expect(unsafe_code, reason = "a structure of C")]
unsafe impl Sync for Managed {}

fn refuse<T>(operation: &'static str, problem: impl Into<String>, help: &'static str) -> Result<T> {
    Err(Error::Dlpack(Refused { operation, problem: problem.into(), help }))
}

/// The error of a pointer that has been taken.
fn consumed<T>() -> Result<T> {
    refuse(
        "take",
        "the tensor was taken before: the pointer is null",
        "ask its producer for another one; each is taken once",
    )
}

impl Managed {
    /// Takes a structure of others, and leaves a null pointer, so that it is taken once. Of another major version of DLPack, it is freed.
    ///
    /// # Errors
    /// If the pointer is null, because the structure was taken before; if its version is not 1 (T1125).
    ///
    /// # Safety
    /// The pointer is null or one to a structure as `dlpack.h` describes it, which nobody else uses or frees. Until its deleter is called,
    /// extents and strides are `ndim` numbers, and the memory holds the elements that they reach. While the result or what is made of it
    /// lives, nobody else writes the elements, and if they are written through [`Managed::into_tensor`], nobody else reads them.
    /// The deleter may be called on any thread. Bytes of type `bool` are 0 or 1.
    #[expect(unsafe_code, reason = "a structure of C")]
    pub unsafe fn take(pointer: &mut *mut DLManagedTensorVersioned) -> Result<Managed> {
        let Some(structure) = NonNull::new(std::mem::replace(pointer, std::ptr::null_mut())) else { return consumed() };
        let taken = Managed(Structure::Versioned(structure));
        // SAFETY: the caller says that it is such a structure. The version is the first field in every version.
        let version = unsafe { (*structure.as_ptr()).version };
        if version.major != abi::VERSION.major {
            // `taken` is dropped: the deleter is at the same place in every version.
            let problem = format!("the tensor is of DLPack {}.{}", version.major, version.minor);
            return refuse("take", problem, "ask its producer for version 1, as `__dlpack__(max_version=(1, 0))` does");
        }
        Ok(taken)
    }

    /// Takes a structure from before version 1.0, as [`Managed::take`] does. It has no flags: its elements count as writable.
    ///
    /// # Errors
    /// If the pointer is null, because the structure was taken before (T1125).
    ///
    /// # Safety
    /// As of [`Managed::take`].
    #[expect(unsafe_code, reason = "a structure of C")]
    pub unsafe fn take_legacy(pointer: &mut *mut DLManagedTensor) -> Result<Managed> {
        let structure = NonNull::new(std::mem::replace(pointer, std::ptr::null_mut()));
        structure.map_or_else(consumed, |structure| Ok(Managed(Structure::Legacy(structure))))
    }

    /// The pointer, for another framework, which now owns the structure: it calls the deleter.
    ///
    /// What was taken from before version 1.0 is given in a new structure, which frees the old one.
    #[must_use]
    pub fn into_raw(self) -> *mut DLManagedTensorVersioned {
        match self.0 {
            Structure::Versioned(structure) => {
                std::mem::forget(self);
                structure.as_ptr()
            }
            Structure::Legacy(_) => export::wrapped(self),
        }
    }

    /// The pointer, for a framework that knows only the structure from before version 1.0, which now owns it.
    ///
    /// # Errors
    /// If the elements must not be written, which that structure cannot say (T1125).
    pub fn into_raw_legacy(self) -> Result<*mut DLManagedTensor> {
        if self.is_read_only() {
            let problem = "the elements are read-only, which a structure from before version 1.0 does not say";
            return refuse("into_raw_legacy", problem, "ask for version 1, or export a `.copy()`");
        }
        if self.flags() & abi::SUBBYTE_PADDED != 0 {
            let problem =
                "elements of less than a byte are padded, which a structure from before version 1.0 does not say";
            return refuse("into_raw_legacy", problem, "ask for version 1");
        }
        match self.0 {
            Structure::Legacy(structure) => {
                std::mem::forget(self);
                Ok(structure.as_ptr())
            }
            Structure::Versioned(_) => Ok(export::wrapped_legacy(self)),
        }
    }

    /// The tensor.
    #[must_use]
    #[expect(unsafe_code, reason = "a structure of C")]
    pub fn tensor(&self) -> &DLTensor {
        match self.0 {
            // SAFETY: `take` asks for such a structure, which is owned.
            Structure::Versioned(structure) => unsafe { &(*structure.as_ptr()).dl_tensor },
            // SAFETY: as above.
            Structure::Legacy(structure) => unsafe { &(*structure.as_ptr()).dl_tensor },
        }
    }

    /// Whether the elements must not be written.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.flags() & READ_ONLY != 0
    }

    #[expect(unsafe_code, reason = "a structure of C")]
    fn flags(&self) -> u64 {
        match self.0 {
            // SAFETY: `take` asks for such a structure, which is owned.
            Structure::Versioned(structure) => unsafe { (*structure.as_ptr()).flags },
            Structure::Legacy(_) => 0,
        }
    }
}

impl Drop for Managed {
    #[expect(unsafe_code, reason = "a structure of C")]
    fn drop(&mut self) {
        match self.0 {
            // SAFETY: `take` asks for such a structure, whose deleter is called once, by its owner.
            Structure::Versioned(structure) => unsafe {
                if let Some(deleter) = (*structure.as_ptr()).deleter {
                    deleter(structure.as_ptr());
                }
            },
            // SAFETY: as above.
            Structure::Legacy(structure) => unsafe {
                if let Some(deleter) = (*structure.as_ptr()).deleter {
                    deleter(structure.as_ptr());
                }
            },
        }
    }
}

impl fmt::Debug for Managed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DLTensor { device, dtype, ndim, .. } = self.tensor();
        write!(f, "Managed({ndim} axes, {dtype:?}, {device:?})")
    }
}
