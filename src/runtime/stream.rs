//! Streams: work that runs in the order in which it was launched, asynchronously to the calling thread.
//!
//! A stream of the CPU is a queue with one thread, which starts with the first launch and ends when the stream is dropped
//! and its queue is empty. The streams of devices with their own queues are in `remote.rs`.

use super::buffer::{Access, await_dependencies, guarded, schedule};
use super::capture;
use super::device::Device;
use super::event::{Event, Failure};
use super::launch::Work;
use super::lock;
#[cfg(feature = "_remote")]
use super::remote::Remote;
use super::uses::Dependency;
use crate::error::{Error, Result};
use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// An in-order queue of launches on one device. Clones are the same stream.
///
/// Launches on different streams run concurrently unless they use the same tensor and one of them writes it: then the later one
/// waits for the earlier one, automatically.
#[derive(Clone)]
pub struct Stream {
    device: Device,
    shared: Arc<Handle>,
}

/// The shared state of a stream's handles. The worker has only the queue, and ends when this is dropped. It has no handle of its
/// device, which owns such streams itself.
pub(crate) struct Handle {
    queue: Arc<Queue>,
    /// Used instead of the queue on devices that have lanes.
    #[cfg(feature = "_remote")]
    remote: Option<Remote>,
}

struct Queue {
    id: u64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    has_worker: bool,
    closed: bool,
    /// The end of the latest launch.
    last: Option<Event>,
    /// Launches that failed since the last `sync`.
    failed: Vec<Event>,
}

struct Job {
    what: Arc<str>,
    event: Event,
    waits: Vec<Dependency>,
    work: Work,
}

impl Stream {
    /// An empty stream.
    pub(crate) fn new(device: &Device) -> Stream {
        Stream::of(device, Handle::new(device))
    }

    /// The stream of a device with this handle.
    pub(crate) fn of(device: &Device, shared: Arc<Handle>) -> Stream {
        Stream { device: device.clone(), shared }
    }

    /// The device of the stream.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Blocks until everything that was launched here before this call has ended.
    ///
    /// # Errors
    /// The first failure on this stream that has not been reported; the other ones count as reported too.
    pub fn sync(&self) -> Result<()> {
        capture::refuse("`sync`", "the launches that were captured do not run", "wait after a replay")?;
        #[cfg(feature = "_remote")]
        if let Some(remote) = &self.shared.remote {
            return first_of(&remote.sync());
        }
        let last = lock(&self.shared.queue.state).last.clone();
        if let Some(event) = last {
            event.wait();
        }
        first_of(&std::mem::take(&mut lock(&self.shared.queue.state).failed))
    }

    /// Enters work into the buffers it uses and enqueues it. If it is `awaited`, the event wakes the task that polls it.
    pub(crate) fn enqueue(&self, what: Arc<str>, accesses: &[Access], work: Work, awaited: bool) -> Result<Event> {
        // A launch that is captured does not come here.
        capture::refuse(
            &what,
            "only launches by `.launch(&stream)` are recorded",
            "do it before or after the capture",
        )?;
        #[cfg(feature = "_remote")]
        if let Some(remote) = &self.shared.remote {
            return remote.enqueue(&self.device, what, accesses, work, awaited);
        }
        // The thread of the queue wakes the awaiting task.
        let _ = awaited;
        self.start_worker()?;
        let queue = &self.shared.queue;
        let event = Event::of_host(Some(queue.id));
        schedule(accesses, &event, |mut waits| {
            waits.retain(|d| d.carries || !event.follows_in_queue(&d.event));
            let mut state = lock(&queue.state);
            state.last = Some(event.clone());
            state.jobs.push_back(Job { what, event: event.clone(), waits, work });
        });
        queue.changed.notify_all();
        Ok(event)
    }

    fn start_worker(&self) -> Result<()> {
        let mut state = lock(&self.shared.queue.state);
        if !state.has_worker {
            let queue = Arc::clone(&self.shared.queue);
            let thread = std::thread::Builder::new().name(format!("titan-stream-{}", queue.id));
            thread.spawn(move || queue.work()).map_err(|e| Error::Thread { source: Arc::new(e) })?;
            state.has_worker = true;
        }
        Ok(())
    }
}

impl Queue {
    /// Runs jobs until the stream is closed and the queue is empty.
    fn work(&self) {
        loop {
            let state = lock(&self.state);
            let mut state = super::wait_while(&self.changed, state, |s| s.jobs.is_empty() && !s.closed);
            let Some(job) = state.jobs.pop_front() else { return };
            drop(state);
            self.run(job);
        }
    }

    fn run(&self, job: Job) {
        let Job { what, event, waits, work } = job;
        let outcome = match await_dependencies(&waits) {
            None => guarded(&what, || work.run()).map_err(|error| Failure::new(error, false)),
            Some((earlier, error)) => Err(Failure::of_dependency(&what, earlier, error)),
        };
        // The memory is released before the end becomes visible.
        drop(work);
        if outcome.is_err() {
            let failed = &mut lock(&self.state).failed;
            failed.retain(|e| !e.is_forgettable());
            failed.push(event.clone());
        }
        event.settle(outcome);
        event.wake();
    }
}

/// The first failure that has not been reported; from now on all count as reported.
fn first_of(failed: &[Event]) -> Result<()> {
    let mut errors = failed.iter().filter_map(Event::report);
    let first = errors.next();
    errors.for_each(drop);
    first.map_or(Ok(()), Err)
}

impl Handle {
    /// A number that no other stream has.
    fn next() -> u64 {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// An empty stream.
    pub(crate) fn new(device: &Device) -> Arc<Handle> {
        let id = Handle::next();
        let queue = Arc::new(Queue { id, state: Mutex::default(), changed: Condvar::new() });
        #[cfg(not(feature = "_remote"))]
        let _ = device;
        Arc::new(Handle {
            queue,
            #[cfg(feature = "_remote")]
            remote: device.is_remote().then(|| Remote::new(id)),
        })
    }
}

#[cfg(feature = "cudarc")]
impl Handle {
    /// A stream that gives its launches to this lane, which another library may use too.
    pub(super) fn over(lane: super::backend::Lane) -> Arc<Handle> {
        let id = Handle::next();
        let queue = Arc::new(Queue { id, state: Mutex::default(), changed: Condvar::new() });
        Arc::new(Handle { queue, remote: Some(Remote::over(id, lane)) })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        lock(&self.queue.state).closed = true;
        self.queue.changed.notify_all();
    }
}

impl PartialEq for Stream {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for Stream {}

impl Hash for Stream {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.shared).hash(state);
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").field("id", &self.shared.queue.id).field("device", &self.device).finish()
    }
}
