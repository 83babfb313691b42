//! What the library keeps: devices with memory, code objects; [`streams`] has streams as queues, and events, [`graph`] what they record.

mod graph;
mod streams;

use crate::runtime::host::HostBlock;
use crate::say;
use crate::setting::{Order, Settings};
use std::collections::BTreeMap;
use std::sync::Arc;
use streams::{Event, Stream};
use titan_amd::emu::{Args, DevicePtr, EmuError, Launch, Memory, Module, Options};
use titan_sim::engine::Rng;

/// A `hipError_t` that is no success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u32);

impl Code {
    pub(crate) const INVALID_VALUE: Code = Code(1);
    pub(crate) const OUT_OF_MEMORY: Code = Code(2);
    pub(crate) const NO_DEVICE: Code = Code(100);
    pub(crate) const INVALID_CONFIGURATION: Code = Code(9);
    pub(crate) const INVALID_DEVICE: Code = Code(101);
    pub(crate) const INVALID_IMAGE: Code = Code(200);
    pub(crate) const NO_BINARY: Code = Code(209);
    pub(crate) const INVALID_HANDLE: Code = Code(400);
    pub(crate) const ILLEGAL_STATE: Code = Code(401);
    pub(crate) const NOT_FOUND: Code = Code(500);
    pub(crate) const NOT_READY: Code = Code(600);
    pub(crate) const ILLEGAL_ADDRESS: Code = Code(700);
    pub(crate) const LAUNCH_FAILURE: Code = Code(719);
    pub(crate) const CAPTURE_UNSUPPORTED: Code = Code(900);
    pub(crate) const CAPTURE_INVALIDATED: Code = Code(901);
    pub(crate) const CAPTURE_WRONG_THREAD: Code = Code(908);
}

pub(crate) type Done<T = ()> = Result<T, Code>;

/// The handle of an object: never 0.
pub(crate) type Id = usize;

/// A launch.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) function: Id,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_lds: u32,
    pub(crate) args: Vec<u8>,
}

/// How the arguments of a kernel lie in memory: the offset and the size of each, and how many bytes there can be.
#[derive(Debug)]
pub(crate) struct Parameters {
    pub(crate) layout: Vec<(usize, usize)>,
    pub(crate) bytes: usize,
}

/// A device.
#[derive(Debug)]
struct Board {
    memory: Memory,
    allocated: BTreeMap<u64, usize>,
    /// The default stream, once it is used.
    default: Option<Id>,
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
    graphs: BTreeMap<Id, graph::Graph>,
    execs: BTreeMap<Id, graph::Exec>,
    /// Pinned memory of the host, by its address.
    pinned: BTreeMap<usize, HostBlock>,
    next: Id,
    rng: Rng,
    sticky: Option<Code>,
    calls: BTreeMap<&'static str, u64>,
}

/// The first handle: lower numbers stand for the default stream and the like.
const FIRST: Id = 16;

/// Windows of addresses of each device: none of two devices is the same.
const WINDOWS: u64 = 1 << 12;

