//! Memory: allocations of devices, their pools, pinned memory of the host, and the owner of an address.

use super::order::{reading, writing};
use super::run::{Place, Work};
use super::{Driver, Session, queue};
use crate::board::Fitted;
use crate::clock::OpId;
use crate::code::{Code, Done};
use crate::runtime::host::{HostBytes, Owned};
use std::collections::BTreeMap;
use titan_nv::emu::{DevicePtr, Memory};

/// The number of 4 GiB windows of all devices together: below the addresses that operating systems give to programs.
const WINDOWS: u64 = 0x5000;
/// The unit to which allocations are rounded when memory is counted, in bytes.
const GRAIN: u64 = 512;

/// A device.
#[derive(Debug)]
pub(crate) struct Device {
    pub(crate) fitted: Fitted,
    pub(super) memory: Memory,
    first: u64,
    last: u64,
    used: u64,
    high: u64,
    named: u64,
    allocations: BTreeMap<u64, Allocation>,
    /// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD` of the default pool.
    pub(crate) threshold: u64,
}

#[derive(Debug)]
struct Allocation {
    bytes: u64,
    /// Whether it is from the pool, so that freeing it does not wait.
    pooled: bool,
    /// Whether an operation that frees it is enqueued.
    leaving: bool,
    context: u64,
    name: String,
}

/// Pinned memory of the host.
#[derive(Debug)]
pub(crate) struct Pinned {
    pub(super) bytes: Owned,
    context: u64,
}

impl Device {
    /// All devices of the setting, each with its own windows.
    pub(super) fn all(fitted: &[Fitted]) -> Vec<Device> {
        let share = WINDOWS / (fitted.len() as u64).max(1);
        let make = |(i, fitted): (usize, &Fitted)| {
            let (first, last) = (1 + i as u64 * share, (i as u64 + 1) * share);
            Device {
                fitted: *fitted,
                memory: Memory::with_windows(first, last),
                first,
                last,
                used: 0,
                high: 0,
                named: 0,
                allocations: BTreeMap::new(),
                threshold: 0,
            }
        };
        fitted.iter().enumerate().map(make).collect()
    }

    const fn owns(&self, address: u64) -> bool {
        let window = address >> 32;
        self.first <= window && window <= self.last
    }

    /// The free and the total memory, in bytes.
    pub(crate) const fn room(&self) -> (u64, u64) {
        (self.fitted.memory.saturating_sub(self.used), self.fitted.memory)
    }

    /// The memory in use, and the largest use so far, in bytes.
    pub(crate) const fn usage(&self) -> (u64, u64) {
        (self.used, self.high)
    }

    fn allocate(&mut self, context: u64, bytes: u64, pooled: bool) -> Done<u64> {
        let room = bytes.checked_next_multiple_of(GRAIN).filter(|b| *b <= self.room().0).ok_or(Code::OUT_OF_MEMORY)?;
        let len = usize::try_from(bytes).map_err(|_| Code::OUT_OF_MEMORY)?;
        self.named += 1;
        let name = format!("allocation {}", self.named);
        let ptr = self.memory.try_alloc(&name, len).ok_or(Code::OUT_OF_MEMORY)?;
        self.used += room;
        self.high = self.high.max(self.used);
        self.allocations.insert(ptr.address(), Allocation { bytes, pooled, leaving: false, context, name });
        Ok(ptr.address())
    }

    fn free(&mut self, address: u64) {
        let Some(gone) = self.allocations.remove(&address) else { return };
        self.used = self.used.saturating_sub(gone.bytes.next_multiple_of(GRAIN));
        self.memory.free(DevicePtr::from_address(address));
    }

    /// The allocation that contains an address, and its first address.
    fn holding(&self, address: u64) -> Option<(u64, &Allocation)> {
        let (base, a) = self.allocations.range(..=address).next_back()?;
        (address - base < a.bytes).then_some((*base, a))
    }
}

/// The attribute that is requested of a pointer, by the numbers of `CUpointer_attribute`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Context,
    MemoryType,
    DevicePointer,
    HostPointer,
    IsManaged,
    Ordinal,
    Start,
    Size,
    Mapped,
}

/// The value of an attribute, with the width that the caller expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    Word(u64),
    Int(u32),
    Flag(bool),
}

/// `CU_MEMORYTYPE_HOST` and `CU_MEMORYTYPE_DEVICE`.
const HOST: u32 = 1;
const DEVICE: u32 = 2;

impl Driver {
    /// The device whose windows contain an address.
    pub(super) fn device_at(&self, address: u64) -> Option<&Device> {
        self.devices.iter().find(|d| d.owns(address))
    }

