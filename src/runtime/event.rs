//! The end of a piece of work on a device: it can be waited for, and reports whether the work failed.
//!
//! A failure is *reported* once: by the first wait, read or launch that accesses data which the work should have written, or by
//! `Stream::sync`. Work that depends on failed work does not run, or does not count as having run, and fails as well;
//! reporting its failure also reports the one that caused it.
//!
//! Work on the host is settled by the thread that runs it. A device completes its work without a callback: such work is settled by the
//! first thread that queries it, after the work that it depends on, so that failures propagate as if it had not run.
//!
//! `uses.rs` states what the end of work implies for other work.

#[cfg(feature = "_remote")]
use super::backend::Mark;
use super::buffer::caught;
use super::lock;
#[cfg(feature = "_remote")]
use super::uses::Dependency;
use crate::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::Waker;

/// The end of a piece of work. Clones refer to the same end.
#[derive(Clone, Debug)]
pub(crate) struct Event(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The in-order queue that the work is in.
    queue: Option<u64>,
    /// Whether a thread of the host runs the work, after all work for which it must wait.
    of_host: bool,
    state: Mutex<State>,
    changed: Condvar,
    /// The threads that wait for a change: a number that changes only while the state is locked. Without any, nothing is notified, which would be
    /// a call of the system for every launch.
    waiting: AtomicUsize,
    /// The waker of the task that awaits the work.
    waker: Mutex<Option<Waker>>,
}

#[derive(Debug)]
enum State {
    /// The work runs on the host, or will be enqueued on a device.
    Pending,
    /// The work has been enqueued on a device.
    #[cfg(feature = "_remote")]
    Remote(Box<Remote>),
    /// The device has completed it, and a thread reads its report.
    #[cfg(feature = "_remote")]
    Settling,
    Done,
    Failed(Box<Failure>),
    /// The device did not accept the work, and the caller received the error.
    #[cfg(feature = "_remote")]
    Refused,
}

/// Whether work is known to have run or to run later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Undecided: its device may still refuse it.
    Open,
    /// The work runs, or has run, after everything that it must wait for.
    Runs,
    /// The work does not run, because something that it needs failed.
    #[cfg_attr(not(feature = "_remote"), expect(dead_code, reason = "threads of the host wait first"))]
    Skipped,
    /// The work counts as never launched.
    #[cfg_attr(not(feature = "_remote"), expect(dead_code, reason = "threads of the host refuse nothing"))]
    Refused,
}

/// Work that has been enqueued on a device.
#[cfg(feature = "_remote")]
pub(crate) struct Remote {
    /// The name of the work, for messages.
    pub(crate) what: Arc<str>,
    /// The point in the device's work after it.
    pub(crate) mark: Mark,
    /// The work whose results it uses.
    pub(crate) needs: Vec<Dependency>,
    /// Reads its report, unless its results are invalid anyway.
    pub(crate) finish: Option<Finish>,
}

/// Called when work has ended, with whether it counts as having run.
#[cfg(feature = "_remote")]
pub(crate) type Finish = Box<dyn FnOnce(bool) -> crate::error::Result<()> + Send>;

/// Calls all of them, and returns the first error.
#[cfg(feature = "_remote")]
pub(crate) fn all_of(each: Vec<Finish>) -> Finish {
    Box::new(move |counts| {
        let told: Vec<_> = each.into_iter().map(|finish| finish(counts)).collect();
        told.into_iter().collect()
    })
}

#[cfg(feature = "_remote")]
impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("what", &self.what).finish_non_exhaustive()
    }
}

/// The failure of a piece of work.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) error: Error,
    /// Whether it has been reported.
    pub(crate) reported: bool,
    /// The work whose failure is the cause, directly or through other work.
    pub(crate) cause: Option<Event>,
    /// Whether the work ran.
    standing: Standing,
}

impl Failure {
    /// A failure that was not caused by other work.
    pub(crate) fn new(error: Error, reported: bool) -> Box<Failure> {
        Box::new(Failure { error, reported, cause: None, standing: Standing::Runs })
    }

    /// The failure of `what`, whose results are invalid because `earlier` failed with `error`. It refers to the first cause, so that
    /// long chains of failures do not keep long chains of events alive.
    pub(crate) fn of_dependency(what: &str, earlier: &Event, error: Error) -> Box<Failure> {
        let cause = Some(earlier.cause().unwrap_or_else(|| earlier.clone()));
        Box::new(Failure { cause, ..*Failure::new(Error::of_dependency(what, error), false) })
    }

    /// The failure of `what`, which was not enqueued on a device.
    #[cfg(feature = "_remote")]
    pub(crate) fn skipped(what: &str, earlier: &Event, error: Error) -> Box<Failure> {
        Box::new(Failure { standing: Standing::Skipped, ..*Failure::of_dependency(what, earlier, error) })
    }
}

