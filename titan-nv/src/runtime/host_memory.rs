//! Host memory of a caller, pinned so that the device copies from it while the program goes on.

use super::Handle;
use super::context::Context;
use super::error::DriverError;
use super::sys::CU_MEMHOSTALLOC_PORTABLE;
use std::ptr;

/// Pinned host memory, filled with zeros when it is made. It is freed when it is dropped: whoever copies from it keeps it until the copy has
/// ended.
#[derive(Debug)]
pub struct HostMemory {
    context: &'static Context,
    start: Handle<u8>,
    bytes: usize,
}

impl HostMemory {
    /// So many zero bytes, at an address that is a multiple of a page's size.
    ///
    /// # Errors
    /// If the host has no memory that could be pinned, or the driver fails.
    pub fn new(context: &'static Context, bytes: usize) -> Result<HostMemory, DriverError> {
        let calls = context.calls;
        let _entered = context.enter()?;
        let mut host = ptr::null_mut();
        // SAFETY: `host` is writable storage for a pointer.
        let code = unsafe { (calls.cuMemHostAlloc)(&raw mut host, bytes.max(1), CU_MEMHOSTALLOC_PORTABLE) };
        calls.check("cuMemHostAlloc", code)?;
        let start: *mut u8 = host.cast();
        // SAFETY: it was just allocated with at least this size.
        unsafe { start.write_bytes(0, bytes) };
        Ok(HostMemory { context, start: Handle(start), bytes })
    }

    /// The number of bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The first byte. All bytes are initialized, and are this value's alone.
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.start.0
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: the memory is this value's, and no copy from it runs any more, as the type says.
            let _freed = unsafe { (self.context.calls.cuMemFreeHost)(self.start.0.cast()) };
        }
    }
}
