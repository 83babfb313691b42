//! What the library keeps: devices with memory, streams as queues, events, code objects.

use crate::runtime::host::{Source, Target};
use crate::say;
use crate::setting::{Order, Settings};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use titan_amd::emu::{Args, DevicePtr, EmuError, ErrorCode, Launch, Memory, Module, Options};
use titan_sim::engine::Rng;

/// A `hipError_t` that is no success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u32);

impl Code {
    pub(crate) const INVALID_VALUE: Code = Code(1);
    pub(crate) const OUT_OF_MEMORY: Code = Code(2);
    pub(crate) const NO_DEVICE: Code = Code(100);
    pub(crate) const INVALID_DEVICE: Code = Code(101);
    pub(crate) const INVALID_IMAGE: Code = Code(200);
    pub(crate) const NO_BINARY: Code = Code(209);
    pub(crate) const INVALID_HANDLE: Code = Code(400);
    pub(crate) const NOT_FOUND: Code = Code(500);
    pub(crate) const NOT_READY: Code = Code(600);
    pub(crate) const ILLEGAL_ADDRESS: Code = Code(700);
    pub(crate) const LAUNCH_FAILURE: Code = Code(719);
}

pub(crate) type Done<T = ()> = Result<T, Code>;

/// The handle of an object: never 0.
pub(crate) type Id = usize;

/// What a queue does.
#[derive(Debug)]
enum Op {
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
}

/// A launch.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) function: Id,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_lds: u32,
    pub(crate) args: Vec<u8>,
}

#[derive(Debug, Default)]
struct Event {
    /// Times that it was recorded, and of these, that the record has run.
    recorded: u64,
    reached: u64,
}

#[derive(Debug)]
struct Stream {
    device: usize,
    queue: VecDeque<Op>,
}

/// A device.
#[derive(Debug)]
struct Board {
    memory: Memory,
    allocated: BTreeMap<u64, usize>,
}

/// Everything.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) settings: Settings,
    boards: Vec<Board>,
    streams: BTreeMap<Id, Stream>,
    events: BTreeMap<Id, Event>,
    modules: BTreeMap<Id, Arc<Module>>,
    functions: BTreeMap<Id, (Arc<Module>, String)>,
    next: Id,
    rng: Rng,
    sticky: Option<Code>,
    calls: BTreeMap<&'static str, u64>,
}

/// Windows of addresses of each device: none of two devices is the same.
const WINDOWS: u64 = 1 << 12;