impl Event {
    /// The end of work that a host thread runs, in the in-order queue of this number if there is one.
    pub(crate) fn of_host(queue: Option<u64>) -> Self {
        Event::new(queue, true)
    }

    /// The end of work that will be enqueued on a device, in the in-order queue of this number if there is one.
    #[cfg(feature = "_remote")]
    pub(crate) fn of_device(queue: Option<u64>) -> Self {
        Event::new(queue, false)
    }

    fn new(queue: Option<u64>, of_host: bool) -> Self {
        let (state, changed, waker) = (Mutex::new(State::Pending), Condvar::new(), Mutex::default());
        Event(Arc::new(Inner { queue, of_host, state, changed, waiting: AtomicUsize::new(0), waker }))
    }

    /// Whether this is the end of the same work.
    #[cfg(feature = "_remote")]
    pub(crate) fn is(&self, other: &Event) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether this work ends after `earlier` because both are in one queue.
    pub(crate) fn follows_in_queue(&self, earlier: &Event) -> bool {
        self.0.queue.is_some() && self.0.queue == earlier.0.queue
    }

    /// Whether the work runs, as far as is known.
    pub(crate) fn standing(&self) -> Standing {
        if self.0.of_host {
            return Standing::Runs;
        }
        match &*lock(&self.0.state) {
            State::Pending => Standing::Open,
            #[cfg(feature = "_remote")]
            State::Remote(_) | State::Settling => Standing::Runs,
            #[cfg(feature = "_remote")]
            State::Refused => Standing::Refused,
            State::Done => Standing::Runs,
            State::Failed(failure) => failure.standing,
        }
    }

    /// Settles the work, which has ended. The task that awaits it is not woken: see [`Event::wake`].
    pub(crate) fn settle(&self, outcome: Result<(), Box<Failure>>) {
        self.become_now(match outcome {
            Ok(()) => State::Done,
            Err(failure) => State::Failed(failure),
        });
    }

    fn become_now(&self, state: State) {
        let mut now = lock(&self.0.state);
        *now = state;
        let is_awaited = self.0.waiting.load(Ordering::Relaxed) > 0;
        drop(now);
        if is_awaited {
            self.0.changed.notify_all();
        }
    }

    /// Wakes the task that awaits the work, which has been settled. The caller holds no lock, because a waker is user code.
    pub(crate) fn wake(&self) {
        let waker = lock(&self.0.waker).take();
        // The panic hook has printed the panic; this thread must continue.
        drop(waker.map(|waker| caught(|| waker.wake())));
    }

    /// Blocks until the work has ended.
    pub(crate) fn wait(&self) {
        self.wait_for_threads();
        #[cfg(feature = "_remote")]
        while let Some(mark) = self.mark() {
            mark.wait();
            self.settle_remote(true);
            self.wait_for_threads();
        }
    }

    /// Blocks until the work has ended or only its device can end it.
    fn wait_for_threads(&self) {
        self.wait_while(|state| match state {
            State::Pending => true,
            #[cfg(feature = "_remote")]
            State::Settling => true,
            #[cfg(feature = "_remote")]
            State::Remote(_) | State::Refused => false,
            State::Done | State::Failed(_) => false,
        });
    }

    /// Blocks until the work has ended or has been enqueued on a device.
    #[cfg(feature = "_remote")]
    pub(crate) fn wait_until_given(&self) {
        self.wait_while(|state| matches!(state, State::Pending));
    }

    fn wait_while(&self, mut condition: impl FnMut(&State) -> bool) {
        let state = lock(&self.0.state);
        if !condition(&state) {
            return;
        }
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
        let state = super::wait_while(&self.0.changed, state, |state| condition(state));
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        drop(state);
    }

    /// Whether the work has ended. Queries its device, and does not wait.
    pub(crate) fn is_over(&self) -> bool {
        #[cfg(feature = "_remote")]
        if self.mark().is_some_and(|mark| mark.is_over()) {
            self.settle_remote(false);
        }
        self.has_ended()
    }

    /// Whether the work is known to have ended.
    pub(crate) fn has_ended(&self) -> bool {
        match &*lock(&self.0.state) {
            State::Pending => false,
            #[cfg(feature = "_remote")]
            State::Remote(_) | State::Settling => false,
            #[cfg(feature = "_remote")]
            State::Refused => true,
            State::Done | State::Failed(_) => true,
        }
    }

    /// Whether the work has ended; if not, `waker` is woken when it does, in place of earlier ones.
    pub(crate) fn poll(&self, waker: &Waker) -> bool {
        if self.is_over() {
            return true;
        }
        let new = waker.clone();
        // Wakers are dropped without the lock, because that is user code as well.
        let old = lock(&self.0.waker).replace(new);
        drop(old);
        // If the event is settled after this check, the settling thread finds the waker.
        let ended = self.has_ended();
        let own = if ended { lock(&self.0.waker).take() } else { None };
        drop(own);
        ended
    }

