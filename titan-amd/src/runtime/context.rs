//! The state that the process shares on a device: a stream for copies, unused events, memory that waits to be freed.

use super::driver::{Calls, Device, Driver};
use super::error::DriverError;
use super::event::Event;
use super::stream::RawStream;
use super::sys::{DevicePtr, Evt};
use super::table::Code;
use super::{Handle, lock};
use std::ffi::c_int;
use std::ptr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

/// A device as the process uses it, kept until the process ends.
#[derive(Debug)]
pub struct Context {
    pub(super) calls: &'static Calls,
    device: &'static Device,
    /// The stream of copies and fills, each of which is waited for, so that no other work delays them.
    pub(super) copies: RawStream,
    /// Unused events, by [`super::Waiting`].
    pub(super) events: [Mutex<Vec<Handle<Evt>>>; 3],
    /// Memory to free when its uses have ended.
    deferred: Mutex<Vec<(u64, Vec<Arc<Event>>)>>,
    /// The error after which it is unknown which work has ended, if one has occurred.
    given_up: OnceLock<DriverError>,
}

/// `hipErrorNotReady`, which is not a failure.
pub(super) const NOT_READY: Code = 600;

/// The time that a thread sleeps between two queries.
const PAUSE: Duration = Duration::from_micros(100);

/// Makes the device the thread's current one; when it is dropped, the earlier one becomes current again.
#[derive(Debug)]
pub(super) struct Entered {
    calls: &'static Calls,
    earlier: Option<c_int>,
}

impl Context {
    pub(super) fn new(driver: &'static Driver, device: &'static Device) -> Result<Context, DriverError> {
        let calls = driver.calls();
        let _entered = enter(calls, device.raw)?;
        let copies = RawStream::new(calls)?;
        let (events, deferred) = (Default::default(), Mutex::default());
        Ok(Context { calls, device, copies, events, deferred, given_up: OnceLock::new() })
    }

    /// The device.
    #[must_use]
    pub fn device(&self) -> &'static Device {
        self.device
    }

    /// Makes the device the thread's current one until the result is dropped.
    pub(super) fn enter(&self) -> Result<Entered, DriverError> {
        match self.given_up.get() {
            Some(error) => Err(error.clone()),
            None => enter(self.calls, self.device.raw),
        }
    }

    /// Blocks until some work has ended: with `synchronize`, or else by polling with `query`. An error means that
    /// the device is lost, or is abandoned: it is unknown when the work ends.
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

    /// Abandons the device: every later call fails with this error, and nothing is freed, because work may run that cannot be waited for.
    fn give_up(&self, error: DriverError) -> DriverError {
        self.given_up.get_or_init(|| error).clone()
    }

    /// The number of bytes of memory that are free, and their total.
    ///
    /// # Errors
    /// If the query fails.
    pub fn memory(&self) -> Result<(usize, usize), DriverError> {
        let _entered = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both arguments are writable storage for sizes.
        self.calls.check("hipMemGetInfo", unsafe { (self.calls.hipMemGetInfo)(&raw mut free, &raw mut total) })?;
        Ok((free, total))
    }

    /// Frees memory that waits to be freed, after the work that uses it has ended.
    ///
    /// # Errors
    /// If the device is lost, or is abandoned.
    pub fn trim(&self) -> Result<(), DriverError> {
        let _entered = self.enter()?;
        self.free_deferred(true);
        Ok(())
    }

    /// Registers memory that the next allocation frees, once `uses` have ended.
    pub(super) fn defer(&self, address: u64, uses: Vec<Arc<Event>>) {
        lock(&self.deferred).push((address, uses));
    }

    /// Frees memory whose uses have ended, or, with `wait`, all of it. The device must be the thread's current one.
    pub(super) fn free_deferred(&self, wait: bool) {
        lock(&self.deferred).retain(|(address, uses)| {
            let over = uses.iter().all(|e| if wait { e.wait().is_ok() } else { e.is_over().unwrap_or(false) });
            // SAFETY: no handle to the memory is left, and all work that used it has ended.
            let free = || self.calls.check("hipFree", unsafe { (self.calls.hipFree)(pointer(*address)) });
            !(over && free().is_ok())
        });
    }
}

/// An address in the runtime's form. It is never dereferenced here.
pub(super) fn pointer(address: u64) -> DevicePtr {
    ptr::without_provenance_mut(usize::try_from(address).unwrap_or(0))
}

fn enter(calls: &'static Calls, raw: c_int) -> Result<Entered, DriverError> {
    let mut earlier = 0;
    // SAFETY: `earlier` is writable storage for an int.
    calls.check("hipGetDevice", unsafe { (calls.hipGetDevice)(&raw mut earlier) })?;
    if earlier == raw {
        return Ok(Entered { calls, earlier: None });
    }
    // SAFETY: takes a number.
    calls.check("hipSetDevice", unsafe { (calls.hipSetDevice)(raw) })?;
    Ok(Entered { calls, earlier: Some(earlier) })
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(earlier) = self.earlier {
            // SAFETY: takes a number.
            let _set = unsafe { (self.calls.hipSetDevice)(earlier) };
        }
    }
}