    pub(super) fn device_at_mut(&mut self, address: u64) -> Option<&mut Device> {
        self.devices.iter_mut().find(|d| d.owns(address))
    }

    /// The pinned memory that contains an address, and its first address.
    pub(super) fn pinned_at(&self, address: u64) -> Option<(u64, &Pinned)> {
        let (base, pinned) = self.pinned.range(..=address).next_back()?;
        (address - base < pinned.bytes.len() as u64).then_some((*base, pinned))
    }

    /// The description of an address in messages.
    pub(super) fn describe(&self, address: u64) -> Option<String> {
        if let Some((base, a)) = self.device_at(address).and_then(|d| d.holding(address)) {
            return Some(format!("byte {} of {} of {} bytes", address - base, a.name, a.bytes));
        }
        let (base, pinned) = self.pinned_at(address)?;
        Some(format!("byte {} of pinned memory of {} bytes", address - base, pinned.bytes.len()))
    }

    /// Checks that all bytes are in one live allocation of a device, as the driver does when a copy is enqueued.
    pub(crate) fn check_range(&self, address: u64, bytes: usize) -> Done {
        let device = self.device_at(address).ok_or(Code::INVALID_VALUE)?;
        device.memory.check(DevicePtr::from_address(address), bytes).map_err(|e| {
            crate::say(&e.to_string());
            Code::INVALID_VALUE
        })
    }

    /// Frees the memory of an operation that frees.
    pub(super) fn free_now(&mut self, address: u64) {
        self.device_at_mut(address).into_iter().for_each(|d| d.free(address));
    }

    /// Frees all memory of a context.
    pub(super) fn free_all(&mut self, context: u64) {
        for device in &mut self.devices {
            let own = device.allocations.iter().filter(|(_, a)| a.context == context);
            let own: Vec<u64> = own.map(|(base, _)| *base).collect();
            own.into_iter().for_each(|base| device.free(base));
        }
        self.pinned.retain(|_, p| p.context != context);
    }

    /// Allocates pinned memory for a context.
    pub(crate) fn pin(&mut self, context: u64, bytes: usize) -> Done<u64> {
        let bytes = Owned::new(bytes).ok_or(if bytes == 0 { Code::INVALID_VALUE } else { Code::OUT_OF_MEMORY })?;
        let base = bytes.address();
        self.pinned.insert(base, Pinned { bytes, context });
        Ok(base)
    }

    /// Whether a host pointer is to pinned memory of at least this many bytes.
    pub(crate) fn is_pinned(&self, address: u64, bytes: usize) -> bool {
        let holds = |(base, p): (u64, &Pinned)| address - base + bytes as u64 <= p.bytes.len() as u64;
        self.pinned_at(address).is_some_and(holds)
    }

    /// An attribute of a pointer; an error if the pointer is not from the driver.
    pub(crate) fn fact(&self, address: u64, asked: Asked) -> Done<Fact> {
        if let Some((base, p)) = self.pinned_at(address) {
            let device = self.device_of(p.context).unwrap_or(0);
            return Ok(match asked {
                Asked::Context => Fact::Word(p.context),
                Asked::MemoryType => Fact::Int(HOST),
                Asked::DevicePointer | Asked::HostPointer => Fact::Word(address),
                Asked::IsManaged => Fact::Flag(false),
                Asked::Ordinal => Fact::Int(u32::try_from(device).unwrap_or(0)),
                Asked::Start => Fact::Word(base),
                Asked::Size => Fact::Word(p.bytes.len() as u64),
                Asked::Mapped => Fact::Flag(true),
            });
        }
        let ordinal = self.devices.iter().position(|d| d.owns(address)).ok_or(Code::INVALID_VALUE)?;
        let (base, a) = self.devices.get(ordinal).and_then(|d| d.holding(address)).ok_or(Code::INVALID_VALUE)?;
        Ok(match asked {
            Asked::Context => Fact::Word(a.context),
            Asked::MemoryType => Fact::Int(DEVICE),
            Asked::DevicePointer => Fact::Word(address),
            // Device memory has no host pointer.
            Asked::HostPointer => return Err(Code::INVALID_VALUE),
            Asked::IsManaged => Fact::Flag(false),
            Asked::Ordinal => Fact::Int(u32::try_from(ordinal).unwrap_or(0)),
            Asked::Start => Fact::Word(base),
            Asked::Size => Fact::Word(a.bytes),
            Asked::Mapped => Fact::Flag(true),
        })
    }

