//! Global memory: the data of launches, and the loaded code objects.
//!
//! Each allocation begins in its own window of 4 GiB: no wrong 32-bit index leads from one allocation to another, and the
//! loss of the upper half of an address is detected.

use super::error::{EmuError, ErrorCode, Report, Site};
use super::shaded::{self, Parts};
use super::vectors::Origin;
use crate::object::CodeObject;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use titan_sim::engine::{AllocationId, Fault, Space};

/// The number of freed allocations that are remembered, so that a late use is reported as such.
const REMEMBERED: usize = 4096;
/// The first address of an allocation, relative to the start of its window.
const SKEW: u64 = 0x4000_0100;
const WINDOW: u64 = 0x1_0000_0000;
/// The position of the local data share and of private memory among generic addresses (LLVM, "Address Spaces"; the values are
/// those of AMD's driver for this generation).
pub(crate) const SHARED_APERTURE: u64 = 0x0001_0000_0000_0000;
pub(crate) const PRIVATE_APERTURE: u64 = 0x0002_0000_0000_0000;
/// The last window below the apertures.
const LAST_WINDOW: u64 = SHARED_APERTURE / WINDOW - 1;

/// The address of an allocation, or inside one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DevicePtr(u64);

impl DevicePtr {
    /// The null pointer.
    pub const NULL: DevicePtr = DevicePtr(0);

    /// Makes a pointer from an address.
    #[must_use]
    pub const fn from_address(address: u64) -> DevicePtr {
        DevicePtr(address)
    }

    /// The address as a number.
    #[must_use]
    pub const fn address(self) -> u64 {
        self.0
    }

    /// The pointer that is `bytes` bytes further.
    #[must_use]
    pub const fn add(self, bytes: i64) -> DevicePtr {
        DevicePtr(self.0.wrapping_add_signed(bytes))
    }
}

/// A store of undefined bits: its instruction, and where the bits come from.
pub(crate) type Stored = (Site, String);

/// The number of bytes whose stores with undefined bits are remembered in a launch.
const MAX_NOTES: usize = 4096;

/// The global memory of an emulated device.
#[derive(Clone, Debug)]
pub struct Memory {
    space: Space,
    /// The bytes that are defined in part.
    parts: Parts,
    /// For bytes that the launch in progress has stored with undefined bits: the address of the instruction, and the origin of the bits.
    notes: BTreeMap<u64, (u64, Origin)>,
    /// The same for earlier launches, in words.
    stored: BTreeMap<u64, Arc<Stored>>,
    /// The windows from the first one on, the next one that was never used, and the last one.
    first: u64,
    window: u64,
    last: u64,
    by_base: BTreeMap<u64, AllocationId>,
    /// The allocations that are freed and remembered, oldest first.
    freed: VecDeque<(u64, AllocationId)>,
    /// The addresses of loaded code objects, by their hash.
    objects: BTreeMap<u128, u64>,
    /// The windows whose allocations are forgotten, for reuse.
    spare: VecDeque<u64>,
}

impl Default for Memory {
    fn default() -> Self {
        Memory::new()
    }
}

impl Memory {
    /// Creates memory without allocations.
    #[must_use]
    pub fn new() -> Memory {
        Memory::with_windows(1, LAST_WINDOW)
    }

    /// Creates memory whose allocations use only a range of 4 GiB windows, so that several memories share no address.
    #[must_use]
    pub fn with_windows(first: u64, last: u64) -> Memory {
        Memory {
            space: Space::new("global"),
            parts: Parts::default(),
            notes: BTreeMap::new(),
            stored: BTreeMap::new(),
            first: first.max(1),
            window: first.max(1),
            last: last.min(LAST_WINDOW),
            by_base: BTreeMap::new(),
            freed: VecDeque::new(),
            objects: BTreeMap::new(),
            spare: VecDeque::new(),
        }
    }

