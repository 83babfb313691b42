//! Streams: work that a device executes in order, concurrently with the calling thread.

use super::Handle;
use super::context::Context;
use super::driver::Calls;
use super::error::DriverError;
use super::event::{Event, Waiting};
use super::sys::{CU_STREAM_NON_BLOCKING, CUstream, Str};
use std::ffi::c_void;
use std::{fmt, ptr};

/// A stream without its context, which must be current for each call.
#[derive(Debug)]
pub(super) struct RawStream(Handle<Str>);

impl RawStream {
    /// Creates a stream that does not wait for the legacy default stream.
    pub(super) fn new(calls: &Calls) -> Result<RawStream, DriverError> {
        let mut raw: CUstream = ptr::null_mut();
        // SAFETY: `raw` is writable storage for a stream, and a context is current.
        calls.check("cuStreamCreate", unsafe { (calls.cuStreamCreate)(&raw mut raw, CU_STREAM_NON_BLOCKING) })?;
        Ok(RawStream(Handle(raw)))
    }

    pub(super) fn raw(&self) -> CUstream {
        self.0.0
    }

    /// Blocks until its work has ended. An error means that the context has ended or is abandoned.
    pub(super) fn wait(&self, context: &Context) -> Result<(), DriverError> {
        let calls = context.calls;
        // SAFETY: the stream has not been destroyed.
        let synchronize = || unsafe { (calls.cuStreamSynchronize)(self.raw()) };
        // SAFETY: as above.
        let query = || unsafe { (calls.cuStreamQuery)(self.raw()) };
        context.until_over(("cuStreamSynchronize", synchronize), ("cuStreamQuery", query))
    }

    /// Makes later work of the stream wait for the event.
    pub(super) fn follow(&self, calls: &Calls, event: &Event) -> Result<(), DriverError> {
        let Some(event) = event.raw() else { return Ok(()) };
        // SAFETY: neither the stream nor the event has been destroyed; 0 are the default flags.
        calls.check("cuStreamWaitEvent", unsafe { (calls.cuStreamWaitEvent)(self.raw(), event, 0) })
    }

    /// Destroys the stream; work in it continues.
    pub(super) fn destroy(self, calls: &Calls) {
        // SAFETY: nothing else has the handle. The manual: work that is in flight goes on, and the resources are released
        // when it has ended.
        let _destroyed = unsafe { (calls.cuStreamDestroy_v2)(self.raw()) };
    }
}

/// A stream of a context.
#[derive(Debug)]
pub struct Stream {
    context: &'static Context,
    stream: RawStream,
    keeper: Keeper,
}

/// The owner that keeps a stream alive.
enum Keeper {
    /// The value itself, which destroys the stream.
    Own,
    /// The code that created it; the value is released when this one is dropped, at the latest.
    Other { _kept: Box<dyn Send + Sync> },
}

impl fmt::Debug for Keeper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Keeper::Own) { "Own" } else { "Other" })
    }
}

impl Stream {
    /// Creates a stream.
    ///
    /// # Errors
    /// If the driver creates no stream.
    pub fn new(context: &'static Context) -> Result<Stream, DriverError> {
        let _entered = context.enter()?;
        Ok(Stream { context, stream: RawStream::new(context.calls)?, keeper: Keeper::Own })
    }

    /// A stream that foreign code owns, a `CUstream`. The value that keeps it alive is dropped with the result.
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
        self.stream.follow(self.context.calls, event)
    }

    /// The point after all work issued to the stream so far. If the driver creates no event for it, this waits until it is reached.
    ///
    /// # Errors
    /// If the context has ended, or if it is unknown when the point is reached; then the context is abandoned.
    pub fn mark(&self, waiting: Waiting) -> Result<Event, DriverError> {
        Event::recorded(self.context, &self.stream, waiting)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if matches!(self.keeper, Keeper::Own)
            && let Ok(_entered) = self.context.enter()
        {
            RawStream(self.stream.0).destroy(self.context.calls);
        }
    }
}