    /// Sets the amount of memory that the pool should keep; the emulator keeps none.
    pub(crate) fn set_threshold(&mut self, ordinal: i32, bytes: u64) -> Done {
        self.device_mut(ordinal)?.threshold = bytes;
        Ok(())
    }

    /// Resets the highest usage to the current one.
    pub(crate) fn reset_high(&mut self, ordinal: i32) -> Done {
        let device = self.device_mut(ordinal)?;
        device.high = device.used;
        Ok(())
    }

    fn device_mut(&mut self, ordinal: i32) -> Done<&mut Device> {
        usize::try_from(ordinal).ok().and_then(|i| self.devices.get_mut(i)).ok_or(Code::INVALID_DEVICE)
    }

    /// The enqueued frees that would make room on a device.
    fn leaving(&self, device: usize) -> Vec<OpId> {
        let of = |at: u64| self.devices.get(device).is_some_and(|d| d.owns(at));
        let frees = self.queue.pending.values().filter(|op| matches!(op.work, Work::Free { at, .. } if of(at)));
        frees.map(|op| op.id).collect()
    }
}

/// Allocates on the context's device, or from the pool if a stream is given.
pub(crate) fn allocate(session: &mut Session, context: u64, bytes: usize, stream: Option<u64>) -> Done<u64> {
    let ordinal = session.device_of(context)?;
    if bytes == 0 {
        return Err(Code::INVALID_VALUE);
    }
    let pooled = stream.is_some();
    if pooled && !session.devices.get(ordinal).is_some_and(|d| d.fitted.pools) {
        return Err(Code::NOT_SUPPORTED);
    }
    let attempt = |s: &mut Session| {
        let device = s.devices.get_mut(ordinal).ok_or(Code::INVALID_DEVICE)?;
        device.allocate(context, bytes as u64, pooled)
    };
    let at = match attempt(session) {
        // Memory whose free is enqueued becomes available when the free runs.
        Err(Code::OUT_OF_MEMORY) => {
            let frees = session.leaving(ordinal);
            queue::force(session, context, frees)?;
            attempt(session)?
        }
        other => other?,
    };
    if let Some(stream) = stream {
        let label = format!("the allocation of {bytes} bytes");
        queue::enqueue(session, stream, label, Work::Birth { at, bytes: bytes as u64 })?;
    }
    Ok(at)
}

/// Frees memory: pool memory at once, other memory when the device is idle. CUDA Driver API, cuMemFree; programming
/// guide, "Stream Ordered Memory Allocator": cudaFree synchronises all streams.
pub(crate) fn free(session: &mut Session, context: u64, at: u64) -> Done {
    let (bytes, pooled) = {
        let a = session.device_at(at).and_then(|d| d.allocations.get(&at)).filter(|a| !a.leaving);
        let a = a.ok_or_else(|| not_freeable(session, at))?;
        (a.bytes, a.pooled)
    };
    if pooled {
        let conflict = session.trace.conflict("cuMemFree of the host", &session.host, &writing(at, bytes));
        if let Some(conflict) = conflict {
            session.fail(context, Code::LAUNCH_FAILED, &conflict.text);
        }
    } else {
        let device = session.device_of(context)?;
        let contexts: Vec<u64> = session.contexts.iter().filter(|(_, c)| c.device == device).map(|(h, _)| *h).collect();
        for c in contexts {
            let pending = session.pending_in(c);
            // An error of another context is reported there, not here.
            let _ = queue::force(session, c, pending);
            session.host_knows_context(c);
        }
    }
    session.free_now(at);
    session.sticky(context)
}

/// Frees memory in the order of a stream.
pub(crate) fn free_async(session: &mut Session, at: u64, stream: u64) -> Done {
    if session.device_at(at).is_some_and(|d| !d.fitted.pools) {
        return Err(Code::NOT_SUPPORTED);
    }
    let found = session.device_at_mut(at).and_then(|d| d.allocations.get_mut(&at)).filter(|a| !a.leaving);
    let Some(a) = found else { return Err(not_freeable(session, at)) };
    a.leaving = true;
    let (bytes, label) = (a.bytes, format!("the free of {}", a.name));
    queue::enqueue(session, stream, label, Work::Free { at, bytes }).map(drop)
}

fn not_freeable(driver: &Driver, at: u64) -> Code {
    let name = driver.device_at(at).and_then(|d| d.memory.check(DevicePtr::from_address(at), 1).err());
    let why = name
        .map_or_else(|| "not the first byte of an allocation, or already being freed".to_owned(), |e| e.to_string());
    crate::say(&format!("free of {at:#x}: {why}"));
    Code::INVALID_VALUE
}