    /// Allocates undefined bytes under a name for messages; `None` if no window is left or the host lacks memory.
    pub fn try_alloc(&mut self, name: &str, bytes: usize) -> Option<DevicePtr> {
        let windows = 1 + SKEW.checked_add(bytes as u64)? / WINDOW;
        if self.window.checked_add(windows)? <= self.last.saturating_add(1) {
            let ptr = self.alloc_at(name, self.window * WINDOW + SKEW, bytes)?;
            self.window += windows;
            return Some(ptr);
        }
        if windows > 1 {
            return None;
        }
        // This ends: there are fewer remembered allocations each time.
        while self.spare.is_empty() && self.forget_oldest() {}
        let window = self.spare.pop_front()?;
        self.alloc_at(name, window * WINDOW + SKEW, bytes)
    }

    /// Allocates undefined bytes.
    ///
    /// # Errors
    /// [`ErrorCode::Launch`], if there is no room.
    pub fn alloc(&mut self, name: &str, bytes: usize) -> Result<DevicePtr, EmuError> {
        let full = || EmuError::new(ErrorCode::Launch, format!("no room for {bytes} bytes of `{name}`"));
        self.try_alloc(name, bytes).ok_or_else(full)
    }

    /// Allocates undefined bytes at a given address; `None` if some of them are already allocated.
    pub fn alloc_at(&mut self, name: &str, base: u64, bytes: usize) -> Option<DevicePtr> {
        let id = self.space.allocate(name, base, bytes)?;
        self.by_base.insert(base, id);
        Some(DevicePtr(base))
    }

    /// Allocates memory with these contents.
    ///
    /// # Errors
    /// As [`Memory::alloc`].
    pub fn upload(&mut self, name: &str, bytes: &[u8]) -> Result<DevicePtr, EmuError> {
        let ptr = self.alloc(name, bytes.len())?;
        // No allocation holds the address of no bytes.
        if !bytes.is_empty() {
            self.write(ptr, bytes)?;
        }
        Ok(ptr)
    }

    /// Frees an allocation, given its first address. Later uses are errors that name it, until thousands of other allocations are freed.
    pub fn free(&mut self, ptr: DevicePtr) {
        if let Some(id) = self.by_base.get(&ptr.0).copied().filter(|id| self.space.free(*id)) {
            self.freed.push_back((ptr.0, id));
        }
        if self.freed.len() > REMEMBERED {
            self.forget_oldest();
        }
    }

    /// Forgets the allocation that was freed first, of those that are remembered; false if there is none.
    fn forget_oldest(&mut self) -> bool {
        let Some((base, id)) = self.freed.pop_front() else { return false };
        if self.by_base.get(&base) == Some(&id) {
            self.forget(DevicePtr(base));
        }
        true
    }

    /// Forgets an allocation, freed or not: later uses are no longer reported as such, and its addresses may be allocated again.
    pub fn forget(&mut self, ptr: DevicePtr) {
        if let Some(id) = self.by_base.remove(&ptr.0) {
            let bytes = self.space.describe(id).map_or(0, |d| d.2);
            self.space.forget(id);
            self.parts.clear(ptr.0, bytes);
            let noted: Vec<u64> = self.stored.range(ptr.0..ptr.0 + bytes as u64).map(|(a, _)| *a).collect();
            noted.iter().for_each(|a| drop(self.stored.remove(a)));
            // Parts of a code object share a window. Others than those given out in turn are not given out again: those at addresses of a caller's.
            let (window, end) = (ptr.0 / WINDOW, (ptr.0 + bytes as u64) / WINDOW);
            let is_empty = self.by_base.range(window * WINDOW..(window + 1) * WINDOW).next().is_none();
            if is_empty && window == end && (self.first..self.window).contains(&window) {
                self.spare.push_back(window);
            }
        }
    }

    /// Forbids kernels and the host to write to an allocation, or allows it again.
    pub fn set_writable(&mut self, ptr: DevicePtr, writable: bool) {
        if let Some(id) = self.by_base.get(&ptr.0) {
            self.space.set_writable(*id, writable);
        }
    }

