//! Events: points in the work of streams, from a pool.

use super::context::{Context, NOT_READY};
use super::error::DriverError;
use super::stream::RawStream;
use super::sys::{EVENT_BLOCKING_SYNC, EVENT_DISABLE_TIMING, Evt, HipEvent};
use super::{Handle, lock};
use std::ptr;

/// The way in which a thread waits for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It spins: the wait with the lowest latency.
    Spins,
    /// It sleeps: for threads that do nothing else.
    Sleeps,
    /// It spins, and the device stores the time of the point: see [`Event::milliseconds_since`].
    Timed,
}

/// A point in the work of a stream, recorded once. It returns to the pool of its context when dropped.
#[derive(Debug)]
pub struct Event {
    context: &'static Context,
    /// The runtime's event; `None` if the point has been reached.
    raw: Option<Handle<Evt>>,
    waiting: Waiting,
}

impl Event {
    /// The point after all work issued to `stream` so far. If the runtime creates no event, the call waits for that work; so
    /// an error means that the device is lost or abandoned.
    pub(super) fn recorded(
        context: &'static Context,
        stream: &RawStream,
        waiting: Waiting,
    ) -> Result<Event, DriverError> {
        Event::try_recorded(context, stream, waiting).or_else(|_| {
            stream.wait(context)?;
            Ok(Event { context, raw: None, waiting })
        })
    }

    fn try_recorded(context: &'static Context, stream: &RawStream, waiting: Waiting) -> Result<Event, DriverError> {
        let _entered = context.enter()?;
        let calls = context.calls;
        let pooled = lock(&context.events[waiting.index()]).pop();
        let raw = match pooled {
            Some(raw) => raw,
            None => {
                let mut raw: HipEvent = ptr::null_mut();
                // SAFETY: `raw` is writable storage for an event, and the device is the thread's.
                calls.check("hipEventCreateWithFlags", unsafe {
                    (calls.hipEventCreateWithFlags)(&raw mut raw, waiting.flags())
                })?;
                Handle(raw)
            }
        };
        let event = Event { context, raw: Some(raw), waiting };
        // SAFETY: the event is of this context, as is the stream, and nothing else holds it.
        calls.check("hipEventRecord", unsafe { (calls.hipEventRecord)(raw.0, stream.raw()) })?;
        Ok(event)
    }

    /// The context of the stream.
    #[must_use]
    pub fn context(&self) -> &'static Context {
        self.context
    }

    /// The runtime's event; `None` if the point has been reached.
    pub(super) fn raw(&self) -> Option<HipEvent> {
        self.raw.map(|raw| raw.0)
    }

    /// Whether the work before it has ended.
    ///
    /// # Errors
    /// If the query fails: the work may be running, unless the error [ends the context](DriverError::ends_context).
    pub fn is_over(&self) -> Result<bool, DriverError> {
        let Some(raw) = self.raw() else { return Ok(true) };
        let _entered = self.context.enter()?;
        // SAFETY: events are never destroyed.
        let code = unsafe { (self.context.calls.hipEventQuery)(raw) };
        if code == NOT_READY {
            return Ok(false);
        }
        self.context.calls.check("hipEventQuery", code).map(|()| true)
    }

    /// Blocks until the work before it has ended.
    ///
    /// # Errors
    /// If the work, or other work of the context, failed, so that the device is lost; or if it is abandoned.
    pub fn wait(&self) -> Result<(), DriverError> {
        let Some(raw) = self.raw() else { return Ok(()) };
        let calls = self.context.calls;
        // SAFETY: events are never destroyed.
        let synchronize = || unsafe { (calls.hipEventSynchronize)(raw) };
        // SAFETY: as above.
        let query = || unsafe { (calls.hipEventQuery)(raw) };
        self.context.until_over(("hipEventSynchronize", synchronize), ("hipEventQuery", query))
    }
}

impl Event {
    /// The milliseconds between an earlier point and this one, both of which have been waited for; negative in the other order. `None` if one
    /// of them has no event, because the runtime created none.
    ///
    /// # Errors
    /// If one of them was not recorded with [`Waiting::Timed`], or has not been reached, or the runtime fails.
    pub fn milliseconds_since(&self, earlier: &Event) -> Result<Option<f32>, DriverError> {
        let (Some(from), Some(to)) = (earlier.raw(), self.raw()) else { return Ok(None) };
        let calls = self.context.calls;
        let _entered = self.context.enter()?;
        let mut milliseconds = 0.0f32;
        // SAFETY: `milliseconds` is writable storage for a float, and events are never destroyed.
        let code = unsafe { (calls.hipEventElapsedTime)(&raw mut milliseconds, from, to) };
        calls.check("hipEventElapsedTime", code).map(|()| Some(milliseconds))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // No reference to the event is left, so no wait for its old work can be affected when it is recorded again.
        lock(&self.context.events[self.waiting.index()]).extend(self.raw);
    }
}

impl Waiting {
    fn index(self) -> usize {
        match self {
            Waiting::Spins => 0,
            Waiting::Sleeps => 1,
            Waiting::Timed => 2,
        }
    }

    fn flags(self) -> u32 {
        let untimed = EVENT_DISABLE_TIMING;
        match self {
            Waiting::Spins => untimed,
            Waiting::Timed => 0,
            Waiting::Sleeps => untimed | EVENT_BLOCKING_SYNC,
        }
    }
}