impl World {
    pub(crate) fn new(settings: Settings) -> World {
        let seed = if let Order::Random(seed) = settings.order { seed } else { 0 };
        let board = |i: usize| {
            let first = 1 + i as u64 * WINDOWS;
            Board { memory: Memory::with_windows(first, first + WINDOWS - 1), allocated: BTreeMap::new() }
        };
        World {
            boards: (0..settings.devices.len()).map(board).collect(),
            settings,
            streams: BTreeMap::new(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            next: 1,
            rng: Rng::new(seed),
            sticky: None,
            calls: BTreeMap::new(),
        }
    }

    /// A function is called: whether it fails by request, or because something failed before.
    pub(crate) fn called(&mut self, function: &'static str) -> Done {
        let count = self.calls.entry(function).or_default();
        *count += 1;
        if let Some(fault) = self.settings.fault.as_ref().filter(|f| f.function == function)
            && (*count == fault.call || fault.later && *count > fault.call)
        {
            return Err(Code(fault.code));
        }
        self.sticky.map_or(Ok(()), Err)
    }

    fn id(&mut self) -> Id {
        self.next += 1;
        self.next
    }

    pub(crate) fn device(&self, ordinal: i32) -> Done<usize> {
        usize::try_from(ordinal).ok().filter(|d| *d < self.boards.len()).ok_or(Code::INVALID_DEVICE)
    }

    // Memory.

    pub(crate) fn alloc(&mut self, device: usize, bytes: usize) -> Done<u64> {
        let limit = self.settings.memory;
        let board = self.boards.get_mut(device).ok_or(Code::INVALID_DEVICE)?;
        if bytes > limit - board.used() {
            return Err(Code::OUT_OF_MEMORY);
        }
        let name = format!("allocation {} of {bytes} bytes", board.allocated.len());
        let ptr = board.memory.try_alloc(&name, bytes).ok_or(Code::OUT_OF_MEMORY)?;
        board.allocated.insert(ptr.address(), bytes);
        Ok(ptr.address())
    }

    pub(crate) fn free(&mut self, address: u64) -> Done {
        if address == 0 {
            return Ok(());
        }
        let board = self.boards.iter_mut().find(|b| b.allocated.contains_key(&address));
        let board = board.ok_or(Code::INVALID_VALUE)?;
        board.allocated.remove(&address);
        board.memory.free(DevicePtr::from_address(address));
        Ok(())
    }

    pub(crate) fn memory(&self, device: usize) -> Done<(usize, usize)> {
        let used = self.boards.get(device).ok_or(Code::INVALID_DEVICE)?.used();
        Ok((self.settings.memory - used, self.settings.memory))
    }

    // Streams.

    pub(crate) fn stream(&mut self, device: usize) -> Id {
        let id = self.id();
        self.streams.insert(id, Stream { device, queue: VecDeque::new() });
        id
    }

    /// Destroys a stream. Its work still completes; here it runs now.
    pub(crate) fn end_stream(&mut self, stream: Id) -> Done {
        self.run_out(stream)?;
        self.streams.remove(&stream);
        Ok(())
    }

    fn enqueue(&mut self, stream: Id, op: Op) -> Done {
        self.streams.get_mut(&stream).ok_or(Code::INVALID_HANDLE)?.queue.push_back(op);
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
        self.enqueue(stream, Op::Fill { at: DevicePtr::from_address(at), value, bytes })
    }

    pub(crate) fn copy_in(&mut self, stream: Id, at: u64, from: Source) -> Done {
        self.enqueue(stream, Op::In { at: DevicePtr::from_address(at), from })
    }

    pub(crate) fn copy_out(&mut self, stream: Id, at: u64, to: Target) -> Done {
        self.enqueue(stream, Op::Out { at: DevicePtr::from_address(at), to })
    }

    pub(crate) fn launch(&mut self, stream: Id, job: Job) -> Done {
        let (module, name) = self.functions.get(&job.function).ok_or(Code::INVALID_HANDLE)?;
        let kernel = module.kernel(name).map_err(|_| Code::INVALID_HANDLE)?;
        let items = job.block.iter().try_fold(1_u32, |all, n| all.checked_mul(*n));
        let most = kernel.entry().max_workgroup_size();
        if items.is_none_or(|n| n == 0 || n > most) || job.grid.contains(&0) {
            return Err(Code(9));
        }
        self.enqueue(stream, Op::Launch(Box::new(job)))
    }

    pub(crate) fn synchronize(&mut self, stream: Id) -> Done {
        self.run_out(stream)
    }

    /// Whether the stream is empty; makes some progress if not, so that polling terminates.
    pub(crate) fn query(&mut self, stream: Id) -> Done {
        self.run_one(None)?;
        let stream = self.streams.get(&stream).ok_or(Code::INVALID_HANDLE)?;
        if stream.queue.is_empty() { Ok(()) } else { Err(Code::NOT_READY) }
    }

    // Events.

    pub(crate) fn event(&mut self) -> Id {
        let id = self.id();
        self.events.insert(id, Event::default());
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

    // Code.

    pub(crate) fn load(&mut self, device: usize, image: &[u8]) -> Done<Id> {
        let architecture = self.settings.devices.get(device).ok_or(Code::INVALID_DEVICE)?;
        if !architecture.starts_with("gfx942") {
            return Err(Code::NO_BINARY);
        }
        let module = Module::load(image).map_err(|e| {
            say(&e.to_string());
            Code::INVALID_IMAGE
        })?;
        let id = self.id();
        self.modules.insert(id, Arc::new(module));
        Ok(id)
    }

    pub(crate) fn function(&mut self, module: Id, name: &str) -> Done<Id> {
        let module = Arc::clone(self.modules.get(&module).ok_or(Code::INVALID_HANDLE)?);
        module.kernel(name).map_err(|_| Code::NOT_FOUND)?;
        let id = self.id();
        self.functions.insert(id, (module, name.to_owned()));
        Ok(id)
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
            self.run(device, op)?;
        }
        Ok(true)
    }

    /// Runs the next operation of a stream, or else what it waits for.
    fn step(&mut self, stream: Id) -> Done {
        if matches!(self.settings.order, Order::Random(_)) {
            self.run_some()?;
        }
        if self.run_one(Some(stream))? {
            return Ok(());
        }
        let front = self.streams.get(&stream).and_then(|s| s.queue.front());
        let Some(Op::Wait(event, time)) = front else { return Ok(()) };
        let (event, time) = (*event, *time);
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
            Op::Fill { at, value, bytes } => memory.write(at, &vec![value; bytes]),
            Op::In { at, from } => memory.write(at, &from.read()),
            Op::Out { at, to } => memory.read(at, to.len()).map(|bytes| to.write(&bytes)),
            Op::Launch(job) => {
                let Some((module, name)) = self.functions.get(&job.function) else { return Err(Code::INVALID_HANDLE) };
                run_kernel(module, name, &job, memory)
            }
            Op::Record(event, time) => {
                if let Some(event) = self.events.get_mut(&event) {
                    event.reached = event.reached.max(time);
                }
                Ok(())
            }
            Op::Wait(..) => Ok(()),
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

fn run_kernel(module: &Module, name: &str, job: &Job, memory: &mut Memory) -> Result<(), EmuError> {
    let (grid, block, dynamic_lds) = (job.grid, job.block, job.dynamic_lds);
    let launch = Launch { grid, block, dynamic_lds, args: Args::Packed(&job.args) };
    module.kernel(name)?.run(&launch, memory, &Options::default()).map(drop)
}

impl Board {
    fn used(&self) -> usize {
        self.allocated.values().sum()
    }
}
