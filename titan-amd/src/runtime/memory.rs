//! Device memory. The next allocation frees it, once the work that may use it has ended.

use super::context::{Context, pointer};
use super::error::{DriverError, Kind};
use super::event::{Event, Waiting};
use super::host_memory::HostMemory;
use super::lock;
use super::stream::Stream;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex};

/// Device memory. Its bytes belong to the device, not to Rust: concurrent work on them is never
/// undefined behaviour of the program, only of the data.
#[derive(Debug)]
pub struct Memory {
    context: &'static Context,
    address: u64,
    bytes: usize,
    /// Work that may still use the memory when it is dropped.
    uses: Mutex<Vec<Arc<Event>>>,
}

impl Memory {
    /// Allocates `bytes` bytes, zeroed if `zeroed`; returns them with the point after which they may be used, unless that is now.
    ///
    /// # Errors
    /// If there is not enough, or the runtime fails.
    pub fn new(context: &'static Context, bytes: usize, zeroed: bool) -> Result<(Memory, Option<Event>), DriverError> {
        let _entered = context.enter()?;
        context.free_deferred(false);
        let address = match allocate(context, bytes.max(1)) {
            Err(error) if error.kind() == Kind::OutOfMemory => {
                context.free_deferred(true);
                allocate(context, bytes.max(1))?
            }
            other => other?,
        };
        let memory = Memory { context, address, bytes, uses: Mutex::default() };
        if !zeroed || bytes == 0 {
            return Ok((memory, None));
        }
        let stream = &context.copies;
        // SAFETY: the memory has this many bytes, and there is no other pointer to it.
        let code = unsafe { (context.calls.hipMemsetD8Async)(pointer(address), 0, bytes, stream.raw()) };
        context.calls.check("hipMemsetD8Async", code)?;
        match Event::recorded(context, stream, Waiting::Spins) {
            Ok(ready) => Ok((memory, Some(ready))),
            Err(error) => {
                // The fill may still be running: the memory is not freed.
                std::mem::forget(memory);
                Err(error)
            }
        }
    }

