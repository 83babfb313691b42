//! Pending operations, and the choice of the next one.
//!
//! An operation waits for those that its stream, events and the legacy default stream's rule put before it (CUDA Driver
//! API, "Stream synchronization behavior"). The setting determines when it runs; operations run in the thread whose call
//! makes them run. Only functions of the host have a thread of their own, and are called without the lock: they may wait
//! for locks of the program that another caller of the driver holds. If such a function is pending and no thread calls the driver, its
//! thread runs the operations before it, because the program may be waiting for the function.

use super::run::{self, Work};
use super::{Driver, OVER, Session};
use crate::clock::{Clock, OpId};
use crate::code::{Code, Done};
use crate::runtime::host::HostCall;
use crate::setting::Order;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// An operation of a stream.
#[derive(Debug)]
pub(crate) struct Op {
    pub(super) id: OpId,
    pub(super) stream: u64,
    pub(super) context: u64,
    /// The operations for which it waits.
    pub(super) after: Vec<OpId>,
    /// The operations that are ordered before it, including itself.
    pub(super) clock: Clock,
    pub(super) label: String,
    pub(super) work: Work,
}

/// The operations that are not over.
#[derive(Debug)]
pub(crate) struct Queue {
    next: OpId,
    pub(super) pending: BTreeMap<OpId, Op>,
    /// The functions of the host that are being called.
    running: BTreeMap<OpId, Clock>,
    order: Order,
    random: u64,
    /// The number of calls so far, by which the thread of host functions notices that the program is busy.
    pub(crate) calls: u64,
    functions: Option<Sender<Job>>,
}

/// A message to the thread that calls host functions.
#[derive(Debug)]
enum Job {
    /// A function is pending.
    Pending,
    /// A function must be called now.
    Call(OpId, HostCall),
}

/// The time without calls of the driver after which a pending host function is run.
const IDLE: Duration = Duration::from_millis(3);

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is calling a function of the host, which must not call the driver.
pub(crate) fn inside_host_function() -> bool {
    INSIDE.get()
}

impl Queue {
    pub(super) const fn new() -> Queue {
        Queue {
            next: 1,
            pending: BTreeMap::new(),
            running: BTreeMap::new(),
            order: Order::Late,
            random: 0,
            calls: 0,
            functions: None,
        }
    }

    pub(super) const fn choose(&mut self, order: Order) {
        self.order = order;
        if let Order::Random(seed) = order {
            self.random = seed;
        }
    }

    /// Whether an operation is over.
    pub(super) fn is_over(&self, op: OpId) -> bool {
        !self.pending.contains_key(&op) && !self.running.contains_key(&op)
    }

    /// Whether nothing is pending or running.
    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty() && self.running.is_empty()
    }

    /// The clocks of the operations that are not over.
    pub(super) fn clocks(&self) -> impl Iterator<Item = &Clock> {
        self.pending.values().map(|op| &op.clock).chain(self.running.values())
    }

    /// The operations of a context that are not over.
    pub(super) fn of_context(&self, context: u64) -> Vec<OpId> {
        let pending = self.pending.values().filter(|op| op.context == context).map(|op| op.id);
        pending.chain(self.running.keys().copied()).collect()
    }

    fn is_ready(&self, op: OpId) -> bool {
        self.pending.get(&op).is_some_and(|op| op.after.iter().all(|a| self.is_over(*a)))
    }

    fn ready(&self) -> Vec<OpId> {
        self.pending.keys().copied().filter(|op| self.is_ready(*op)).collect()
    }

    /// These operations and all that must be over before them, oldest first.
    fn needed(&self, targets: &[OpId]) -> BTreeSet<OpId> {
        let (mut needed, mut open) = (BTreeSet::new(), targets.to_vec());
        while let Some(op) = open.pop() {
            if !self.is_over(op) && needed.insert(op) {
                open.extend(self.pending.get(&op).into_iter().flat_map(|op| &op.after));
            }
        }
        needed
    }

    /// Chooses one of several operations at random, by SplitMix64.
    fn pick(&mut self, of: &[OpId]) -> Option<OpId> {
        let n = u64::try_from(of.len()).ok().filter(|n| *n > 0)?;
        of.get(usize::try_from(self.chance() % n).unwrap_or(0)).copied()
    }

    const fn chance(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.random ^ self.random >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
}