    /// Whether all these bytes belong to one live allocation.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfBounds`], [`ErrorCode::Permission`].
    pub fn check(&self, ptr: DevicePtr, len: usize) -> Result<(), EmuError> {
        self.space.check(ptr.0, len).map(drop).map_err(|f| fault(&self.space, &f))
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfBounds`], [`ErrorCode::Permission`].
    pub fn write(&mut self, ptr: DevicePtr, bytes: &[u8]) -> Result<(), EmuError> {
        self.space.write(ptr.0, bytes).map_err(|f| fault(&self.space, &f))?;
        self.parts.clear(ptr.0, bytes.len());
        Ok(())
    }

    /// Copies bytes, written or not.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfBounds`], [`ErrorCode::Permission`].
    pub fn copy(&mut self, from: DevicePtr, to: DevicePtr, len: usize) -> Result<(), EmuError> {
        self.space.copy(from.0, to.0, len).map_err(|f| fault(&self.space, &f))?;
        self.parts.copy(from.0, to.0, len);
        Ok(())
    }

    /// Reads bytes that were all written, with bits that are defined.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfBounds`], [`ErrorCode::Permission`], [`ErrorCode::Uninitialised`].
    pub fn read(&self, ptr: DevicePtr, len: usize) -> Result<Vec<u8>, EmuError> {
        let mut out = vec![0; len];
        self.space.read(ptr.0, &mut out).map_err(|f| self.unreadable(&f))?;
        Ok(out)
    }

    /// The error for a fault of a read; for undefined bits that a kernel has stored, with the store.
    fn unreadable(&self, fault: &Fault) -> EmuError {
        let error = self::fault(&self.space, fault);
        let Fault::Undefined { address, allocation } = fault else { return error };
        let Some(stored) = self.stored.get(address) else { return error };
        let (name, base) = self.space.describe(*allocation).map_or(("?", 0), |(name, base, _)| (name, base));
        let message = format!("byte {} of `{name}` has undefined bits", address - base);
        let (site, what) = &**stored;
        let report = Report { message, other: Some((site.clone(), what.clone())), ..error.report().clone() };
        EmuError::from_report(report)
    }

    /// Reads bytes, written or not; those that were not written are `0xFF`.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfBounds`], [`ErrorCode::Permission`].
    pub fn read_any(&self, ptr: DevicePtr, len: usize) -> Result<Vec<u8>, EmuError> {
        let mut out = vec![0; len];
        self.space.read_any(ptr.0, &mut out).map_err(|f| fault(&self.space, &f))?;
        Ok(out)
    }

    /// The undefined bits of bytes: those that were never written, and those that depend on such.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfBounds`], [`ErrorCode::Permission`].
    pub fn undefined_bits(&self, ptr: DevicePtr, len: usize) -> Result<Vec<u8>, EmuError> {
        let (mut bytes, mut shadows) = (vec![0; len], vec![0; len]);
        self.load_bytes(ptr.0, &mut bytes, &mut shadows).map_err(|f| fault(&self.space, &f))?;
        Ok(shadows)
    }

    /// The memory of the engine, for messages.
    pub(crate) const fn space(&self) -> &Space {
        &self.space
    }

    /// Reads bytes and the shadow of each.
    pub(crate) fn load_bytes(&self, address: u64, bytes: &mut [u8], shadows: &mut [u8]) -> Result<(), Fault> {
        shaded::read(&self.space, &self.parts, address, bytes, shadows).map(drop)
    }

    /// Writes bytes with the shadow of each.
    pub(crate) fn store_bytes(&mut self, address: u64, bytes: &[u8], shadows: &[u8]) -> Result<(), Fault> {
        shaded::write(&mut self.space, &mut self.parts, address, bytes, shadows)
    }

