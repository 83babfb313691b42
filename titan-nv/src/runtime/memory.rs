//! Device memory, allocated and freed in stream order.

use super::context::Context;
use super::error::{DriverError, Kind};
use super::event::{Event, Waiting};
use super::host_memory::HostMemory;
use super::stream::Stream;
use super::sys::Evt;
use super::{Handle, lock};
use std::ffi::c_void;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Device memory. Its bytes belong to the device, not to Rust: concurrent work on them is never
/// undefined behaviour of the program, only of the data.
#[derive(Debug)]
pub struct Memory {
    context: &'static Context,
    address: u64,
    bytes: usize,
    origin: Origin,
    /// Work that may still use the memory when it is dropped.
    uses: Mutex<Vec<Arc<Event>>>,
}

/// The way in which the memory is freed.
#[derive(Debug)]
enum Origin {
    /// Freed to the pool, in stream order.
    Pool,
    /// Freed by the driver, which waits for the whole device.
    Device,
    /// Freed by foreign code, whose stream waits for all work on it.
    Foreign(Option<Follower>),
    /// Freed by its owner, who is dropped after all work on it; `None` only while this is dropped.
    Kept(Option<Owner>),
}

/// What keeps memory of others.
struct Owner(#[expect(dead_code, reason = "kept to be dropped")] Box<dyn Send + Sync>);

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owner")
    }
}

/// The stream on which foreign code uses memory, and how its other streams are informed of the work.
#[derive(Debug)]
pub struct Follower {
    stream: Stream,
    /// An event of the foreign code, to be recorded after each wait.
    event: Option<Handle<Evt>>,
}

impl Follower {
    /// A stream of foreign code, which must wait for all work on the memory.
    #[must_use]
    pub fn new(stream: Stream) -> Follower {
        Follower { stream, event: None }
    }

    /// Also records this `CUevent` after each wait of the stream.
    ///
    /// # Safety
    /// It must be an event of the stream's context, and exist whenever [`Follower::follow`] is called.
    #[must_use]
    pub unsafe fn recording(self, event: *mut c_void) -> Follower {
        Follower { event: Some(Handle(event.cast())), ..self }
    }

    /// The point after all work issued to the stream so far.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn mark(&self) -> Result<Event, DriverError> {
        self.stream.mark(Waiting::Spins)
    }

    /// Makes later work of the stream wait for the event, and notifies its observers.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn follow(&self, event: &Event) -> Result<(), DriverError> {
        self.stream.follow(event)?;
        let Some(raw) = self.event else { return Ok(()) };
        let context = self.stream.context();
        let _entered = context.enter()?;
        // SAFETY: an event of the stream's context, which exists, as `recording` asks for.
        let code = unsafe { (context.calls.cuEventRecord)(raw.0, self.stream.raw()) };
        context.calls.check("cuEventRecord", code)
    }
}

impl Memory {
    /// Allocates `bytes` bytes, zeroed if `zeroed`; returns them with the point after which they may be used.
    ///
    /// # Errors
    /// If there is not enough, or the driver fails.
    pub fn new(context: &'static Context, bytes: usize, zeroed: bool) -> Result<(Memory, Event), DriverError> {
        let _entered = context.enter()?;
        context.free_deferred(false);
        let (address, origin) = match allocate(context, bytes.max(1)) {
            Err(error) if error.kind() == Kind::OutOfMemory => {
                context.reclaim();
                allocate(context, bytes.max(1))?
            }
            other => other?,
        };
        let stream = &context.streams.allocate;
        let zeros = || {
            // SAFETY: the memory has this many bytes, and work of this stream may use it.
            let code = unsafe { (context.calls.cuMemsetD8Async)(address, 0, bytes, stream.raw()) };
            context.calls.check("cuMemsetD8Async", code)
        };
        let zeroed = if zeroed && bytes > 0 { zeros() } else { Ok(()) };
        match zeroed.and_then(|()| Event::recorded(context, stream, Waiting::Spins)) {
            Ok(ready) => Ok((Memory { context, address, bytes, origin, uses: Mutex::default() }, ready)),
            Err(error) => {
                // The work that was started on the stream has then ended. If that cannot be known, the memory is not freed.
                if stream.wait(context).is_ok() {
                    context.defer(address, Vec::new());
                }
                Err(error)
            }
        }
    }