impl Driver {
    /// Records that the host has waited for the operations of a clock.
    pub(crate) fn host_knows(&mut self, clock: &Clock) {
        self.host.join(clock);
        self.tidy_up();
    }

    /// Records that the host has waited for all operations enqueued on a stream.
    pub(crate) fn host_knows_stream(&mut self, stream: u64) {
        let clock = self.streams.get(&stream).map(|s| s.clock.clone());
        clock.iter().for_each(|c| self.host_knows(c));
    }

    /// Records that the host has waited for a whole context.
    pub(crate) fn host_knows_context(&mut self, context: u64) {
        let clocks: Vec<Clock> =
            self.streams.values().filter(|s| s.context == context).map(|s| s.clock.clone()).collect();
        clocks.iter().for_each(|c| self.host.join(c));
        self.trace.teach(context, &mut self.host);
        self.tidy_up();
    }

    /// Removes accesses that can no longer be part of a conflict; if none remain, clocks are reset.
    fn tidy_up(&mut self) {
        self.trace.forget(&self.host, &self.queue);
        if self.queue.is_idle() && self.trace.is_empty() {
            self.host.clear();
            self.streams.values_mut().for_each(|s| s.clock.clear());
            self.forget_events();
        }
    }

    /// The operations of a context that are not over.
    pub(crate) fn pending_in(&self, context: u64) -> Vec<OpId> {
        self.queue.of_context(context)
    }

    /// Counts a call by the program.
    pub(crate) const fn count_call(&mut self) {
        self.queue.calls += 1;
    }
}

/// Enqueues an operation.
pub(crate) fn enqueue(session: &mut Session, stream: u64, label: String, work: Work) -> Done<OpId> {
    enqueue_after(session, stream, (label, work), None)
}

/// Enqueues a function of the host.
pub(crate) fn enqueue_call(session: &mut Session, stream: u64, call: HostCall) -> Done {
    enqueue(session, stream, "a function of the host".to_owned(), Work::Call(call)).map(drop)
}

/// Enqueues an operation that also waits for another.
pub(super) fn enqueue_after(
    session: &mut Session,
    stream: u64,
    (label, work): (String, Work),
    extra: Option<(OpId, Clock)>,
) -> Done<OpId> {
    let driver = &mut **session;
    // A captured stream has recorded kernels before this.
    driver.not_captured(stream, &label)?;
    driver.not_implicit(stream)?;
    let s = driver.stream(stream)?;
    let (context, blocking) = (s.context, s.blocking);
    let null = driver.context(context)?.null;
    let (mut after, mut clock): (Vec<OpId>, Clock) = (s.last.into_iter().collect(), driver.host.clone());
    clock.join(&s.clock);
    for (other, o) in
        driver.streams.iter().filter(|(h, o)| blocking && o.context == context && o.blocking && **h != stream)
    {
        if stream == null || *other == null {
            after.extend(o.last);
            clock.join(&o.clock);
        }
    }
    if let Some((op, known)) = extra {
        after.push(op);
        clock.join(&known);
    }
    after.retain(|op| !driver.queue.is_over(*op));
    let id = driver.queue.next;
    driver.queue.next += 1;
    clock.learn(stream, id);
    let is_default = if stream == null { "the default stream" } else { "stream" };
    let label = format!("{label} (operation {id} on {is_default} {stream:#x})");
    if let Some(s) = driver.streams.get_mut(&stream) {
        (s.last, s.clock) = (Some(id), clock.clone());
    }
    let calls = matches!(work, Work::Call(_));
    driver.queue.pending.insert(id, Op { id, stream, context, after, clock, label, work });
    if calls {
        tell(session, Job::Pending);
    }
    eager(session);
    Ok(id)
}

