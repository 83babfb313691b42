//! Streams as queues, and events.
//!
//! The default stream of a device waits for all streams that block it, and they wait for it: an operation of one is preceded by marks in
//! its queue for what the others have been given so far.

use super::graph::Capture;
use super::{Code, Done, Id, Job, World, run_kernel};
use crate::runtime::host::{Source, Target};
use crate::say;
use crate::setting::Order;
use std::collections::VecDeque;
use std::time::Instant;
use titan_amd::emu::{DevicePtr, ErrorCode};

/// What a queue does.
#[derive(Debug)]
pub(super) enum Op {
    Fill {
        at: DevicePtr,
        value: u8,
        bytes: usize,
    },
    In {
        at: DevicePtr,
        from: Source,
    },
    Out {
        at: DevicePtr,
        to: Target,
    },
    Launch(Box<Job>),
    /// An event is recorded, for the so-many-th time.
    Record(Id, u64),
    /// The queue waits for that.
    Wait(Id, u64),
    /// The queue waits until so many operations of another stream are done.
    After(Id, u64),
}

#[derive(Debug, Default)]
pub(super) struct Event {
    /// Times that it was recorded, and of these, that the record has run.
    recorded: u64,
    reached: u64,
    /// Whether it has a time, and the time at which the latest record ran.
    timed: bool,
    at: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Stream {
    device: usize,
    /// Whether it and the default stream wait for each other.
    blocking: bool,
    queue: VecDeque<Op>,
    /// The operations that were enqueued, and how many of these have run.
    pub(super) issued: u64,
    done: u64,
    /// Whether it records its work instead of running it.
    pub(super) capture: Option<Capture>,
}

impl World {
    // Streams.

    /// Makes a stream; the default stream waits for it, and it for the default stream, if it is `blocking`.
    pub(crate) fn stream(&mut self, device: usize, blocking: bool) -> Id {
        let id = self.id();
        let stream = Stream { device, blocking, queue: VecDeque::new(), issued: 0, done: 0, capture: None };
        self.streams.insert(id, stream);
        id
    }

    /// The default stream of a device.
    pub(crate) fn default_stream(&mut self, device: usize) -> Id {
        if let Some(id) = self.boards.get(device).and_then(|b| b.default) {
            return id;
        }
        let id = self.stream(device, true);
        if let Some(board) = self.boards.get_mut(device) {
            board.default = Some(id);
        }
        id
    }

    /// The operations that a stream must wait for before its next one: for the default stream those of all that block it, for these those
    /// of the default stream.
    fn before(&self, stream: Id) -> Vec<(Id, u64)> {
        let Some(own) = self.streams.get(&stream).filter(|s| s.blocking) else { return Vec::new() };
        let default = self.boards.get(own.device).and_then(|b| b.default);
        let others = self.streams.iter().filter(|(id, s)| **id != stream && s.blocking && s.device == own.device);
        let others = others.filter(|(id, _)| default == Some(stream) || default == Some(**id));
        others.filter(|(_, s)| s.done < s.issued).map(|(id, s)| (*id, s.issued)).collect()
    }

    /// Destroys a stream. Its work still completes; here it runs now.
    pub(crate) fn end_stream(&mut self, stream: Id) -> Done {
        self.run_out(stream)?;
        if let Some(capture) = self.streams.remove(&stream).and_then(|s| s.capture) {
            self.end_graph(capture.graph())?;
        }
        Ok(())
    }

    pub(super) fn enqueue(&mut self, stream: Id, op: Op) -> Done {
        // A captured stream has recorded kernels before this.
        self.not_captured(stream, "work that is no kernel")?;
        let before = self.before(stream);
        let own = self.streams.get_mut(&stream).ok_or(Code::INVALID_HANDLE)?;
        let ops = before.into_iter().map(|(id, time)| Op::After(id, time)).chain([op]);
        for op in ops {
            own.queue.push_back(op);
            own.issued += 1;
        }
        match self.settings.order {
            Order::Late => Ok(()),
            Order::Early => {
                while self.run_one(None)? {}
                Ok(())
            }
            Order::Random(_) => self.run_some(),
        }
    }

    pub(crate) fn fill(&mut self, stream: Id, at: u64, value: u8, bytes: usize) -> Done {
        if bytes == 0 {
            return Ok(());
        }
        self.enqueue(stream, Op::Fill { at: DevicePtr::from_address(at), value, bytes })
    }

