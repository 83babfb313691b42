//! Events: points in the work of a stream for which others wait.

use super::run::Work;
use super::{Driver, Session, queue};
use crate::clock::{Clock, OpId};
use crate::code::{Code, Done};
use std::time::Instant;

/// An event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(super) context: u64,
    timed: bool,
    /// The operation of the last record, with the clock of what is ordered before it.
    recorded: Option<(OpId, Clock)>,
    /// The time at which that operation ran.
    pub(super) at: Option<Instant>,
}

/// `CU_EVENT_DISABLE_TIMING`.
const DISABLE_TIMING: u32 = 2;
/// `CU_EVENT_BLOCKING_SYNC`, `CU_EVENT_DISABLE_TIMING`, `CU_EVENT_INTERPROCESS`.
const FLAGS: u32 = 7;

impl Driver {
    /// Creates an event.
    pub(crate) fn new_event(&mut self, context: u64, flags: u32) -> Done<u64> {
        if flags & !FLAGS != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let handle = self.handle();
        let event = Event { context, timed: flags & DISABLE_TIMING == 0, recorded: None, at: None };
        self.events.insert(handle, event);
        Ok(handle)
    }

    /// Destroys an event; enqueued waits for it remain.
    pub(crate) fn end_event(&mut self, event: u64) -> Done {
        self.events.remove(&event).map(drop).ok_or(Code::INVALID_HANDLE)
    }

    fn event(&self, event: u64) -> Done<&Event> {
        self.events.get(&event).ok_or(Code::INVALID_HANDLE)
    }

    /// The operation after which an event was recorded, if it was.
    pub(crate) fn recorded(&self, event: u64) -> Done<Option<OpId>> {
        Ok(self.event(event)?.recorded.as_ref().map(|r| r.0))
    }

    /// Records that the host has waited for an event.
    pub(crate) fn host_knows_event(&mut self, event: u64) {
        let clock = self.events.get(&event).and_then(|e| e.recorded.as_ref()).map(|r| r.1.clone());
        if let Some(clock) = clock {
            self.host_knows(&clock);
        }
    }

    /// The milliseconds between two events, in the emulator's own time.
    pub(crate) fn elapsed(&self, from: u64, to: u64) -> Done<f32> {
        let (a, b) = (self.event(from)?, self.event(to)?);
        if !a.timed || !b.timed || a.recorded.is_none() || b.recorded.is_none() {
            return Err(Code::INVALID_HANDLE);
        }
        let (Some(a), Some(b)) = (a.at, b.at) else { return Err(Code::NOT_READY) };
        Ok(b.saturating_duration_since(a).as_secs_f32() * 1e3)
    }

    /// Records that the operation of an event's latest record has run.
    pub(super) fn happened(&mut self, event: u64, op: OpId) {
        if let Some(e) = self.events.get_mut(&event)
            && e.recorded.as_ref().is_some_and(|r| r.0 == op)
        {
            e.at = Some(Instant::now());
        }
    }

    /// Resets the clocks of events, because everything recorded is over and known.
    pub(super) fn forget_events(&mut self) {
        for (_, clock) in self.events.values_mut().filter_map(|e| e.recorded.as_mut()) {
            clock.clear();
        }
    }
}

/// Records an event on a stream.
pub(crate) fn record_event(session: &mut Session, event: u64, stream: u64) -> Done {
    let context = session.event(event)?.context;
    if session.stream(stream)?.context != context {
        return Err(Code::INVALID_HANDLE);
    }
    let op = queue::enqueue(session, stream, "the record of an event".to_owned(), Work::Record { event })?;
    let clock = session.stream(stream)?.clock.clone();
    if let Some(e) = session.events.get_mut(&event) {
        e.recorded = Some((op, clock));
        e.at = None;
    }
    // With the order `early`, the operation has run before the event refers to it.
    if session.queue.is_over(op) {
        session.happened(event, op);
    }
    Ok(())
}

/// Makes a stream wait for an event; an event that was never recorded counts as over.
pub(crate) fn wait_event(session: &mut Session, stream: u64, event: u64) -> Done {
    let Some((op, clock)) = session.event(event)?.recorded.clone() else { return Ok(()) };
    session.stream(stream)?;
    queue::enqueue_after(session, stream, ("the wait for an event".to_owned(), Work::Nothing), Some((op, clock)))?;
    Ok(())
}
