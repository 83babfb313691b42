//! Streams of devices that execute work asynchronously.
//!
//! A launch is enqueued on the device by the thread that makes it. The device waits for the earlier work on it; the thread itself waits
//! only for work for which the device cannot wait: copies by the host, and launches that another thread is about to enqueue. Both are
//! earlier, and a waiting thread has entered its buffers and holds no lock on their tables, so there is no deadlock.

use super::backend::{Lane, Mark};
use super::buffer::{Access, guarded, schedule};
use super::device::Device;
use super::event::{self, Event, Failure};
use super::launch::Work;
use super::lock;
use super::uses::{Dependency, first_failure};
use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
#[cfg(all(feature = "hip", not(feature = "cuda")))]
use titan_amd::runtime::Once;
#[cfg(feature = "cuda")]
use titan_nv::runtime::Once;

/// The work that a stream has enqueued on its device.
pub(super) struct Remote {
    id: u64,
    lane: Once<Lane>,
    /// Held from the entry of a launch in its buffers until it is enqueued, so that the order of the lane is that of the entries.
    order: Mutex<()>,
    /// Launches that have been enqueued, or that failed before, oldest first, until they are known to have ended.
    running: Mutex<VecDeque<Event>>,
    /// Launches that failed since the last `sync`.
    failed: Mutex<Vec<Event>>,
    watcher: Arc<Watcher>,
}

/// A launch that is being enqueued.
struct Job {
    what: Arc<str>,
    work: Work,
    awaited: bool,
}

/// Launches of dropped streams. They are settled like all others, so that their reports are read.
static ORPHANS: Mutex<VecDeque<Event>> = Mutex::new(VecDeque::new());

impl Remote {
    /// The stream of this number. Its lane is created at its first launch.
    pub(super) fn new(id: u64) -> Remote {
        let (lane, order, running, failed) = (Once::new(), Mutex::default(), Mutex::default(), Mutex::default());
        Remote { id, lane, order, running, failed, watcher: Arc::default() }
    }

    /// The stream of this number over a lane that exists.
    #[cfg(feature = "cudarc")]
    pub(super) fn over(id: u64, lane: Lane) -> Remote {
        let remote = Remote::new(id);
        // Nothing has made one.
        let _ = remote.lane.get_or_try(|| Ok::<_, std::convert::Infallible>(lane));
        remote
    }

    /// Blocks until all launches so far have ended, and returns those that failed since the last call.
    pub(super) fn sync(&self) -> Vec<Event> {
        let running = lock(&self.running).clone();
        running.iter().for_each(Event::wait);
        self.look();
        std::mem::take(&mut lock(&self.failed))
    }

    /// Enters work into the buffers it uses and enqueues it on the device. After an error it has not been enqueued.
    pub(super) fn enqueue(
        &self,
        device: &Device,
        what: Arc<str>,
        accesses: &[Access],
        work: Work,
        awaited: bool,
    ) -> Result<Event> {
        let lane = self.lane.get_or_try(|| Lane::new(device))?;
        if awaited {
            self.watcher.start()?;
        }
        self.look();
        settle_front(&ORPHANS);
        let event = Event::of_device(Some(self.id));
        let (order, waits) = schedule(accesses, &event, |waits| (lock(&self.order), waits));
        self.give(lane, &event, Job { what, work, awaited }, waits)?;
        lock(&self.running).push_back(event.clone());
        drop(order);
        if awaited {
            self.watcher.watch(event.clone());
        }
        Ok(event)
    }

    /// Enqueues work on the device as soon as all work for which it must wait has been enqueued or has ended.
    fn give(&self, lane: &Lane, event: &Event, job: Job, waits: Vec<Dependency>) -> Result<()> {
        let Job { what, work, awaited } = job;
        waits.iter().for_each(|d| d.event.wait_until_given());
        if let Some((earlier, error)) = first_failure(&waits) {
            event.settle(Err(Failure::skipped(&what, earlier, error)));
            return Ok(());
        }
        let elsewhere = waits.iter().filter(|d| !event.follows_in_queue(&d.event));
        let after: Vec<Mark> = elsewhere.filter_map(|d| d.event.mark()).collect();
        let needs = waits.into_iter().filter(|d| d.carries).collect();
        // Dependents wait for the event, which must be settled in every case.
        let given = guarded(&what, || work.give(lane, &after, awaited)).inspect_err(|_| event.refuse())?;
        event.give(event::Remote { what, mark: given.mark, needs, finish: given.finish });
        Ok(())
    }

    /// Settles work that has ended, from the oldest launch to the first that is still running.
    fn look(&self) {
        let over = settle_front(&self.running);
        let mut failed = lock(&self.failed);
        failed.extend(over);
        failed.retain(|event| !event.is_forgettable());
    }
}

/// Settles and removes launches that have ended, from the oldest to the first that has not.
fn settle_front(launches: &Mutex<VecDeque<Event>>) -> Vec<Event> {
    let mut over = Vec::new();
    loop {
        // The queue is not locked meanwhile, because settling may run user code.
        let front = lock(launches).front().cloned();
        let Some(front) = front.filter(Event::is_over) else { return over };
        let mut launches = lock(launches);
        // Another thread may have removed it already.
        if launches.front().is_some_and(|event| event.is(&front)) {
            launches.pop_front();
            over.push(front);
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let running = std::mem::take(&mut *lock(&self.running));
        lock(&ORPHANS).extend(running);
        lock(&self.watcher.state).closed = true;
        self.watcher.changed.notify_all();
    }
}

/// Settles awaited launches when they end, and wakes their tasks. One thread, started with the first of them: a stream ends
/// its launches in order.
#[derive(Default)]
struct Watcher {
    state: Mutex<Watched>,
    changed: Condvar,
}

#[derive(Default)]
struct Watched {
    events: VecDeque<Event>,
    has_thread: bool,
    closed: bool,
}

impl Watcher {
    /// Starts the thread unless it is running.
    fn start(self: &Arc<Self>) -> Result<()> {
        let mut state = lock(&self.state);
        if !state.has_thread {
            let watcher = Arc::clone(self);
            let thread = std::thread::Builder::new().name("titan-await".to_owned());
            thread.spawn(move || watcher.work()).map_err(|e| Error::Thread { source: Arc::new(e) })?;
            state.has_thread = true;
        }
        Ok(())
    }

    fn watch(&self, event: Event) {
        lock(&self.state).events.push_back(event);
        self.changed.notify_all();
    }

    fn work(&self) {
        loop {
            let state = lock(&self.state);
            let mut state = super::wait_while(&self.changed, state, |s| s.events.is_empty() && !s.closed);
            let Some(event) = state.events.pop_front() else { return };
            drop(state);
            event.wait();
            event.wake();
        }
    }
}
