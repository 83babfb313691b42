//! The primary context of a device: the state that everything that runs on the device shares.

use super::driver::{Calls, Device, Driver};
use super::error::{DriverError, Kind};
use super::event::Event;
use super::stream::RawStream;
use super::sys::{self, CUcontext, Ctx, Evt, Pool};
use super::table::Code;
use super::{Handle, lock};
use std::ffi::c_void;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// The primary context of a device, kept until the process ends.
#[derive(Debug)]
pub struct Context {
    pub(super) calls: &'static Calls,
    device: &'static Device,
    raw: Handle<Ctx>,
    pub(super) streams: Streams,
    /// Unused events, by [`super::Waiting`].
    pub(super) events: [Mutex<Vec<Handle<Evt>>>; 3],
    /// Unused pinned memory, by its size in words.
    pub(super) pinned: Mutex<Vec<super::pinned::Block>>,
    /// The pool from which memory is allocated in stream order, if the device has one.
    pub(super) pool: Option<Handle<Pool>>,
    /// Memory to free when its uses have ended, where no stream can free it.
    deferred: Mutex<Vec<(u64, Vec<Arc<Event>>)>>,
    /// The error after which it is unknown which work has ended, if one has occurred.
    given_up: OnceLock<DriverError>,
}

/// `CUDA_ERROR_NOT_READY`, which is not a failure.
pub(super) const NOT_READY: Code = 600;

/// The time that a thread sleeps between two queries.
const PAUSE: Duration = Duration::from_micros(100);

/// The context's own streams.
///
/// Memory is freed on another stream than the one it is allocated on: freeing waits for the last uses, and a new allocation
/// must not.
#[derive(Debug)]
pub(super) struct Streams {
    pub(super) allocate: RawStream,
    pub(super) free: RawStream,
    pub(super) copy: RawStream,
}

/// Makes a context current on this thread; when it is dropped, the earlier one becomes current again.
#[derive(Debug)]
pub(super) struct Entered {
    calls: &'static Calls,
    earlier: CUcontext,
}

/// The device and context that an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The device, in the driver's order.
    pub ordinal: u32,
    /// The first address of the allocation, and its size in bytes, if the driver provides them.
    pub range: Option<(u64, usize)>,
}

impl Context {
    pub(super) fn new(driver: &'static Driver, device: &'static Device) -> Result<Context, DriverError> {
        let calls = driver.calls();
        let raw = device.retained.get_or_try(|| {
            let mut raw: CUcontext = ptr::null_mut();
            // SAFETY: `raw` is writable storage for a context, and the device one of the driver's. It is never released: contexts
            // live as long as the process.
            let code = unsafe { (calls.cuDevicePrimaryCtxRetain)(&raw mut raw, device.raw) };
            calls.check("cuDevicePrimaryCtxRetain", code).map(|()| Handle(raw))
        })?;
        let _entered = enter(calls, raw.0)?;
        let pool = if device.properties.memory_pools { Some(default_pool(calls, device)?) } else { None };
        Ok(Context {
            calls,
            device,
            raw: *raw,
            streams: Streams::new(calls)?,
            events: Default::default(),
            pinned: Mutex::default(),
            pool,
            deferred: Mutex::default(),
            given_up: OnceLock::new(),
        })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &'static Device {
        self.device
    }

    /// The handle of the context, a `CUcontext`, for code that calls the driver directly.
    #[must_use]
    pub fn raw(&self) -> *mut c_void {
        self.raw.0.cast()
    }

    /// Makes the context current until the result is dropped.
    pub(super) fn enter(&self) -> Result<Entered, DriverError> {
        match self.given_up.get() {
            Some(error) => Err(error.clone()),
            None => enter(self.calls, self.raw.0),
        }
    }

