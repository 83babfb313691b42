//! Events: points in the work of streams, from a pool.

use super::context::Context;
use super::error::DriverError;
use super::sys::{CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING, CUevent, CUstream, Evt};
use super::{Handle, lock};
use std::ptr;

/// `CUDA_ERROR_NOT_READY`, which is no failure.
const NOT_READY: u32 = 600;

/// How a thread waits for an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It asks again and again: the quickest way to know.
    Spins,
    /// It sleeps: for threads that do nothing else.
    Sleeps,
}

/// A point in the work of a stream, recorded once. It returns to the pool of its context when dropped.
#[derive(Debug)]
pub struct Event {
    context: &'static Context,
    raw: Handle<Evt>,
    waiting: Waiting,
}

impl Event {
    /// The point after all work of `stream` so far. The context must be current.
    pub(super) fn recorded(
        context: &'static Context,
        stream: CUstream,
        waiting: Waiting,
    ) -> Result<Event, DriverError> {
        let calls = context.calls;
        let pooled = lock(&context.events[waiting.index()]).pop();
        let raw = match pooled {
            Some(raw) => raw,
            None => {
                let mut raw: CUevent = ptr::null_mut();
                // SAFETY: `raw` is a place for an event, and the context is current.
                calls.check("cuEventCreate", unsafe { (calls.cuEventCreate)(&raw mut raw, waiting.flags()) })?;
                Handle(raw)
            }
        };
        let event = Event { context, raw, waiting };
        // SAFETY: the event is of this context, as is the stream, and nobody else has it.
        calls.check("cuEventRecord", unsafe { (calls.cuEventRecord)(raw.0, stream) })?;
        Ok(event)
    }

    /// The context of the stream.
    #[must_use]
    pub fn context(&self) -> &'static Context {
        self.context
    }

    pub(super) fn raw(&self) -> CUevent {
        self.raw.0
    }

    /// Whether the work before it has ended.
    ///
    /// # Errors
    /// If the work, or other work of the context, failed.
    pub fn is_over(&self) -> Result<bool, DriverError> {
        let _entered = self.context.enter()?;
        // SAFETY: the event is destroyed by nobody.
        let code = unsafe { (self.context.calls.cuEventQuery)(self.raw()) };
        if code == NOT_READY {
            return Ok(false);
        }
        self.context.calls.check("cuEventQuery", code).map(|()| true)
    }

    /// Blocks until the work before it has ended.
    ///
    /// # Errors
    /// If the work, or other work of the context, failed.
    pub fn wait(&self) -> Result<(), DriverError> {
        let _entered = self.context.enter()?;
        // SAFETY: the event is destroyed by nobody.
        let code = unsafe { (self.context.calls.cuEventSynchronize)(self.raw()) };
        self.context.calls.check("cuEventSynchronize", code)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // Whoever recorded it again would only wait for later work; that waits for nothing of whoever still knows it,
        // because nobody does.
        lock(&self.context.events[self.waiting.index()]).push(self.raw);
    }
}

impl Waiting {
    fn index(self) -> usize {
        match self {
            Waiting::Spins => 0,
            Waiting::Sleeps => 1,
        }
    }

    fn flags(self) -> u32 {
        let untimed = CU_EVENT_DISABLE_TIMING;
        match self {
            Waiting::Spins => untimed,
            Waiting::Sleeps => untimed | CU_EVENT_BLOCKING_SYNC,
        }
    }
}