impl World {
    pub(crate) fn new(settings: Settings) -> World {
        let seed = if let Order::Random(seed) = settings.order { seed } else { 0 };
        let board = |i: usize| {
            let first = 1 + i as u64 * WINDOWS;
            let memory = Memory::with_windows(first, first + WINDOWS - 1);
            Board { memory, allocated: BTreeMap::new(), default: None }
        };
        World {
            boards: (0..settings.devices.len()).map(board).collect(),
            settings,
            streams: BTreeMap::new(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            graphs: BTreeMap::new(),
            execs: BTreeMap::new(),
            pinned: BTreeMap::new(),
            next: FIRST,
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

    /// Allocates pinned memory: its address.
    pub(crate) fn pin(&mut self, bytes: usize) -> Done<usize> {
        let block = HostBlock::new(bytes).ok_or(Code::OUT_OF_MEMORY)?;
        let at = block.address();
        self.pinned.insert(at, block);
        Ok(at)
    }

    /// Frees pinned memory, which no copy that is pending may read.
    pub(crate) fn unpin(&mut self, at: usize) -> Done {
        if at == 0 {
            return Ok(());
        }
        let block = self.pinned.get(&at).ok_or(Code::INVALID_VALUE)?;
        if self.is_read(at, block.len()) {
            say("hipHostFree of memory that a copy still reads");
            self.sticky = Some(Code::ILLEGAL_ADDRESS);
            // It stays, so that the copy does not read memory of others.
            return Err(Code::ILLEGAL_ADDRESS);
        }
        self.pinned.remove(&at);
        Ok(())
    }

    /// Whether all these bytes belong to one allocation that is not freed.
    pub(crate) fn is_allocated(&self, address: u64, bytes: usize) -> Done {
        let inside = |board: &Board| {
            let before = board.allocated.range(..=address).next_back();
            before.is_some_and(|(base, size)| {
                let left = (*size as u64).checked_sub(address - base);
                left.is_some_and(|left| bytes as u64 <= left)
            })
        };
        if bytes == 0 || self.boards.iter().any(inside) { Ok(()) } else { Err(Code::INVALID_VALUE) }
    }

    pub(crate) fn memory(&self, device: usize) -> Done<(usize, usize)> {
        let used = self.boards.get(device).ok_or(Code::INVALID_DEVICE)?.used();
        Ok((self.settings.memory - used, self.settings.memory))
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
        // AMD's runtime finds kernels by their metadata.
        module.kernel(name).ok().filter(|k| k.entry().metadata.is_some()).ok_or(Code::NOT_FOUND)?;
        let id = self.id();
        self.functions.insert(id, (module, name.to_owned()));
        Ok(id)
    }

    /// How the arguments of a kernel lie in memory.
    pub(crate) fn parameters(&self, function: Id) -> Done<Parameters> {
        let (module, name) = self.functions.get(&function).ok_or(Code::INVALID_HANDLE)?;
        let kernel = module.kernel(name).map_err(|_| Code::INVALID_HANDLE)?;
        let visible = kernel.entry().args().iter().filter(|a| !a.kind.is_hidden());
        let layout = visible.map(|a| (a.offset as usize, a.size as usize)).collect();
        Ok(Parameters { layout, bytes: kernel.entry().descriptor.kernarg_bytes as usize })
    }

    /// What AMD's runtime refuses when a kernel is launched: `ihipLaunchKernel_validate` of its sources.
    fn check_launch(&self, job: &Job) -> Done {
        const LDS: u64 = 64 * 1024;
        const ITEMS: u64 = 1024;
        let (module, name) = self.functions.get(&job.function).ok_or(Code::INVALID_HANDLE)?;
        let kernel = module.kernel(name).map_err(|_| Code::INVALID_HANDLE)?;
        if job.grid.contains(&0) {
            return Err(Code::INVALID_VALUE);
        }
        if job.block.contains(&0) {
            return Err(Code::INVALID_CONFIGURATION);
        }
        let items = job.block.iter().try_fold(1_u64, |all, n| all.checked_mul(u64::from(*n)));
        if u64::from(job.dynamic_lds) > LDS || items.is_none_or(|n| n > ITEMS) {
            return Err(Code::INVALID_VALUE);
        }
        if items > Some(kernel.entry().max_workgroup_size().into()) {
            return Err(Code::LAUNCH_FAILURE);
        }
        if u64::from(kernel.entry().descriptor.group_segment_bytes) + u64::from(job.dynamic_lds) > LDS {
            return Err(Code::OUT_OF_MEMORY);
        }
        // What is left is refused by the emulator for reasons of its own.
        kernel.check_launch(&job.launch()).map_err(|error| {
            say(&error.to_string());
            Code::INVALID_CONFIGURATION
        })
    }
}

impl Job {
    fn launch(&self) -> Launch<'_> {
        Launch { grid: self.grid, block: self.block, dynamic_lds: self.dynamic_lds, args: Args::Packed(&self.args) }
    }
}

fn run_kernel(module: &Module, name: &str, job: &Job, memory: &mut Memory) -> Result<(), EmuError> {
    module.kernel(name)?.run(&job.launch(), memory, &Options::default()).map(drop)
}

impl Board {
    fn used(&self) -> usize {
        self.allocated.values().sum()
    }
}