    /// Blocks until some work has ended: with `synchronize`, or else by polling with `query`. An error means that
    /// the context has ended, or is abandoned: it is unknown when the work ends.
    pub(super) fn until_over(
        &self,
        (call, synchronize): (&'static str, impl FnOnce() -> Code),
        (other, query): (&'static str, impl Fn() -> Code),
    ) -> Result<(), DriverError> {
        let lasts = |error: &DriverError| !error.ends_context();
        let entered = self.enter().or_else(|error| if lasts(&error) { self.enter() } else { Err(error) });
        let _entered = entered.map_err(|error| self.give_up(error))?;
        match self.calls.check(call, synchronize()) {
            Err(error) if lasts(&error) => {}
            outcome => return outcome,
        }
        loop {
            match query() {
                NOT_READY => std::thread::sleep(PAUSE),
                code => return self.calls.check(other, code).map_err(|error| self.give_up(error)),
            }
        }
    }

    /// Abandons the context: every later call fails with this error, and nothing is freed, because work may run that cannot be waited for.
    fn give_up(&self, error: DriverError) -> DriverError {
        self.given_up.get_or_init(|| error).clone()
    }

    /// Whether work may run that cannot be waited for.
    pub(super) fn is_abandoned(&self) -> bool {
        self.given_up.get().is_some_and(|error| !error.ends_context())
    }

    /// Blocks until all work of the context has ended, also that of other code.
    ///
    /// # Errors
    /// If work failed, so that the context has ended; or if the driver fails.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        let _entered = self.enter()?;
        // SAFETY: a context is current.
        self.calls.check("cuCtxSynchronize", unsafe { (self.calls.cuCtxSynchronize)() })
    }

    /// The number of bytes of memory that are free, and their total.
    ///
    /// # Errors
    /// If the query fails.
    pub fn memory(&self) -> Result<(usize, usize), DriverError> {
        let _entered = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both arguments are writable storage for sizes.
        self.calls.check("cuMemGetInfo", unsafe { (self.calls.cuMemGetInfo_v2)(&raw mut free, &raw mut total) })?;
        Ok((free, total))
    }

    /// The number of bytes that the device's pool holds, in use or kept for reuse; `None` if there is no pool.
    ///
    /// # Errors
    /// If the query fails.
    pub fn reserved(&self) -> Result<Option<u64>, DriverError> {
        let Some(pool) = self.pool else { return Ok(None) };
        let _entered = self.enter()?;
        let (mut bytes, attribute) = (0u64, sys::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
        // SAFETY: the attribute is a `cuuint64_t`, for which `bytes` is writable storage, and the pool is the device's.
        let code = unsafe { (self.calls.cuMemPoolGetAttribute)(pool.0, attribute, (&raw mut bytes).cast::<c_void>()) };
        self.calls.check("cuMemPoolGetAttribute", code).map(|()| Some(bytes))
    }

    /// Returns memory that is kept for reuse to the system, after the work that uses it has ended.
    ///
    /// # Errors
    /// If the context has ended, or is abandoned.
    pub fn trim(&self) -> Result<(), DriverError> {
        let _entered = self.enter()?;
        self.reclaim();
        Ok(())
    }

    /// The device and context that an address belongs to; `None` if the driver does not know it as device memory.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn owner(&self, address: u64) -> Result<Option<Owner>, DriverError> {
        let _entered = self.enter()?;
        let mut ordinal = 0i32;
        // SAFETY: the attribute is an int, and `ordinal` is writable storage for one.
        match unsafe { self.attribute(sys::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address, &raw mut ordinal) } {
            Ok(()) => {}
            Err(error) if error.kind() == Kind::Other => return Ok(None),
            Err(error) => return Err(error),
        }
        let (mut start, mut bytes) = (0u64, 0usize);
        // SAFETY: the attributes are an address and a size, and these are writable storage for them.
        let range = unsafe {
            self.attribute(sys::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address, &raw mut start)
                .and_then(|()| self.attribute(sys::CU_POINTER_ATTRIBUTE_RANGE_SIZE, address, &raw mut bytes))
        };
        // Managed memory has no device of its own before it is used.
        Ok(u32::try_from(ordinal).ok().map(|ordinal| Owner { ordinal, range: range.ok().map(|()| (start, bytes)) }))
    }

    /// # Safety
    /// `place` must be writable, and of the type that the attribute has.
    unsafe fn attribute<T>(&self, attribute: u32, address: u64, place: *mut T) -> Result<(), DriverError> {
        // SAFETY: the caller's; any number may be asked for as an address.
        let code = unsafe { (self.calls.cuPointerGetAttribute)(place.cast::<c_void>(), attribute, address) };
        self.calls.check("cuPointerGetAttribute", code)
    }

    /// Frees memory that is waiting to be freed or is kept for reuse, and blocks until that is done.
    pub(super) fn reclaim(&self) {
        self.free_deferred(true);
        // Errors are ignored here: the allocation that is tried next will report them.
        let _ended = self.streams.free.wait(self);
        if let Some(pool) = self.pool {
            // SAFETY: the pool is the device's.
            let _trimmed = unsafe { (self.calls.cuMemPoolTrimTo)(pool.0, 0) };
        }
    }

    /// Registers memory that the next allocation frees, once `uses` have ended.
    pub(super) fn defer(&self, address: u64, uses: Vec<Arc<Event>>) {
        lock(&self.deferred).push((address, uses));
    }

    /// Frees memory whose uses have ended, or, with `wait`, all of it. The context must be current.
    pub(super) fn free_deferred(&self, wait: bool) {
        lock(&self.deferred).retain(|(address, uses)| {
            let over = uses.iter().all(|e| if wait { e.wait().is_ok() } else { e.is_over().unwrap_or(false) });
            // SAFETY: no handle to the memory is left, and all work that used it has ended.
            let free = || self.calls.check("cuMemFree", unsafe { (self.calls.cuMemFree_v2)(*address) });
            !(over && free().is_ok())
        });
    }
}

impl Streams {
    /// Creates the streams, or none of them. The context must be current.
    fn new(calls: &'static Calls) -> Result<Streams, DriverError> {
        let allocate = RawStream::new(calls)?;
        let free = match RawStream::new(calls) {
            Ok(free) => free,
            Err(error) => {
                allocate.destroy(calls);
                return Err(error);
            }
        };
        match RawStream::new(calls) {
            Ok(copy) => Ok(Streams { allocate, free, copy }),
            Err(error) => {
                allocate.destroy(calls);
                free.destroy(calls);
                Err(error)
            }
        }
    }
}

fn enter(calls: &'static Calls, raw: CUcontext) -> Result<Entered, DriverError> {
    let mut earlier: CUcontext = ptr::null_mut();
    // SAFETY: `earlier` is writable storage for a context.
    calls.check("cuCtxGetCurrent", unsafe { (calls.cuCtxGetCurrent)(&raw mut earlier) })?;
    if earlier == raw {
        return Ok(Entered { calls, earlier: ptr::null_mut() });
    }
    // SAFETY: `raw` was retained, and is never released.
    calls.check("cuCtxSetCurrent", unsafe { (calls.cuCtxSetCurrent)(raw) })?;
    Ok(Entered { calls, earlier })
}

impl Drop for Entered {
    fn drop(&mut self) {
        // A thread that had no context keeps this one, because it will need it again.
        if !self.earlier.is_null() {
            // SAFETY: it was current on this thread a moment ago, and nothing here destroys contexts.
            let _set = unsafe { (self.calls.cuCtxSetCurrent)(self.earlier) };
        }
    }
}

/// The device's pool, set to keep freed memory, because allocating from the system again would synchronize.
fn default_pool(calls: &Calls, device: &Device) -> Result<Handle<Pool>, DriverError> {
    let mut pool = ptr::null_mut();
    // SAFETY: `pool` is writable storage for a pool, and the device one that has pools.
    let code = unsafe { (calls.cuDeviceGetDefaultMemPool)(&raw mut pool, device.raw) };
    calls.check("cuDeviceGetDefaultMemPool", code)?;
    let mut threshold = u64::MAX;
    let attribute = sys::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: the attribute is a `cuuint64_t`, which `threshold` is; the driver copies it.
    let code = unsafe { (calls.cuMemPoolSetAttribute)(pool, attribute, (&raw mut threshold).cast::<c_void>()) };
    calls.check("cuMemPoolSetAttribute", code)?;
    Ok(Handle(pool))
}