    /// Whether bytes may be written.
    pub(crate) fn may_write(&self, address: u64, len: usize) -> Result<(), Fault> {
        let allocation = self.space.check(address, len)?;
        if self.space.is_writable(allocation) { Ok(()) } else { Err(Fault::ReadOnly { address, allocation }) }
    }

    /// Records that the instruction at `pc` stores undefined bits in a byte.
    pub(crate) fn note(&mut self, address: u64, pc: u64, origin: Origin) {
        if self.notes.len() < MAX_NOTES {
            self.notes.insert(address, (pc, origin));
        }
    }

    /// Keeps what a launch has recorded, in words.
    pub(crate) fn keep_notes(&mut self, words: impl Fn(u64, Origin) -> Stored) {
        let mut known: BTreeMap<(u64, Origin), Arc<Stored>> = BTreeMap::new();
        for (address, (pc, origin)) in std::mem::take(&mut self.notes) {
            let stored = known.entry((pc, origin)).or_insert_with(|| Arc::new(words(pc, origin)));
            self.stored.insert(address, Arc::clone(stored));
        }
    }

    /// Loads a code object, once, and returns the address of its image.
    pub(crate) fn load(&mut self, hash: u128, object: &CodeObject) -> Result<u64, EmuError> {
        if let Some(base) = self.objects.get(&hash) {
            return Ok(*base);
        }
        // An aligned address in its own window.
        let base = self.alloc("code object", 0)?.0.next_multiple_of(0x1000);
        let mut image = object.image.clone();
        for place in &object.relative {
            let at = usize::try_from(*place).unwrap_or(usize::MAX);
            let word = image.get(at..at.saturating_add(8)).and_then(|b| <[u8; 8]>::try_from(b).ok());
            let value = word.map_or(0, u64::from_le_bytes).wrapping_add(base);
            if let Some(b) = image.get_mut(at..at.saturating_add(8)) {
                b.copy_from_slice(&value.to_le_bytes());
            }
        }
        let mut at = 0;
        let end = image.len() as u64;
        for range in &object.writable {
            self.place(base, at..range.start, &image, false)?;
            self.place(base, range.clone(), &image, true)?;
            at = range.end;
        }
        self.place(base, at..end, &image, false)?;
        self.objects.insert(hash, base);
        Ok(base)
    }

    fn place(&mut self, base: u64, range: std::ops::Range<u64>, image: &[u8], writable: bool) -> Result<(), EmuError> {
        if range.is_empty() {
            return Ok(());
        }
        let full = || EmuError::new(ErrorCode::Object, "no room for the code object");
        let part = |v: u64| usize::try_from(v).map_err(|_| full());
        let bytes = image.get(part(range.start)?..part(range.end)?).ok_or_else(full)?;
        let name = if writable { "variables of the code object" } else { "the code object" };
        let ptr = self.alloc_at(name, base + range.start, bytes.len()).ok_or_else(full)?;
        self.write(ptr, bytes)?;
        self.set_writable(ptr, writable);
        Ok(())
    }

    /// Frees a code object's memory.
    pub(crate) fn unload(&mut self, hash: u128, object: &CodeObject) {
        let Some(base) = self.objects.remove(&hash) else { return };
        let end = base + object.image.len() as u64;
        // With what holds its window.
        let parts: Vec<u64> = self.by_base.range(base / WINDOW * WINDOW..end).map(|(b, _)| *b).collect();
        parts.into_iter().for_each(|b| self.free(DevicePtr(b)));
    }
}

/// The error code for a fault.
pub(crate) const fn code_of(fault: &Fault) -> ErrorCode {
    match fault {
        Fault::OutOfBounds { .. } => ErrorCode::OutOfBounds,
        Fault::Freed { .. } | Fault::ReadOnly { .. } => ErrorCode::Permission,
        Fault::Undefined { .. } => ErrorCode::Uninitialised,
    }
}

fn fault(space: &Space, fault: &Fault) -> EmuError {
    EmuError::new(code_of(fault), space.explain(fault))
}