    /// The context whose device's memory it is.
    #[must_use]
    pub fn context(&self) -> &'static Context {
        self.context
    }

    /// The device address of a byte of the memory.
    #[must_use]
    pub fn address(&self, offset: usize) -> u64 {
        self.address.wrapping_add(offset as u64)
    }

    /// Records that work up to this point may use the memory, even when its last handle is gone.
    pub fn used_until(&self, event: Arc<Event>) {
        lock(&self.uses).push(event);
    }

    /// Copies bytes to the memory, and blocks until the copy has ended. Waits for no other work.
    ///
    /// # Errors
    /// If they do not fit, or the runtime fails.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), DriverError> {
        self.check_range("hipMemcpyHtoDAsync", offset, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let (context, stream) = (self.context, self.context.copies.raw());
        let _entered = context.enter()?;
        let source = bytes.as_ptr().cast::<c_void>();
        let target = pointer(self.address(offset));
        // SAFETY: the range lies inside of the memory, and `bytes` is borrowed until the copy has ended, below. If that
        // cannot be known, no other work of the device will be, and the runtime only reads the bytes.
        let code = unsafe { (context.calls.hipMemcpyHtoDAsync)(target, source, bytes.len(), stream) };
        context.calls.check("hipMemcpyHtoDAsync", code)?;
        context.copies.wait(context)
    }

    /// Overwrites bytes with this one, and blocks until that has ended. Waits for no other work.
    ///
    /// # Errors
    /// If there are fewer, or the runtime fails.
    pub fn fill(&self, offset: usize, bytes: usize, value: u8) -> Result<(), DriverError> {
        self.check_range("hipMemsetD8Async", offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let (context, stream) = (self.context, self.context.copies.raw());
        let _entered = context.enter()?;
        let target = pointer(self.address(offset));
        // SAFETY: the range lies inside of the memory, whose bytes belong to the device.
        let code = unsafe { (context.calls.hipMemsetD8Async)(target, value, bytes, stream) };
        context.calls.check("hipMemsetD8Async", code)?;
        context.copies.wait(context)
    }

    /// Overwrites the first bytes with this one, in the order of a stream of the device. Waits for nothing.
    ///
    /// # Errors
    /// If there are fewer, or the runtime refuses.
    pub fn fill_in(&self, stream: &Stream, bytes: usize, value: u8) -> Result<(), DriverError> {
        self.check_range("hipMemsetD8Async", 0, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let _entered = self.context.enter()?;
        // SAFETY: the range lies inside of the memory, whose bytes belong to the device. When it is dropped, it is freed after its uses.
        let code =
            unsafe { (self.context.calls.hipMemsetD8Async)(pointer(self.address(0)), value, bytes, stream.raw()) };
        self.context.calls.check("hipMemsetD8Async", code)
    }

    /// Copies pinned memory to the memory, in the order of a stream of the device. Waits for nothing.
    ///
    /// # Errors
    /// If it does not fit, or the runtime refuses.
    ///
    /// # Safety
    /// The pinned memory must not be written or dropped until the copy has ended.
    pub unsafe fn write_in(&self, stream: &Stream, offset: usize, from: &HostMemory) -> Result<(), DriverError> {
        self.check_range("hipMemcpyHtoDAsync", offset, from.len())?;
        if from.is_empty() {
            return Ok(());
        }
        let _entered = self.context.enter()?;
        let (target, source) = (pointer(self.address(offset)), from.start().cast::<c_void>());
        // SAFETY: the range lies inside of the memory; the caller keeps the pinned one.
        let code = unsafe { (self.context.calls.hipMemcpyHtoDAsync)(target, source, from.len(), stream.raw()) };
        self.context.calls.check("hipMemcpyHtoDAsync", code)
    }

    /// Fills `out` with bytes from the memory, and blocks until the copy has ended. Waits for no other work.
    ///
    /// # Errors
    /// If there are fewer, or the runtime fails; then `out` may be empty, because the runtime may be writing it still.
    pub fn read(&self, offset: usize, out: &mut Vec<u8>) -> Result<(), DriverError> {
        self.check_range("hipMemcpyDtoHAsync", offset, out.len())?;
        if out.is_empty() {
            return Ok(());
        }
        let (context, stream) = (self.context, self.context.copies.raw());
        let _entered = context.enter()?;
        let (target, source) = (out.as_mut_ptr().cast::<c_void>(), pointer(self.address(offset)));
        // SAFETY: the range lies inside of the memory, and `out` is borrowed until the copy has ended, or never freed.
        let code = unsafe { (context.calls.hipMemcpyDtoHAsync)(target, source, out.len(), stream) };
        context.calls.check("hipMemcpyDtoHAsync", code)?;
        let ended = context.copies.wait(context);
        if ended.is_err() {
            std::mem::forget(std::mem::take(out));
        }
        ended
    }

    fn check_range(&self, call: &'static str, offset: usize, len: usize) -> Result<(), DriverError> {
        let fits = offset.checked_add(len).is_some_and(|end| end <= self.bytes);
        self.context.calls.check(call, u32::from(!fits))
    }
}

/// Allocates device memory. The device must be the thread's current one.
fn allocate(context: &'static Context, bytes: usize) -> Result<u64, DriverError> {
    let mut address = ptr::null_mut();
    // SAFETY: `address` is writable storage for an address.
    context.calls.check("hipMalloc", unsafe { (context.calls.hipMalloc)(&raw mut address, bytes) })?;
    Ok(address.addr() as u64)
}

impl Drop for Memory {
    fn drop(&mut self) {
        let uses = std::mem::take(&mut *lock(&self.uses));
        self.context.defer(self.address, uses);
    }
}
