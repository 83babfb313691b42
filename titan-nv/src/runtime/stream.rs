//! Streams: work that a device does in order, beside the calling thread.

use super::Handle;
use super::context::Context;
use super::driver::Calls;
use super::error::DriverError;
use super::event::{Event, Waiting};
use super::sys::{CU_STREAM_NON_BLOCKING, CUevent, CUstream, Str};
use std::ffi::c_void;
use std::{fmt, ptr};

/// A stream without its context, which must be current for each call.
#[derive(Debug)]
pub(super) struct RawStream(Handle<Str>);

impl RawStream {
    /// A stream that does not wait for the legacy default stream.
    pub(super) fn new(calls: &Calls) -> Result<RawStream, DriverError> {
        let mut raw: CUstream = ptr::null_mut();
        // SAFETY: `raw` is a place for a stream, and a context is current.
        calls.check("cuStreamCreate", unsafe { (calls.cuStreamCreate)(&raw mut raw, CU_STREAM_NON_BLOCKING) })?;
        Ok(RawStream(Handle(raw)))
    }

    pub(super) fn raw(&self) -> CUstream {
        self.0.0
    }

    /// Blocks until its work has ended.
    pub(super) fn wait(&self, calls: &Calls) -> Result<(), DriverError> {
        // SAFETY: the stream has not been destroyed.
        calls.check("cuStreamSynchronize", unsafe { (calls.cuStreamSynchronize)(self.raw()) })
    }

    /// Makes later work of the stream wait for the event.
    pub(super) fn follow(&self, calls: &Calls, event: CUevent) -> Result<(), DriverError> {
        // SAFETY: neither the stream nor the event has been destroyed; 0 are the default flags.
        calls.check("cuStreamWaitEvent", unsafe { (calls.cuStreamWaitEvent)(self.raw(), event, 0) })
    }
}

/// A stream of a context.
#[derive(Debug)]
pub struct Stream {
    context: &'static Context,
    stream: RawStream,
    keeper: Keeper,
}

/// What keeps a stream alive.
enum Keeper {
    /// This, which destroys it.
    Own,
    /// Whoever made it, with this value at the latest.
    Other { _kept: Box<dyn Send + Sync> },
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Keeper::Own) { "Own" } else { "Other" })
    }
}

impl Stream {
    /// A new stream.
    ///
    /// # Errors
    /// If the driver gives none.
    pub fn new(context: &'static Context) -> Result<Stream, DriverError> {
        let _entered = context.enter()?;
        Ok(Stream { context, stream: RawStream::new(context.calls)?, keeper: Keeper::Own })
    }

    /// Somebody else's stream, a `CUstream`. What keeps it alive is dropped with the result.
    ///
    /// # Safety
    /// It must be a stream of this context, and live as long as `kept`, or else as the result.
    #[must_use]
    pub unsafe fn foreign(context: &'static Context, raw: *mut c_void, kept: Box<dyn Send + Sync>) -> Stream {
        Stream { context, stream: RawStream(Handle(raw.cast())), keeper: Keeper::Other { _kept: kept } }
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &'static Context {
        self.context
    }

    pub(super) fn raw(&self) -> CUstream {
        self.stream.raw()
    }

    /// Makes later work of the stream wait for the event; the calling thread does not wait.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn follow(&self, event: &Event) -> Result<(), DriverError> {
        let _entered = self.context.enter()?;
        self.stream.follow(self.context.calls, event.raw())
    }

    /// The point after all work of the stream so far.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn mark(&self, waiting: Waiting) -> Result<Event, DriverError> {
        let _entered = self.context.enter()?;
        Event::recorded(self.context, self.raw(), waiting)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if matches!(self.keeper, Keeper::Own)
            && let Ok(_entered) = self.context.enter()
        {
            // SAFETY: nobody else has the handle. The manual: work that is under way goes on, and the resources are
            // released when it has ended.
            let _destroyed = unsafe { (self.context.calls.cuStreamDestroy_v2)(self.raw()) };
        }
    }
}
