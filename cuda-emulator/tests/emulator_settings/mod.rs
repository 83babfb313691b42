//! The settings of the emulated driver, changed while a test runs.

use std::ffi::{CString, c_char};

/// The settings of the emulated driver that this process has loaded.
pub(crate) struct Emulator(libloading::Library);

impl Emulator {
    /// The library of this process.
    pub(crate) fn loaded() -> Emulator {
        // SAFETY: the library does nothing when it is loaded.
        Emulator(unsafe { libloading::Library::new("libcuda.so.1") }.unwrap())
    }

    /// Which calls fail from now on, as `CUDA_EMULATOR_FAULT`; none if it is empty.
    pub(crate) fn fail(&self, fault: &str) {
        type Set = unsafe extern "C" fn(*const c_char, *const c_char) -> u32;
        let (key, value) = (c"FAULT", CString::new(fault).unwrap());
        // SAFETY: the emulated driver has this export, and takes two texts.
        let code = unsafe { self.0.get::<Set>(b"cuEmulatorSet").unwrap()(key.as_ptr(), value.as_ptr()) };
        assert_eq!(code, 0, "{fault}");
    }

    /// How many calls of a function have failed by request.
    pub(crate) fn struck(&self, call: &str) -> u64 {
        type Get = unsafe extern "C" fn(*const c_char, *mut u64) -> u32;
        let (call, mut count) = (CString::new(call).unwrap(), 0);
        // SAFETY: the emulated driver has this export, which takes a text and a place for a number.
        let code = unsafe { self.0.get::<Get>(b"cuEmulatorFaults").unwrap()(call.as_ptr(), &raw mut count) };
        assert_eq!(code, 0);
        count
    }
}
