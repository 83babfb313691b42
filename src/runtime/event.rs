//! The end of a piece of work on a device, to wait for and to ask how it went.
//!
//! A failure is *reported* once: by the first wait, read or launch that touches what the work should have written, or by
//! `Stream::sync`. Work that depends on failed work does not run and fails as well; reporting its failure also reports
//! the one that caused it.

use super::lock;
use crate::error::Error;
use std::sync::{Arc, Condvar, Mutex};
use std::task::Waker;

/// The end of a piece of work. Clones are the same end.
#[derive(Clone, Debug)]
pub(crate) struct Event(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The in-order queue that the work is in.
    queue: Option<u64>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
enum State {
    Pending(Vec<Waker>),
    Done,
    Failed(Box<Failure>),
}

/// How a piece of work failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// Whether the caller has been told.
    pub(crate) reported: bool,
    /// The work whose failure is the cause, directly or through other work.
    pub(crate) cause: Option<Event>,
}

impl Failure {
    /// A failure that nobody else caused.
    pub(crate) fn new(error: Error, reported: bool) -> Box<Failure> {
        Box::new(Failure { error, reported, cause: None })
    }

    /// That of `what`, which did not run because `earlier` failed with `error`. It points to the first cause, so that
    /// long chains of failures do not become long chains of memory.
    pub(crate) fn of_dependency(what: &str, earlier: &Event, error: Error) -> Box<Failure> {
        let cause = Some(earlier.cause().unwrap_or_else(|| earlier.clone()));
        Box::new(Failure { error: Error::of_dependency(what, error), reported: false, cause })
    }
}

impl Event {
    /// Of work in the in-order queue of this number, or on a thread of its own.
    pub(crate) fn new(queue: Option<u64>) -> Self {
        Event(Arc::new(Inner { queue, state: Mutex::new(State::Pending(Vec::new())), changed: Condvar::new() }))
    }

    /// Whether this work ends after `earlier` because both are in one queue.
    pub(crate) fn follows_in_queue(&self, earlier: &Event) -> bool {
        self.0.queue.is_some() && self.0.queue == earlier.0.queue
    }

    /// The work has ended. Later calls change nothing.
    pub(crate) fn settle(&self, outcome: Result<(), Box<Failure>>) {
        let mut state = lock(&self.0.state);
        let State::Pending(wakers) = &mut *state else { return };
        let wakers = std::mem::take(wakers);
        *state = match outcome {
            Ok(()) => State::Done,
            Err(failure) => State::Failed(failure),
        };
        drop(state);
        self.0.changed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Blocks until the work has ended.
    pub(crate) fn wait(&self) {
        let state = lock(&self.0.state);
        drop(super::wait_while(&self.0.changed, state, |s| matches!(s, State::Pending(_))));
    }

    /// Whether the work has ended; if not, `waker` is woken when it does.
    pub(crate) fn poll(&self, waker: &Waker) -> bool {
        match &mut *lock(&self.0.state) {
            State::Pending(wakers) => {
                if !wakers.iter().any(|w| w.will_wake(waker)) {
                    wakers.push(waker.clone());
                }
                false
            }
            State::Done | State::Failed(_) => true,
        }
    }

    /// Whether nothing remains to wait for or to report.
    pub(crate) fn is_settled(&self) -> bool {
        match &*lock(&self.0.state) {
            State::Pending(_) => false,
            State::Done => true,
            State::Failed(failure) => failure.reported,
        }
    }

    /// The error of work that has failed, reported or not.
    pub(crate) fn error(&self) -> Option<Error> {
        match &*lock(&self.0.state) {
            State::Pending(_) | State::Done => None,
            State::Failed(failure) => Some(failure.error.clone()),
        }
    }

    /// The work that caused the failure of this one.
    fn cause(&self) -> Option<Event> {
        match &*lock(&self.0.state) {
            State::Pending(_) | State::Done => None,
            State::Failed(failure) => failure.cause.clone(),
        }
    }

    /// The error of work that has failed and of which nobody has been told, who now is, also of its cause.
    pub(crate) fn report(&self) -> Option<Error> {
        let (error, cause) = self.mark_reported()?;
        if let Some(cause) = cause {
            cause.mark_reported();
        }
        Some(error)
    }

    fn mark_reported(&self) -> Option<(Error, Option<Event>)> {
        match &mut *lock(&self.0.state) {
            State::Failed(failure) if !failure.reported => {
                failure.reported = true;
                Some((failure.error.clone(), failure.cause.clone()))
            }
            State::Pending(_) | State::Done | State::Failed(_) => None,
        }
    }
}