    /// Whether nothing remains to wait for or to report.
    pub(crate) fn is_forgettable(&self) -> bool {
        match &*lock(&self.0.state) {
            State::Pending => false,
            #[cfg(feature = "_remote")]
            State::Remote(_) | State::Settling => false,
            #[cfg(feature = "_remote")]
            State::Refused => true,
            State::Done => true,
            State::Failed(failure) => failure.reported,
        }
    }

    /// The error of work that has failed, reported or not.
    pub(crate) fn error(&self) -> Option<Error> {
        self.failure(|failure| failure.error.clone())
    }

    /// The work that caused the failure of this one.
    fn cause(&self) -> Option<Event> {
        self.failure(|failure| failure.cause.clone()).flatten()
    }

    fn failure<R>(&self, look: impl FnOnce(&mut Failure) -> R) -> Option<R> {
        if let State::Failed(failure) = &mut *lock(&self.0.state) { Some(look(failure)) } else { None }
    }

    /// The error of work that has failed and has not been reported. Marks it and its cause as reported.
    pub(crate) fn report(&self) -> Option<Error> {
        let (error, cause) = self.mark_reported()?;
        if let Some(cause) = cause {
            cause.mark_reported();
        }
        Some(error)
    }

    /// The error of work that has failed, for the caller who asked for this work: the cause itself, if it has not been reported,
    /// and not only that dependent work failed.
    #[cfg(feature = "_remote")]
    pub(crate) fn report_here(&self) -> Option<Error> {
        let error = self.error()?;
        let cause = self.cause().and_then(|cause| cause.mark_reported());
        drop(self.mark_reported());
        Some(cause.map_or(error, |(error, _)| error))
    }

    fn mark_reported(&self) -> Option<(Error, Option<Event>)> {
        let tell = |failure: &mut Failure| {
            let first = !std::mem::replace(&mut failure.reported, true);
            first.then(|| (failure.error.clone(), failure.cause.clone()))
        };
        self.failure(tell).flatten()
    }
}

/// Work that has been enqueued on a device.
#[cfg(feature = "_remote")]
impl Event {
    /// The work has been enqueued on a device.
    pub(crate) fn give(&self, remote: Remote) {
        self.become_now(State::Remote(Box::new(remote)));
    }

    /// The device did not accept the work, and the caller gets the error.
    pub(crate) fn refuse(&self) {
        self.become_now(State::Refused);
    }

    /// The point after the work, if it has been enqueued on a device and is not settled.
    pub(crate) fn mark(&self) -> Option<Mark> {
        if let State::Remote(remote) = &*lock(&self.0.state) { Some(remote.mark.clone()) } else { None }
    }

    /// Settles work that has ended on its device, after all the work that it needs. Not recursive, because chains of launches can
    /// be of any length. If another thread is settling a part of them, this one waits for it, or leaves the rest to that thread.
    fn settle_remote(&self, waits: bool) {
        let mut chain = vec![self.clone()];
        while let Some(last) = chain.last() {
            match last.open_need() {
                None => chain.pop().iter().for_each(Event::conclude),
                Some(need) if need.mark().is_some() => chain.push(need),
                Some(need) if waits => need.wait_for_threads(),
                Some(_) => return,
            }
        }
    }

    /// Needed work that has not been settled. It has ended, because the device waits for it.
    fn open_need(&self) -> Option<Event> {
        let state = lock(&self.0.state);
        let State::Remote(remote) = &*state else { return None };
        remote.needs.iter().find(|d| !d.event.has_ended()).map(|d| d.event.clone())
    }

    /// Settles work that has ended on its device; the work that it needs is settled.
    fn conclude(&self) {
        let mut state = lock(&self.0.state);
        if !matches!(*state, State::Remote(_)) {
            return;
        }
        let State::Remote(remote) = std::mem::replace(&mut *state, State::Settling) else { return };
        drop(state);
        let Remote { what, mark, needs, finish } = *remote;
        let bad = super::uses::first_failure(&needs);
        let ended = mark.outcome(&what);
        // Reading the report may print, which calls user code.
        let told = match (&ended, finish) {
            (Ok(()), Some(finish)) => super::buffer::guarded(&what, || finish(bad.is_none())),
            _ => Ok(()),
        };
        self.settle(match (ended, bad) {
            (Err(error), _) => Err(Failure::new(error, false)),
            (Ok(()), Some((earlier, error))) => Err(Failure::of_dependency(&what, earlier, error)),
            (Ok(()), None) => told.map_err(|error| Failure::new(error, false)),
        });
    }
}
