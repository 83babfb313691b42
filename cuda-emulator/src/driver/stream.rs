//! Streams: queues in which each operation waits for the one before it.

use super::Driver;
use super::graph::Capture;
use crate::clock::{Clock, OpId};
use crate::code::{Code, Done};
use std::sync::atomic::{AtomicU64, Ordering};

/// `CU_STREAM_LEGACY`: the default stream that waits for all others.
pub(crate) const LEGACY: u64 = 1;
/// `CU_STREAM_PER_THREAD`: a default stream of each thread.
pub(crate) const PER_THREAD: u64 = 2;

/// A stream.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(super) context: u64,
    /// Whether it waits for the legacy default stream, and the legacy default stream for it.
    pub(super) blocking: bool,
    pub(super) priority: i32,
    pub(super) last: Option<OpId>,
    /// The clock before which later operations of the stream are ordered.
    pub(super) clock: Clock,
    /// Whether it records its work instead of running it.
    pub(super) capture: Option<Capture>,
}

thread_local! {
    static THREAD: u64 = {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

/// The number of this thread.
pub(super) fn thread() -> u64 {
    THREAD.with(|t| *t)
}

impl Driver {
    /// Creates a stream in a context.
    pub(crate) fn new_stream(&mut self, context: u64, blocking: bool) -> u64 {
        let handle = self.handle();
        let stream = Stream { context, blocking, priority: 0, last: None, clock: Clock::default(), capture: None };
        self.streams.insert(handle, stream);
        handle
    }

    /// Sets the priority that a stream reports; it has no effect.
    pub(crate) fn prefer(&mut self, stream: u64, priority: i32) {
        if let Some(s) = self.streams.get_mut(&stream) {
            s.priority = priority.clamp(-5, 0);
        }
    }

    /// The stream that a handle of the caller refers to, in the current context.
    pub(crate) fn resolve(&mut self, context: u64, handle: u64) -> Done<u64> {
        match handle {
            0 | LEGACY => Ok(self.context(context)?.null),
            PER_THREAD => {
                let thread = thread();
                if let Some(stream) = self.context(context)?.own.get(&thread) {
                    return Ok(*stream);
                }
                let stream = self.new_stream(context, true);
                if let Some(c) = self.contexts.get_mut(&context) {
                    c.own.insert(thread, stream);
                }
                Ok(stream)
            }
            _ if self.streams.contains_key(&handle) => Ok(handle),
            _ => Err(Code::INVALID_HANDLE),
        }
    }

    /// The stream with a handle returned by [`Driver::resolve`].
    pub(crate) fn stream(&self, stream: u64) -> Done<&Stream> {
        self.streams.get(&stream).ok_or(Code::INVALID_HANDLE)
    }

    /// Destroys a stream; its pending operations still run.
    pub(crate) fn end_stream(&mut self, handle: u64) -> Done {
        let context = self.stream(handle)?.context;
        let c = self.context(context)?;
        // Default streams cannot be destroyed.
        if c.null == handle || c.own.values().any(|s| *s == handle) {
            return Err(Code::INVALID_HANDLE);
        }
        let gone = self.streams.remove(&handle);
        if let Some(capture) = gone.and_then(|s| s.capture) {
            self.end_graph(capture.graph())?;
        }
        Ok(())
    }
}

impl Stream {
    /// The context of the stream.
    pub(crate) const fn context(&self) -> u64 {
        self.context
    }

    /// The priority of the stream.
    pub(crate) const fn priority(&self) -> i32 {
        self.priority
    }

    /// `CU_STREAM_NON_BLOCKING`, or nothing.
    pub(crate) const fn flags(&self) -> u32 {
        if self.blocking { 0 } else { 1 }
    }

    /// The operation that is over when the stream is idle.
    pub(crate) const fn last(&self) -> Option<OpId> {
        self.last
    }
}
