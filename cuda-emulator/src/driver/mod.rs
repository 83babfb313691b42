//! The driver's state, and the effect of calls on it. All of it is safe code; pointers of the caller are values of
//! `runtime::host`.
//!
//! | module | contents |
//! |---|---|
//! | `context` | contexts of devices, the current one, sticky errors |
//! | `memory` | allocations, pools, pinned memory, owners of addresses |
//! | `stream`, `event` | handles of streams and events, and what they wait for |
//! | `queue` | pending operations, and the choice of the next one |
//! | `run` | the effect of an operation when it runs |
//! | `order` | the accesses of operations, and whether they are ordered |
//! | `module`, `launch` | code, its limits, and launches of it |
//! | `graph` | captures of streams, and launches of what they recorded |
//!
//! One lock protects everything. It is released while a thread waits, and while functions of the host are called.

mod context;
mod event;
mod graph;
mod launch;
mod memory;
mod module;
mod order;
mod queue;
mod run;
mod stream;

pub(crate) use context::{current, destroy_context, pop, push, release_primary, reset_primary, set_current};
pub(crate) use event::{record_event, wait_event};
pub(crate) use graph::launch_graph;
pub(crate) use launch::{Call, Grid, launch};
pub(crate) use memory::{Asked, Fact, allocate, copy, fill, free, free_async, unpin};
pub(crate) use module::{Log, unload_module};
pub(crate) use queue::{enqueue_call, force, inside_host_function, query};
pub(crate) use run::Place;
pub(crate) use stream::{LEGACY, PER_THREAD};

use crate::clock::Clock;
use crate::code::{Code, Done};
use crate::setting::Setting;
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::BTreeMap;

/// The driver, locked.
pub(crate) type Session = MutexGuard<'static, Driver>;

static DRIVER: Mutex<Driver> = Mutex::new(Driver::new());
/// Notified when an operation has completed.
static OVER: Condvar = Condvar::new();

/// Locks the driver.
pub(crate) fn session() -> Session {
    DRIVER.lock()
}

/// The complete state of the driver.
#[derive(Debug)]
pub(crate) struct Driver {
    setting: Option<Setting>,
    started: bool,
    handles: u64,
    devices: Vec<memory::Device>,
    contexts: BTreeMap<u64, context::Context>,
    streams: BTreeMap<u64, stream::Stream>,
    events: BTreeMap<u64, event::Event>,
    modules: BTreeMap<u64, module::Loaded>,
    functions: BTreeMap<u64, module::Function>,
    pinned: BTreeMap<u64, memory::Pinned>,
    graphs: BTreeMap<u64, graph::Graph>,
    execs: BTreeMap<u64, graph::Exec>,
    queue: queue::Queue,
    trace: order::Trace,
    /// The operations for which the host has waited.
    host: Clock,
}

impl Driver {
    const fn new() -> Driver {
        Driver {
            setting: None,
            started: false,
            handles: 0,
            devices: Vec::new(),
            contexts: BTreeMap::new(),
            streams: BTreeMap::new(),
            events: BTreeMap::new(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
            pinned: BTreeMap::new(),
            graphs: BTreeMap::new(),
            execs: BTreeMap::new(),
            queue: queue::Queue::new(),
            trace: order::Trace::new(),
            host: Clock::NONE,
        }
    }

    /// The settings; the environment is read at the first call.
    pub(crate) fn setting(&mut self) -> &mut Setting {
        self.setting.get_or_insert_with(Setting::of_environment)
    }

    /// Starts the driver: `cuInit`.
    pub(crate) fn start(&mut self) -> Done {
        let setting = self.setting().clone();
        for why in &setting.wrong {
            crate::say(why);
        }
        if !setting.wrong.is_empty() {
            return Err(Code::UNKNOWN);
        }
        if !self.started {
            self.devices = memory::Device::all(&setting.devices);
            self.queue.choose(setting.order);
            self.started = true;
        }
        if self.devices.is_empty() { Err(Code::NO_DEVICE) } else { Ok(()) }
    }

    /// Whether `cuInit` was called.
    pub(crate) const fn has_started(&self) -> bool {
        self.started
    }

    /// A new handle: not null, never used before, and not an address of anything.
    const fn handle(&mut self) -> u64 {
        self.handles += 1;
        0x6000_0000_0000 + 64 * self.handles
    }

    /// The number of devices.
    pub(crate) const fn devices(&self) -> usize {
        self.devices.len()
    }

    /// The device with an ordinal.
    pub(crate) fn device(&self, ordinal: i32) -> Done<&memory::Device> {
        usize::try_from(ordinal).ok().and_then(|i| self.devices.get(i)).ok_or(Code::INVALID_DEVICE)
    }
}