/// Runs the operations that the chosen order runs at their enqueue.
fn eager(session: &mut Session) {
    match session.queue.order {
        Order::Late => {}
        Order::Early => loop {
            let ready = session.queue.ready();
            if ready.is_empty() {
                break;
            }
            ready.into_iter().for_each(|op| step(session, op));
        },
        Order::Random(_) => {
            for _ in 0..session.queue.chance() % 3 {
                let ready = session.queue.ready();
                if let Some(op) = session.queue.pick(&ready) {
                    step(session, op);
                }
            }
        }
    }
}

/// Runs one operation that is ready.
fn step(session: &mut Session, op: OpId) {
    let Some(op) = session.queue.pending.remove(&op) else { return };
    let healthy = session.sticky(op.context).is_ok();
    // After an error, functions are not called: CUDA Driver API, cuLaunchHostFunc.
    if healthy && let Work::Call(call) = op.work {
        session.queue.running.insert(op.id, op.clock);
        tell(session, Job::Call(op.id, call));
    } else {
        run::execute(session, op);
    }
    OVER.notify_all();
}

/// Completes operations, running all that must be over before them. Returns the sticky error of the context, if it has one then.
pub(crate) fn force(session: &mut Session, context: u64, targets: Vec<OpId>) -> Done {
    let needed = session.queue.needed(&targets);
    if let Order::Random(_) = session.queue.order {
        while needed.iter().any(|op| !session.queue.is_over(*op)) {
            let ready = session.queue.ready();
            match session.queue.pick(&ready) {
                Some(op) => step(session, op),
                None => OVER.wait(session),
            }
        }
    } else {
        for op in needed {
            while !session.queue.is_over(op) {
                if session.queue.is_ready(op) { step(session, op) } else { OVER.wait(session) }
            }
        }
    }
    session.sticky(context)
}

/// Whether an operation has completed; if not, makes some progress, so that polling terminates.
pub(crate) fn query(session: &mut Session, context: u64, op: Option<OpId>) -> Done {
    let Some(op) = op.filter(|op| !session.queue.is_over(*op)) else { return session.sticky(context) };
    let needed = session.queue.needed(&[op]);
    let ready: Vec<OpId> = needed.into_iter().filter(|op| session.queue.is_ready(*op)).collect();
    let chosen =
        if let Order::Random(_) = session.queue.order { session.queue.pick(&ready) } else { ready.first().copied() };
    chosen.into_iter().for_each(|op| step(session, op));
    session.sticky(context)?;
    Err(Code::NOT_READY)
}

/// Sends a job to the thread of host functions, which is started with the first of them.
fn tell(session: &mut Session, job: Job) {
    let functions = session.queue.functions.get_or_insert_with(|| {
        let (sender, receiver) = channel();
        std::thread::spawn(move || serve(&receiver));
        sender
    });
    // The thread ends only with the process.
    let _ = functions.send(job);
}

/// The loop of the thread of host functions.
fn serve(jobs: &Receiver<Job>) {
    let mut seen = 0;
    let mut waiting = false;
    loop {
        let job =
            if waiting { jobs.recv_timeout(IDLE) } else { jobs.recv().map_err(|_| RecvTimeoutError::Disconnected) };
        match job {
            Ok(Job::Pending) => {}
            Ok(Job::Call(op, call)) => {
                INSIDE.set(true);
                call.call();
                INSIDE.set(false);
                let mut session = super::session();
                if let Some(clock) = session.queue.running.remove(&op) {
                    session.host_knows(&clock);
                }
                OVER.notify_all();
                eager(&mut session);
            }
            Err(RecvTimeoutError::Timeout) => {
                let mut session = super::session();
                if session.queue.calls == seen {
                    bring_about(&mut session);
                }
                seen = session.queue.calls;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        }
        waiting = super::session().queue.pending.values().any(|op| matches!(op.work, Work::Call(_)));
    }
}

/// Runs the operations before the oldest pending function, and lets it be called.
fn bring_about(session: &mut Session) {
    let oldest = session.queue.pending.values().find(|op| matches!(op.work, Work::Call(_))).map(|op| op.id);
    let Some(function) = oldest else { return };
    // The function is not waited for, since this is the thread that would call it.
    for op in session.queue.needed(&[function]) {
        if session.queue.is_ready(op) {
            step(session, op);
        }
    }
}