    pub(crate) fn copy_in(&mut self, stream: Id, at: u64, from: Source) -> Done {
        if from.len() == 0 {
            return Ok(());
        }
        self.enqueue(stream, Op::In { at: DevicePtr::from_address(at), from })
    }

    pub(crate) fn copy_out(&mut self, stream: Id, at: u64, to: Target) -> Done {
        if to.len() == 0 {
            return Ok(());
        }
        self.enqueue(stream, Op::Out { at: DevicePtr::from_address(at), to })
    }

    pub(crate) fn launch(&mut self, stream: Id, job: Job) -> Done {
        self.check_launch(&job)?;
        let Some(job) = self.recorded_by(stream, job)? else { return Ok(()) };
        self.enqueue(stream, Op::Launch(Box::new(job)))
    }

    /// Waits for a stream; for the default stream also for those that it would wait for.
    pub(crate) fn synchronize(&mut self, stream: Id) -> Done {
        self.not_captured(stream, "hipStreamSynchronize")?;
        for (other, _) in self.before(stream) {
            self.run_out(other)?;
        }
        self.run_out(stream)
    }

    /// Whether the stream is empty, and for the default stream those that it would wait for; makes some progress if not, so that polling
    /// terminates.
    pub(crate) fn query(&mut self, stream: Id) -> Done {
        self.not_captured(stream, "hipStreamQuery")?;
        self.run_one(None)?;
        let waits = !self.before(stream).is_empty();
        let stream = self.streams.get(&stream).ok_or(Code::INVALID_HANDLE)?;
        if stream.queue.is_empty() && !waits { Ok(()) } else { Err(Code::NOT_READY) }
    }

    // Events.

    pub(crate) fn event(&mut self, timed: bool) -> Id {
        let id = self.id();
        self.events.insert(id, Event { timed, ..Event::default() });
        id
    }

    pub(crate) fn record(&mut self, event: Id, stream: Id) -> Done {
        let state = self.events.get_mut(&event).ok_or(Code::INVALID_HANDLE)?;
        state.recorded += 1;
        let time = state.recorded;
        self.enqueue(stream, Op::Record(event, time))
    }

    pub(crate) fn wait(&mut self, stream: Id, event: Id) -> Done {
        let time = self.events.get(&event).ok_or(Code::INVALID_HANDLE)?.recorded;
        self.enqueue(stream, Op::Wait(event, time))
    }

    fn is_reached(&self, event: Id, time: u64) -> bool {
        self.events.get(&event).is_none_or(|e| e.reached >= time)
    }

    pub(crate) fn query_event(&mut self, event: Id) -> Done {
        self.run_one(None)?;
        let time = self.events.get(&event).ok_or(Code::INVALID_HANDLE)?.recorded;
        if self.is_reached(event, time) { Ok(()) } else { Err(Code::NOT_READY) }
    }

    pub(crate) fn synchronize_event(&mut self, event: Id) -> Done {
        let time = self.events.get(&event).ok_or(Code::INVALID_HANDLE)?.recorded;
        while !self.is_reached(event, time) {
            let holder =
                self.streams.iter().find(|(_, s)| s.queue.iter().any(|o| matches!(o, Op::Record(e, _) if *e == event)));
            let Some(stream) = holder.map(|(id, _)| *id) else { return Err(Code::INVALID_HANDLE) };
            self.step(stream)?;
        }
        Ok(())
    }

    /// The milliseconds between the latest records of two events, in the emulator's own time.
    pub(crate) fn elapsed(&self, from: Id, to: Id) -> Done<f32> {
        let [from, to] = [from, to].map(|id| self.events.get(&id).filter(|e| e.timed && e.recorded > 0));
        let (from, to) = (from.ok_or(Code::INVALID_HANDLE)?, to.ok_or(Code::INVALID_HANDLE)?);
        let at = |e: &Event| e.at.filter(|_| e.reached == e.recorded).ok_or(Code::NOT_READY);
        let (from, to) = (at(from)?, at(to)?);
        let milliseconds = |later: Instant, earlier: Instant| later.duration_since(earlier).as_secs_f32() * 1e3;
        Ok(if to >= from { milliseconds(to, from) } else { -milliseconds(from, to) })
    }

    // Running.