/// Frees pinned memory, which must not be in use.
pub(crate) fn unpin(session: &mut Session, context: u64, at: u64) -> Done {
    let bytes = session.pinned.get(&at).ok_or(Code::INVALID_VALUE)?.bytes.len() as u64;
    let holds = |place: &Place| matches!(place, Place::Host(h) if (at..at + bytes).contains(&h.address()));
    let uses = |op: &&queue::Op| op.work.copied().is_some_and(|(from, to, _)| holds(from) || holds(to));
    let users: Vec<(OpId, String)> =
        session.queue.pending.values().filter(uses).map(|op| (op.id, op.label.clone())).collect();
    if let Some((_, label)) = users.first() {
        let report = format!("cuMemFreeHost of {bytes} bytes at {at:#x} that are still needed: {label} has not run");
        session.fail(context, Code::LAUNCH_FAILED, &report);
    } else if let Some(c) = session.trace.conflict("cuMemFreeHost of the host", &session.host, &writing(at, bytes)) {
        session.fail(context, Code::LAUNCH_FAILED, &c.text);
    }
    // Pending operations are run first nevertheless, so that none refers to freed memory.
    let rest = session.pending_in(context);
    let _ = queue::force(session, context, rest);
    session.pinned.remove(&at);
    session.sticky(context)
}

/// Enqueues a copy. The host waits for it where the driver makes it wait: for copies to pageable memory, and if `waits`.
pub(crate) fn copy(session: &mut Session, stream: u64, (from, to): (Place, Place), bytes: usize, waits: bool) -> Done {
    if bytes == 0 {
        return Ok(());
    }
    let context = session.stream(stream)?.context;
    for place in [&from, &to] {
        if let Place::Device(at) = place {
            session.check_range(*at, bytes)?;
        }
    }
    let pinned = |s: &Session, h: &HostBytes| s.is_pinned(h.address(), bytes);
    // Pageable memory is read at once.
    let from = if let Place::Host(h) = &from
        && !pinned(session, h)
    {
        Place::Taken(h.read(bytes))
    } else {
        from
    };
    let waits = waits || matches!(&to, Place::Host(h) if !pinned(session, h));
    if let Place::Host(h) = &to {
        spoil(session, h, bytes);
    }
    let label = match (&from, &to) {
        (Place::Device(_), Place::Device(_)) => format!("a copy of {bytes} bytes on the device"),
        (_, Place::Device(_)) => format!("a copy of {bytes} bytes to the device"),
        _ => format!("a copy of {bytes} bytes to the host"),
    };
    let op = queue::enqueue(session, stream, label, Work::Copy { from, to, bytes })?;
    if waits {
        queue::force(session, context, vec![op])?;
        session.host_knows_stream(stream);
    }
    Ok(())
}

/// Overwrites the host memory that a pending copy will write, unless another pending operation still needs it.
fn spoil(session: &Session, to: &HostBytes, bytes: usize) {
    let (start, end) = (to.address(), to.address() + bytes as u64);
    let meets = |place: &Place, n: usize| matches!(place, Place::Host(h) if h.address() < end && start < h.address() + n as u64);
    let lent = session.pinned_at(start).is_some();
    let needed = session.queue.pending.values().any(|op| match op.work.copied() {
        Some((from, to, n)) => meets(from, n) || meets(to, n),
        None => lent && matches!(op.work, Work::Launch(_)),
    });
    let unordered = session.trace.conflict("", &session.host, &reading(start, bytes as u64)).is_some();
    if !needed && !unordered {
        to.write(0, &vec![0xFF; bytes]);
    }
}

/// Enqueues a fill with a pattern.
pub(crate) fn fill(
    session: &mut Session,
    stream: u64,
    at: u64,
    (pattern, count): (Vec<u8>, usize),
    waits: bool,
) -> Done {
    let width = pattern.len() as u64;
    let bytes = count.checked_mul(pattern.len()).ok_or(Code::INVALID_VALUE)?;
    if bytes == 0 {
        return Ok(());
    }
    if width == 0 || !at.is_multiple_of(width) {
        return Err(Code::INVALID_VALUE);
    }
    session.check_range(at, bytes)?;
    let context = session.stream(stream)?.context;
    let op = queue::enqueue(session, stream, format!("a fill of {bytes} bytes"), Work::Fill { at, pattern, bytes })?;
    if waits {
        queue::force(session, context, vec![op])?;
        session.host_knows_stream(stream);
    }
    Ok(())
}
