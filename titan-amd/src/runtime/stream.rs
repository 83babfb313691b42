//! Streams: work that a device executes in order, concurrently with the calling thread.

use super::Handle;
use super::context::Context;
use super::driver::Calls;
use super::error::DriverError;
use super::event::{Event, Waiting};
use super::sys::{HipStream, STREAM_NON_BLOCKING, Str};
use std::ptr;

/// A stream without its context, which must be entered for each call.
#[derive(Debug)]
pub(super) struct RawStream(Handle<Str>);

impl RawStream {
    /// Creates a stream that does not wait for the null stream.
    pub(super) fn new(calls: &Calls) -> Result<RawStream, DriverError> {
        let mut raw: HipStream = ptr::null_mut();
        // SAFETY: `raw` is writable storage for a stream.
        let code = unsafe { (calls.hipStreamCreateWithFlags)(&raw mut raw, STREAM_NON_BLOCKING) };
        calls.check("hipStreamCreateWithFlags", code)?;
        Ok(RawStream(Handle(raw)))
    }

    pub(super) fn raw(&self) -> HipStream {
        self.0.0
    }

    /// Blocks until its work has ended. An error means that the device is lost or abandoned.
    pub(super) fn wait(&self, context: &Context) -> Result<(), DriverError> {
        let calls = context.calls;
        // SAFETY: the stream has not been destroyed.
        let synchronize = || unsafe { (calls.hipStreamSynchronize)(self.raw()) };
        // SAFETY: as above.
        let query = || unsafe { (calls.hipStreamQuery)(self.raw()) };
        context.until_over(("hipStreamSynchronize", synchronize), ("hipStreamQuery", query))
    }
}

/// A stream of a device.
#[derive(Debug)]
pub struct Stream {
    context: &'static Context,
    stream: RawStream,
}

impl Stream {
    /// Creates a stream.
    ///
    /// # Errors
    /// If the runtime creates no stream.
    pub fn new(context: &'static Context) -> Result<Stream, DriverError> {
        let _entered = context.enter()?;
        Ok(Stream { context, stream: RawStream::new(context.calls)? })
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &'static Context {
        self.context
    }

    pub(super) fn raw(&self) -> HipStream {
        self.stream.raw()
    }

    /// Makes later work of the stream wait for the event; the calling thread does not wait.
    ///
    /// # Errors
    /// If the runtime fails.
    pub fn follow(&self, event: &Event) -> Result<(), DriverError> {
        let Some(event) = event.raw() else { return Ok(()) };
        let _entered = self.context.enter()?;
        let calls = self.context.calls;
        // SAFETY: neither the stream nor the event has been destroyed; 0 are the default flags.
        calls.check("hipStreamWaitEvent", unsafe { (calls.hipStreamWaitEvent)(self.raw(), event, 0) })
    }

    /// The point after all work issued to the stream so far. If the runtime creates no event for it, this waits until it is reached.
    ///
    /// # Errors
    /// If the device is lost, or if it is unknown when the point is reached; then the device is abandoned.
    pub fn mark(&self, waiting: Waiting) -> Result<Event, DriverError> {
        Event::recorded(self.context, &self.stream, waiting)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: nothing else has the handle. The manual: work that is in flight goes on, and the resources are released
            // when it has ended.
            let _destroyed = unsafe { (self.context.calls.hipStreamDestroy)(self.raw()) };
        }
    }
}
