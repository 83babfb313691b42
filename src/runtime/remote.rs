//! Streams of devices that run work by themselves.
//!
//! A launch is given to the device by the thread that makes it. What it must wait for is told to the device; the thread itself
//! waits only for what the device does not know: copies by the host, and launches that another thread is about to give.
//! Both are earlier, and whoever waits here has entered its buffers and holds none of their tables, so waiting cannot go in
//! circles.

use super::backend::{Lane, Mark};
use super::buffer::{Access, Dependency, schedule};
use super::device::Device;
use super::event::{self, Event, Failure};
use super::launch::Work;
use super::lock;
use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, OnceLock};

/// What a stream has given to its device.
pub(super) struct Remote {
    id: u64,
    lane: OnceLock<Result<Lane>>,
    /// Held from the entry of a launch in its buffers until the device has it: the order of the lane is that of the entries.
    order: Mutex<()>,
    state: Mutex<State>,
    watcher: Arc<Watcher>,
}

/// A launch on its way to the device.
struct Job {
    what: Arc<str>,
    work: Work,
    awaited: bool,
}

#[derive(Default)]
struct State {
    /// Launches that have not been seen to end, oldest first.
    running: VecDeque<Event>,
    /// Launches that failed since the last `sync`.
    failed: Vec<Event>,
}

/// Launches of streams that are gone. They are settled like all others, or their reports would never be read.
static ORPHANS: Mutex<VecDeque<Event>> = Mutex::new(VecDeque::new());

impl Remote {
    /// The stream of this number. It gets its lane with its first launch.
    pub(super) fn new(id: u64) -> Remote {
        let (lane, order, state) = (OnceLock::new(), Mutex::default(), Mutex::default());
        Remote { id, lane, order, state, watcher: Arc::default() }
    }

    /// Blocks until all launches so far have ended, and gives those that failed since the last call.
    pub(super) fn sync(&self) -> Vec<Event> {
        let last = lock(&self.state).running.back().cloned();
        if let Some(event) = last {
            event.wait();
        }
        let mut state = lock(&self.state);
        state.look();
        std::mem::take(&mut state.failed)
    }

    /// Enters work into the buffers it uses and gives it to the device.
    pub(super) fn enqueue(
        &self,
        device: &Device,
        what: Arc<str>,
        accesses: &[Access],
        work: Work,
        awaited: bool,
    ) -> Result<Event> {
        let lane = self.lane.get_or_init(|| Lane::new(device)).as_ref().map_err(Clone::clone)?;
        look_at_orphans();
        let event = Event::new(Some(self.id));
        let (order, waits) = schedule(accesses, &event, |waits| (lock(&self.order), waits));
        let given = self.give(lane, &event, Job { what, work, awaited }, waits);
        let mut state = lock(&self.state);
        state.look();
        state.running.push_back(event.clone());
        drop(state);
        drop(order);
        given?;
        if awaited {
            self.watcher.watch(event.clone())?;
        }
        Ok(event)
    }

    /// Gives work to the device as soon as that knows all that it must wait for.
    fn give(&self, lane: &Lane, event: &Event, job: Job, waits: Vec<Dependency>) -> Result<()> {
        let Job { what, work, awaited } = job;
        waits.iter().for_each(|d| d.event.wait_until_given());
        let failed = |d: &Dependency| d.event.error().map(|error| (d.event.clone(), error));
        if let Some((earlier, error)) = waits.iter().filter(|d| d.carries).find_map(failed) {
            event.settle(Err(Failure::of_dependency(&what, &earlier, error)));
            return Ok(());
        }
        let elsewhere = waits.iter().filter(|d| !event.follows_in_queue(&d.event));
        let after: Vec<Mark> = elsewhere.filter_map(|d| d.event.mark()).collect();
        let needs = waits.into_iter().filter(|d| d.carries).collect();
        // Dependents wait for the event: it must be settled whatever happens.
        let given = super::buffer::guarded(&what, || work.give(lane, &after, awaited));
        match given {
            Ok(given) => event.give(event::Remote { what, mark: given.mark, needs, finish: given.finish }),
            Err(error) => {
                event.settle(Err(Failure::new(error.clone(), true)));
                return Err(error);
            }
        }
        Ok(())
    }
}

impl State {
    /// Settles what has ended, from the oldest launch to the first that has not.
    fn look(&mut self) {
        while self.running.front().is_some_and(Event::is_over) {
            self.failed.extend(self.running.pop_front().filter(|event| !event.is_settled()));
        }
        self.failed.retain(|event| !event.is_settled());
    }
}

fn look_at_orphans() {
    let mut orphans = lock(&ORPHANS);
    while orphans.front().is_some_and(Event::is_over) {
        orphans.pop_front();
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let running = std::mem::take(&mut lock(&self.state).running);
        lock(&ORPHANS).extend(running);
        lock(&self.watcher.state).closed = true;
        self.watcher.changed.notify_all();
    }
}

/// Settles awaited launches when they end. One thread, started with the first of them: a stream ends its launches in order.
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
    fn watch(self: &Arc<Self>, event: Event) -> Result<()> {
        let mut state = lock(&self.state);
        if !state.has_thread {
            let watcher = Arc::clone(self);
            let thread = std::thread::Builder::new().name("titan-await".to_owned());
            thread.spawn(move || watcher.work()).map_err(|e| Error::Thread { source: Arc::new(e) })?;
            state.has_thread = true;
        }
        state.events.push_back(event);
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    fn work(&self) {
        loop {
            let state = lock(&self.state);
            let mut state = super::wait_while(&self.changed, state, |s| s.events.is_empty() && !s.closed);
            let Some(event) = state.events.pop_front() else { return };
            drop(state);
            event.wait();
        }
    }
}
