//! Host memory that the device reads and writes, from a pool: kernels leave their reports there.

use super::context::Context;
use super::error::DriverError;
use super::sys::{CU_MEMHOSTALLOC_DEVICEMAP, CU_MEMHOSTALLOC_PORTABLE};
use super::{Handle, lock};
use std::ptr;

/// A block of the pool.
#[derive(Debug)]
pub(super) struct Block {
    host: Handle<u32>,
    device: u64,
    words: usize,
}

/// 32-bit words in host memory that the device can access. They return to the pool with [`Pinned::recycle`]; if
/// they are dropped instead, they are never used again, because a kernel may still write them.
#[derive(Debug)]
pub struct Pinned {
    context: &'static Context,
    block: Block,
}

impl Pinned {
    /// Allocates words with arbitrary contents.
    ///
    /// # Errors
    /// If the host has no memory that could be pinned, or the driver fails.
    pub fn new(context: &'static Context, words: usize) -> Result<Pinned, DriverError> {
        let mut pool = lock(&context.pinned);
        if let Some(at) = pool.iter().position(|b| b.words == words) {
            return Ok(Pinned { context, block: pool.swap_remove(at) });
        }
        drop(pool);
        let calls = context.calls;
        let _entered = context.enter()?;
        let mut host = ptr::null_mut();
        let flags = CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE;
        // SAFETY: `host` is writable storage for a pointer. The memory is never freed once it has been given out.
        let code = unsafe { (calls.cuMemHostAlloc)(&raw mut host, 4 * words.max(1), flags) };
        calls.check("cuMemHostAlloc", code)?;
        let mut device = 0;
        // SAFETY: `device` is writable storage for an address, and `host` was allocated for the device; 0 are the only flags.
        let code = unsafe { (calls.cuMemHostGetDevicePointer_v2)(&raw mut device, host, 0) };
        if let Err(error) = calls.check("cuMemHostGetDevicePointer", code) {
            // SAFETY: it was just allocated, and there is no other pointer to it.
            let _freed = unsafe { (calls.cuMemFreeHost)(host) };
            return Err(error);
        }
        Ok(Pinned { context, block: Block { host: Handle(host.cast()), device, words } })
    }

    /// The device address of the words.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.block.device
    }

    /// Writes words from the first one on, as many as fit. Must not be called while work uses them.
    pub fn write(&mut self, words: &[u32]) {
        for (i, word) in words.iter().take(self.block.words).enumerate() {
            // SAFETY: the pointer is aligned to a page and has room for `words` words; volatile, because a device has
            // written them, and will read them.
            unsafe { self.block.host.0.add(i).write_volatile(*word) };
        }
    }

    /// The first `count` words, or all if there are fewer. Must not be called while work uses them.
    #[must_use]
    pub fn read(&self, count: usize) -> Vec<u32> {
        // SAFETY: as in `write`. The bytes are initialized: any content is a number.
        let word = |i| unsafe { self.block.host.0.add(i).read_volatile() };
        (0..count.min(self.block.words)).map(word).collect()
    }

    /// Returns the words to the pool, after the work that used them has ended.
    pub fn recycle(self) {
        let Pinned { context, block } = self;
        lock(&context.pinned).push(block);
    }
}