    /// Runs a random number of operations that can run.
    fn run_some(&mut self) -> Done {
        while self.rng.below(3) > 0 {
            if !self.run_one(None)? {
                break;
            }
        }
        Ok(())
    }

    /// Runs the first operation of some queue that can run; of this queue, if one is asked for. Whether there was one.
    fn run_one(&mut self, only: Option<Id>) -> Done<bool> {
        let can = |(id, s): (&Id, &Stream)| match s.queue.front() {
            None => None,
            Some(Op::Wait(event, time)) if !self.is_reached(*event, *time) => None,
            Some(Op::After(other, time)) if !self.is_done(*other, *time) => None,
            Some(_) => Some(*id),
        };
        let ready: Vec<Id> = self.streams.iter().filter_map(can).filter(|id| only.is_none_or(|o| o == *id)).collect();
        if ready.is_empty() {
            return Ok(false);
        }
        let random = matches!(self.settings.order, Order::Random(_));
        let id = ready[if random { self.rng.below(ready.len()) } else { 0 }];
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(false) };
        let device = stream.device;
        if let Some(op) = stream.queue.pop_front() {
            stream.done += 1;
            self.run(device, op)?;
        }
        Ok(true)
    }

    /// Whether a pending copy reads some of these bytes of the host.
    pub(super) fn is_read(&self, at: usize, bytes: usize) -> bool {
        let reads = |op: &Op| matches!(op, Op::In { from, .. } if from.meets(at, bytes));
        self.streams.values().any(|s| s.queue.iter().any(reads))
    }

    /// Whether so many operations of a stream are done.
    fn is_done(&self, stream: Id, time: u64) -> bool {
        self.streams.get(&stream).is_none_or(|s| s.done >= time)
    }

    /// Runs the next operation of a stream, or else what it waits for.
    fn step(&mut self, stream: Id) -> Done {
        if matches!(self.settings.order, Order::Random(_)) {
            self.run_some()?;
        }
        if self.run_one(Some(stream))? {
            return Ok(());
        }
        let (event, time) = match self.streams.get(&stream).and_then(|s| s.queue.front()) {
            Some(Op::Wait(event, time)) => (*event, *time),
            Some(Op::After(other, _)) => {
                let other = *other;
                return self.step(other);
            }
            _ => return Ok(()),
        };
        let records = |s: &Stream| s.queue.iter().any(|o| matches!(o, Op::Record(e, t) if *e == event && *t == time));
        let holder = self.streams.iter().find(|(_, s)| records(s)).map(|(id, _)| *id);
        holder.map_or(Err(Code::LAUNCH_FAILURE), |holder| self.step(holder))
    }

    fn run_out(&mut self, stream: Id) -> Done {
        while !self.streams.get(&stream).ok_or(Code::INVALID_HANDLE)?.queue.is_empty() {
            self.step(stream)?;
        }
        Ok(())
    }

    fn run(&mut self, device: usize, op: Op) -> Done {
        let Some(board) = self.boards.get_mut(device) else { return Err(Code::INVALID_DEVICE) };
        let memory = &mut board.memory;
        let done = match op {
            // What is no memory is refused before as much of the host's is allocated.
            Op::Fill { at, value, bytes } => {
                memory.check(at, bytes).and_then(|()| memory.write(at, &vec![value; bytes]))
            }
            Op::In { at, from } => memory.check(at, from.len()).and_then(|()| memory.write(at, &from.read())),
            Op::Out { at, to } => memory.read(at, to.len()).map(|bytes| to.write(&bytes)),
            Op::Launch(job) => {
                let Some((module, name)) = self.functions.get(&job.function) else { return Err(Code::INVALID_HANDLE) };
                run_kernel(module, name, &job, memory)
            }
            Op::Record(event, time) => {
                if let Some(event) = self.events.get_mut(&event) {
                    event.reached = event.reached.max(time);
                    event.at = Some(Instant::now());
                }
                Ok(())
            }
            Op::Wait(..) | Op::After(..) => Ok(()),
        };
        done.map_err(|error| {
            say(&error.to_string());
            let bad_access = matches!(error.code(), ErrorCode::OutOfBounds | ErrorCode::Permission);
            let code = if bad_access { Code::ILLEGAL_ADDRESS } else { Code::LAUNCH_FAILURE };
            self.sticky = Some(code);
            code
        })
    }
}