    /// Memory that foreign code owns. With `follower`, later work of that stream waits for all work that uses the memory.
    ///
    /// # Safety
    /// The `bytes` bytes at `address` must be memory of the context's device until the work that uses the result has ended;
    /// with `follower`, until its stream has reached that work.
    #[must_use]
    pub unsafe fn foreign(context: &'static Context, address: u64, bytes: usize, follower: Option<Follower>) -> Memory {
        Memory { context, address, bytes, origin: Origin::Foreign(follower), uses: Mutex::default() }
    }

    /// Memory that `owner` keeps, which is dropped when the last work that uses the memory has ended: the thread that drops the memory waits
    /// for that work.
    ///
    /// # Safety
    /// The `bytes` bytes at `address` must be memory of the context's device until the owner is dropped.
    #[must_use]
    pub unsafe fn kept(context: &'static Context, address: u64, bytes: usize, owner: Box<dyn Send + Sync>) -> Memory {
        Memory { context, address, bytes, origin: Origin::Kept(Some(Owner(owner))), uses: Mutex::default() }
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

    /// The stream whose later work must wait for uses of the memory.
    #[must_use]
    pub fn follower(&self) -> Option<&Follower> {
        match &self.origin {
            Origin::Foreign(follower) => follower.as_ref(),
            Origin::Pool | Origin::Device | Origin::Kept(_) => None,
        }
    }

    /// Registers work that uses the memory and may still run when it is dropped.
    pub fn used_until(&self, event: Arc<Event>) {
        lock(&self.uses).push(event);
    }

    /// Copies bytes to the memory, and blocks until the copy has ended. Waits for no other work.
    ///
    /// # Errors
    /// If they do not fit, or the driver fails.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), DriverError> {
        self.check_range("cuMemcpyHtoDAsync", offset, bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        let (context, stream) = (self.context, self.context.streams.copy.raw());
        let _entered = context.enter()?;
        let source = bytes.as_ptr().cast::<c_void>();
        // SAFETY: the range lies inside of the memory, and `bytes` is borrowed until the copy has ended, below. If that
        // cannot be known, no other work of the context will be, and the driver only reads the bytes.
        let code = unsafe { (context.calls.cuMemcpyHtoDAsync_v2)(self.address(offset), source, bytes.len(), stream) };
        context.calls.check("cuMemcpyHtoDAsync", code)?;
        context.streams.copy.wait(context)
    }

    /// Overwrites bytes with this one, and blocks until that has ended. Waits for no other work.
    ///
    /// # Errors
    /// If there are fewer, or the driver fails.
    pub fn fill(&self, offset: usize, bytes: usize, value: u8) -> Result<(), DriverError> {
        self.check_range("cuMemsetD8Async", offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let (context, stream) = (self.context, self.context.streams.copy.raw());
        let _entered = context.enter()?;
        // SAFETY: the range lies inside of the memory, whose bytes belong to the device.
        let code = unsafe { (context.calls.cuMemsetD8Async)(self.address(offset), value, bytes, stream) };
        context.calls.check("cuMemsetD8Async", code)?;
        context.streams.copy.wait(context)
    }

    /// Overwrites the first bytes with this one, in the order of a stream of the context. Waits for nothing.
    ///
    /// # Errors
    /// If there are fewer, or the driver refuses.
    pub fn fill_in(&self, stream: &Stream, bytes: usize, value: u8) -> Result<(), DriverError> {
        self.check_range("cuMemsetD8Async", 0, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let _entered = self.context.enter()?;
        // SAFETY: the range lies inside of the memory, whose bytes belong to the device. When it is dropped, it is freed after its uses.
        let code = unsafe { (self.context.calls.cuMemsetD8Async)(self.address, value, bytes, stream.raw()) };
        self.context.calls.check("cuMemsetD8Async", code)
    }

    /// Copies pinned memory to the memory, in the order of a stream of the context. Waits for nothing.
    ///
    /// # Errors
    /// If it does not fit, or the driver refuses.
    ///
    /// # Safety
    /// The pinned memory must not be written or dropped until the copy has ended.
    pub unsafe fn write_in(&self, stream: &Stream, offset: usize, from: &HostMemory) -> Result<(), DriverError> {
        self.check_range("cuMemcpyHtoDAsync", offset, from.len())?;
        if from.is_empty() {
            return Ok(());
        }
        let _entered = self.context.enter()?;
        let (target, source) = (self.address(offset), from.start().cast::<c_void>());
        // SAFETY: the range lies inside of the memory; the caller keeps the pinned one.
        let code = unsafe { (self.context.calls.cuMemcpyHtoDAsync_v2)(target, source, from.len(), stream.raw()) };
        self.context.calls.check("cuMemcpyHtoDAsync", code)
    }

    /// Fills `out` with bytes from the memory, and blocks until the copy has ended. Waits for no other work.
    ///
    /// # Errors
    /// If there are fewer, or the driver fails; then `out` may be empty, because the driver may be writing it still.
    pub fn read(&self, offset: usize, out: &mut Vec<u8>) -> Result<(), DriverError> {
        self.check_range("cuMemcpyDtoHAsync", offset, out.len())?;
        if out.is_empty() {
            return Ok(());
        }
        let (context, stream) = (self.context, self.context.streams.copy.raw());
        let _entered = context.enter()?;
        let target = out.as_mut_ptr().cast::<c_void>();
        // SAFETY: the range lies inside of the memory, and `out` is borrowed until the copy has ended, or never freed.
        let code = unsafe { (context.calls.cuMemcpyDtoHAsync_v2)(target, self.address(offset), out.len(), stream) };
        context.calls.check("cuMemcpyDtoHAsync", code)?;
        let ended = context.streams.copy.wait(context);
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

/// Allocates from the pool if there is one. The context must be current.
fn allocate(context: &'static Context, bytes: usize) -> Result<(u64, Origin), DriverError> {
    let calls = context.calls;
    let mut address = 0;
    if context.pool.is_some() {
        // SAFETY: `address` is writable storage for an address, and the stream is the context's.
        let code = unsafe { (calls.cuMemAllocAsync)(&raw mut address, bytes, context.streams.allocate.raw()) };
        calls.check("cuMemAllocAsync", code)?;
        return Ok((address, Origin::Pool));
    }
    // SAFETY: `address` is writable storage for an address.
    calls.check("cuMemAlloc", unsafe { (calls.cuMemAlloc_v2)(&raw mut address, bytes) })?;
    Ok((address, Origin::Device))
}

impl Drop for Memory {
    fn drop(&mut self) {
        let uses = std::mem::take(&mut *lock(&self.uses));
        let context = self.context;
        match &mut self.origin {
            Origin::Foreign(_) => {}
            Origin::Kept(owner) => {
                let owner = owner.take();
                // An error means that the context has ended, and its work with it, or that it is abandoned: then the memory is not freed.
                let over = uses.iter().all(|event| event.wait().is_ok() || !context.is_abandoned());
                if !over {
                    std::mem::forget(owner);
                }
            }
            Origin::Pool if free_after(context, self.address, &uses).is_ok() => {}
            Origin::Pool | Origin::Device => context.defer(self.address, uses),
        }
    }
}

/// Frees memory of the pool in stream order, after `uses`.
fn free_after(context: &Context, address: u64, uses: &[Arc<Event>]) -> Result<(), DriverError> {
    let _entered = context.enter()?;
    let stream = &context.streams.free;
    uses.iter().try_for_each(|event| stream.follow(context.calls, event))?;
    // SAFETY: the memory came from the pool, no handle to it is left, and the stream waits for all work that
    // uses it.
    context.calls.check("cuMemFreeAsync", unsafe { (context.calls.cuMemFreeAsync)(address, stream.raw()) })
}
