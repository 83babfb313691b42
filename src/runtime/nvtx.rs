//! Ranges of NVIDIA's tools around launches, named by the kernel: NVTX, `nvtxRangePushA` and `nvtxRangePop`.
//!
//! The library is opened at the first launch. Without it, or without the feature `nvtx`, a range is nothing.

/// A range of this thread, until it is dropped.
#[must_use]
pub(crate) struct Range {
    #[cfg(feature = "nvtx")]
    pop: Option<loaded::Pop>,
}

/// A range of this name, from now on.
#[cfg_attr(not(feature = "nvtx"), expect(unused_variables, reason = "nothing is named then"))]
pub(crate) fn range(name: &str) -> Range {
    Range {
        #[cfg(feature = "nvtx")]
        pop: loaded::push(name),
    }
}

#[cfg(feature = "nvtx")]
impl Drop for Range {
    fn drop(&mut self) {
        if let Some(pop) = self.pop.take() {
            loaded::end(pop);
        }
    }
}

#[cfg(feature = "nvtx")]
mod loaded {
    use libloading::Library;
    use std::ffi::{CString, c_char, c_int};
    use std::sync::OnceLock;

    /// The names of the library; the first that exists is opened.
    const LIBRARIES: &[&str] =
        if cfg!(windows) { &["nvToolsExt64_1.dll"] } else { &["libnvToolsExt.so.1", "libnvToolsExt.so"] };

    type Push = unsafe extern "C" fn(*const c_char) -> c_int;
    pub(super) type Pop = unsafe extern "C" fn() -> c_int;

    /// The functions, if there is a library that has both.
    fn functions() -> Option<(Push, Pop)> {
        static FOUND: OnceLock<Option<(Push, Pop)>> = OnceLock::new();
        *FOUND.get_or_init(|| LIBRARIES.iter().find_map(|name| open(name)))
    }

    #[expect(unsafe_code, reason = "a library is opened, whose functions have no types")]
    fn open(name: &str) -> Option<(Push, Pop)> {
        // SAFETY: the initializers of the library of this name are made for programs that open it.
        let library = unsafe { Library::new(name) }.ok()?;
        // Never closed: its functions are called as long as the process lives.
        let library: &'static Library = Box::leak(Box::new(library));
        // SAFETY: the function has this type: NVTX, `nvToolsExt.h`.
        let push = *unsafe { library.get::<Push>(b"nvtxRangePushA") }.ok()?;
        // SAFETY: as above.
        let pop = *unsafe { library.get::<Pop>(b"nvtxRangePop") }.ok()?;
        Some((push, pop))
    }

    /// Begins a range; its end, if one has begun.
    #[expect(unsafe_code, reason = "a function of C")]
    pub(super) fn push(name: &str) -> Option<Pop> {
        let (push, pop) = functions()?;
        let name = CString::new(name).ok()?;
        // SAFETY: the text ends, and the function copies it.
        unsafe { push(name.as_ptr()) };
        Some(pop)
    }

    #[expect(unsafe_code, reason = "a function of C")]
    pub(super) fn end(pop: Pop) {
        // SAFETY: the function has no precondition; a range of this thread has begun, as a `Range` is a local variable of one call.
        unsafe { pop() };
    }
}
