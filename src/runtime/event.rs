//! The end of a piece of work on a device, to wait for and to ask how it went.
//!
//! A failure is *reported* once: by the first wait, read or launch that touches what the work should have written, or by
//! `Stream::sync`. Work that depends on failed work does not run, or does not count as having run, and fails as well;
//! reporting its failure also reports the one that caused it.
//!
//! Work on the host is settled by who runs it. A device ends its work by itself, and nobody is called: such work is settled
//! by whoever asks first, after the work that it depends on, so that failures travel as if it had not run.

#[cfg(feature = "cuda")]
use super::backend::Mark;
#[cfg(feature = "cuda")]
use super::buffer::Dependency;
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
    /// It runs on the host, or a device will get it.
    Pending(Vec<Waker>),
    /// A device has it.
    #[cfg(feature = "cuda")]
    Remote(Box<Remote>, Vec<Waker>),
    Done,
    Failed(Box<Failure>),
}

/// Work that a device has.
#[cfg(feature = "cuda")]
pub(crate) struct Remote {
    /// What it is, for messages.
    pub(crate) what: Arc<str>,
    /// The point in the device's work after it.
    pub(crate) mark: Mark,
    /// The work whose results it uses.
    pub(crate) needs: Vec<Dependency>,
    /// Reads what it told, unless its results are bad anyway.
    pub(crate) finish: Option<Finish>,
}

/// Called when work has ended, with whether it counts as having run.
#[cfg(feature = "cuda")]
pub(crate) type Finish = Box<dyn FnOnce(bool) -> crate::error::Result<()> + Send>;

#[cfg(feature = "cuda")]
impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("what", &self.what).finish_non_exhaustive()
    }
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
        let wakers = match &mut *state {
            State::Pending(wakers) => std::mem::take(wakers),
            #[cfg(feature = "cuda")]
            State::Remote(_, wakers) => std::mem::take(wakers),
            State::Done | State::Failed(_) => return,
        };
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
        self.wait_until_given();
        #[cfg(feature = "cuda")]
        while let Some(mark) = self.mark() {
            mark.wait();
            self.settle_remote();
        }
    }

    /// Blocks until the work has ended or a device has it.
    pub(crate) fn wait_until_given(&self) {
        let state = lock(&self.0.state);
        drop(super::wait_while(&self.0.changed, state, |s| matches!(s, State::Pending(_))));
    }

    /// Whether the work has ended. Asks its device.
    pub(crate) fn is_over(&self) -> bool {
        #[cfg(feature = "cuda")]
        if self.mark().is_some_and(|mark| mark.is_over()) {
            self.settle_remote();
        }
        match &*lock(&self.0.state) {
            State::Pending(_) => false,
            #[cfg(feature = "cuda")]
            State::Remote(..) => false,
            State::Done | State::Failed(_) => true,
        }
    }

    /// Whether the work has ended; if not, `waker` is woken when it does.
    pub(crate) fn poll(&self, waker: &Waker) -> bool {
        if self.is_over() {
            return true;
        }
        let mut state = lock(&self.0.state);
        let wakers = match &mut *state {
            State::Pending(wakers) => wakers,
            #[cfg(feature = "cuda")]
            State::Remote(_, wakers) => wakers,
            State::Done | State::Failed(_) => return true,
        };
        if !wakers.iter().any(|w| w.will_wake(waker)) {
            wakers.push(waker.clone());
        }
        false
    }

    /// Whether nothing remains to wait for or to report.
    pub(crate) fn is_settled(&self) -> bool {
        match &*lock(&self.0.state) {
            State::Pending(_) => false,
            #[cfg(feature = "cuda")]
            State::Remote(..) => false,
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

    /// The error of work that has failed and of which nobody has been told, who now is, also of its cause.
    pub(crate) fn report(&self) -> Option<Error> {
        let (error, cause) = self.mark_reported()?;
        if let Some(cause) = cause {
            cause.mark_reported();
        }
        Some(error)
    }

    /// The error of work that has failed, for the caller who asked for just this work: the cause itself, if nobody has been
    /// told of it, rather than that something failed for its sake.
    #[cfg(feature = "cuda")]
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

/// Work that a device has.
#[cfg(feature = "cuda")]
impl Event {
    /// A device has got the work.
    pub(crate) fn give(&self, remote: Remote) {
        let mut state = lock(&self.0.state);
        if let State::Pending(wakers) = &mut *state {
            let wakers = std::mem::take(wakers);
            *state = State::Remote(Box::new(remote), wakers);
        }
        drop(state);
        self.0.changed.notify_all();
    }

    /// The point after the work, if a device has it and has not been asked how it ended.
    pub(crate) fn mark(&self) -> Option<Mark> {
        if let State::Remote(remote, _) = &*lock(&self.0.state) { Some(remote.mark.clone()) } else { None }
    }

    /// Settles work that has ended on its device, after all the work that it needs. Without recursion: chains of launches
    /// are as long as programs like.
    fn settle_remote(&self) {
        let mut chain = vec![self.clone()];
        while let Some(last) = chain.last() {
            match last.open_need() {
                Some(earlier) => chain.push(earlier),
                None => chain.pop().iter().for_each(Event::conclude),
            }
        }
    }

    /// Needed work that a device has and that has not been settled. It has ended, because the device waits for it.
    fn open_need(&self) -> Option<Event> {
        let state = lock(&self.0.state);
        let State::Remote(remote, _) = &*state else { return None };
        remote.needs.iter().find(|d| matches!(&*lock(&d.event.0.state), State::Remote(..))).map(|d| d.event.clone())
    }

    fn conclude(&self) {
        let mut state = lock(&self.0.state);
        let State::Remote(remote, wakers) = &mut *state else { return };
        // Locks go from later to earlier work here as everywhere.
        let failed = |d: &Dependency| d.event.error().map(|error| (d.event.clone(), error));
        let bad = remote.needs.iter().filter(|d| d.carries).find_map(failed);
        let finish = remote.finish.take();
        let ended = remote.mark.outcome(&remote.what);
        let told = match (&ended, finish) {
            (Ok(()), Some(finish)) => super::buffer::guarded(&remote.what, || finish(bad.is_none())),
            _ => Ok(()),
        };
        let outcome = match (ended, bad) {
            (Err(error), _) => Err(Failure::new(error, false)),
            (Ok(()), Some((earlier, error))) => Err(Failure::of_dependency(&remote.what, &earlier, error)),
            (Ok(()), None) => told.map_err(|error| Failure::new(error, false)),
        };
        let wakers = std::mem::take(wakers);
        *state = match outcome {
            Ok(()) => State::Done,
            Err(failure) => State::Failed(failure),
        };
        drop(state);
        self.0.changed.notify_all();
        wakers.into_iter().for_each(Waker::wake);
    }
}
