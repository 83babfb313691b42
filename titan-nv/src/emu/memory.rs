//! Device memory: the data of launches, and the mapping of generic addresses.
//!
//! Each allocation begins in its own window of 4 GiB, aligned to 256 bytes and no more, with unmapped addresses before
//! and after: no wrong 32-bit index leads from one allocation to another, and addresses do not fit 32 bits.

use super::ast::Ast;
use super::error::{EmuError, ErrorCode};
use super::touched::{Touch, Touched};
use super::ty::Space as PtxSpace;
use std::collections::{BTreeMap, VecDeque};
use titan_sim::engine::{AllocationId, Fault, Space};

/// The number of freed allocations that are remembered, so that a late use is reported as such.
const REMEMBERED: usize = 4096;
/// The first address of an allocation, relative to the start of its window.
const SKEW: u64 = 0x4000_0100;
/// The first generic address of each space. Global addresses are their own generic addresses, below all these.
const WINDOWS: [(PtxSpace, u64); 4] = [
    (PtxSpace::Shared, 0x01_0000_0000_0000),
    (PtxSpace::Local, 0x01_0001_0000_0000),
    (PtxSpace::Const, 0x01_0002_0000_0000),
    (PtxSpace::Param, 0x01_0003_0000_0000),
];
const WINDOW: u64 = 0x1_0000_0000;

/// The generic address of an address in a space. Constant variables live in global memory here.
pub(crate) fn to_generic(space: PtxSpace, address: u64) -> u64 {
    match space {
        PtxSpace::Shared | PtxSpace::Cluster | PtxSpace::Local | PtxSpace::Param => {
            let space = if space == PtxSpace::Cluster { PtxSpace::Shared } else { space };
            WINDOWS.iter().find(|(s, _)| *s == space).map_or(address, |(_, base)| base.wrapping_add(address))
        }
        PtxSpace::Global | PtxSpace::Const | PtxSpace::Generic => address,
    }
}

/// The space of a generic address, and the address in that space.
pub(crate) fn from_generic(address: u64) -> (PtxSpace, u64) {
    let window = WINDOWS.iter().find(|(_, base)| (*base..base + WINDOW).contains(&address));
    window.map_or((PtxSpace::Global, address), |(space, base)| (*space, address - base))
}

/// The address of an allocation, or inside one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DevicePtr(u64);

impl DevicePtr {
    /// Makes a pointer from an address.
    #[must_use]
    pub const fn from_address(address: u64) -> DevicePtr {
        DevicePtr(address)
    }

    /// The null pointer.
    pub const NULL: DevicePtr = DevicePtr(0);

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

/// The global memory of an emulated device.
#[derive(Clone, Debug)]
pub struct Memory {
    pub(crate) space: Space,
    window: u64,
    by_base: BTreeMap<u64, AllocationId>,
    /// Variables of modules, by the module's hash and the name.
    variables: BTreeMap<(u128, String), u64>,
    /// The last window that allocations may use.
    last: u64,
    /// The allocations that are freed and remembered, oldest first.
    freed: VecDeque<(u64, AllocationId)>,
    /// The windows whose allocations are forgotten, for reuse.
    spare: VecDeque<u64>,
    touched: Option<Touched>,
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
        Memory::with_windows(1, u64::MAX)
    }

    /// Creates memory whose allocations use only a range of 4 GiB windows, so that several memories share no address.
    #[must_use]
    pub fn with_windows(first: u64, last: u64) -> Memory {
        Memory {
            space: Space::new("global"),
            window: first.max(1),
            by_base: BTreeMap::new(),
            variables: BTreeMap::new(),
            last,
            freed: VecDeque::new(),
            spare: VecDeque::new(),
            touched: None,
        }
    }

    /// Allocates undefined bytes, named `buffer1`, `buffer2`, and so on in messages.
    pub fn alloc(&mut self, bytes: usize) -> DevicePtr {
        let name = format!("buffer{}", self.by_base.len() + 1);
        self.alloc_named(&name, bytes)
    }

    /// Allocates undefined bytes under a name for messages.
    pub fn alloc_named(&mut self, name: &str, bytes: usize) -> DevicePtr {
        let base = self.window * WINDOW + SKEW;
        self.window += 1 + (SKEW + bytes as u64) / WINDOW;
        if let Some(id) = self.space.allocate(name, base, bytes) {
            self.by_base.insert(base, id);
        }
        DevicePtr(base)
    }

    /// Allocates undefined bytes; `None` if no window is left or the host lacks memory.
    pub fn try_alloc(&mut self, name: &str, bytes: usize) -> Option<DevicePtr> {
        let windows = 1 + SKEW.checked_add(bytes as u64)? / WINDOW;
        if self.window.checked_add(windows)? <= self.last.saturating_add(1) {
            let ptr = self.alloc_at(name, self.window.checked_mul(WINDOW)?.checked_add(SKEW)?, bytes)?;
            self.window += windows;
            return Some(ptr);
        }
        let window = (windows == 1).then(|| self.spare.pop_front()).flatten()?;
        self.alloc_at(name, window * WINDOW + SKEW, bytes)
    }

    /// Allocates undefined bytes at a given address; `None` if some of them are already allocated.
    pub fn alloc_at(&mut self, name: &str, base: u64, bytes: usize) -> Option<DevicePtr> {
        let id = self.space.allocate(name, base, bytes)?;
        self.by_base.insert(base, id);
        Some(DevicePtr(base))
    }

    /// Removes an allocation, given its first address, freed or not: later uses are no longer reported as such, and its addresses
    /// may be allocated again.
    pub fn forget(&mut self, ptr: DevicePtr) {
        let base = ptr.0;
        if let Some(id) = self.by_base.remove(&base) {
            let bytes = self.space.describe(id).map_or(0, |d| d.2);
            self.space.forget(id);
            if base % WINDOW == SKEW && 1 + (SKEW + bytes as u64) / WINDOW == 1 {
                self.spare.push_back(base / WINDOW);
            }
        }
    }

    /// Starts to record which bytes are accessed.
    pub fn watch(&mut self) {
        self.touched = Some(Touched::default());
    }

    /// The bytes that kernels accessed since [`Memory::watch`]; ends the recording.
    pub fn touched(&mut self) -> Touched {
        let mut touched = self.touched.take().unwrap_or_default();
        touched.settle();
        touched
    }

    pub(crate) fn touch(&mut self, how: Touch, address: u64, bytes: u32) {
        if let Some(touched) = &mut self.touched {
            touched.note(how, address, bytes.into());
        }
    }

    /// Copies bytes, written or not; source and destination may be in the same allocation.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfBounds`], [`ErrorCode::Permission`].
    pub fn copy(&mut self, from: DevicePtr, to: DevicePtr, len: usize) -> Result<(), EmuError> {
        self.space.copy(from.0, to.0, len).map_err(|f| fault(&self.space, &f))
    }

    /// Reads bytes, and which of them were written.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfBounds`], [`ErrorCode::Permission`].
    pub fn extract(&self, ptr: DevicePtr, len: usize) -> Result<(Vec<u8>, Vec<bool>), EmuError> {
        self.space.extract(ptr.0, len).map_err(|f| fault(&self.space, &f))
    }

    /// Writes the result of [`Memory::extract`].
    ///
    /// # Errors
    /// [`ErrorCode::OutOfBounds`], [`ErrorCode::Permission`].
    pub fn insert(&mut self, ptr: DevicePtr, bytes: &[u8], written: &[bool]) -> Result<(), EmuError> {
        self.space.insert(ptr.0, bytes, written).map_err(|f| fault(&self.space, &f))
    }

    /// Whether all these bytes belong to one live allocation.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfBounds`], [`ErrorCode::Permission`].
    pub fn check(&self, ptr: DevicePtr, len: usize) -> Result<(), EmuError> {
        self.space.check(ptr.0, len).map(drop).map_err(|f| fault(&self.space, &f))
    }

    /// Allocates memory with these contents.
    pub fn upload(&mut self, name: &str, bytes: &[u8]) -> DevicePtr {
        let ptr = self.alloc_named(name, bytes.len());
        // The write is within the new allocation, so it succeeds.
        let _ = self.space.write(ptr.0, bytes);
        ptr
    }

    /// Frees an allocation, given its first address. Later uses are errors that name it, until thousands of other allocations are freed.
    pub fn free(&mut self, ptr: DevicePtr) {
        if let Some(id) = self.by_base.get(&ptr.0).copied().filter(|id| self.space.free(*id)) {
            self.freed.push_back((ptr.0, id));
        }
        if self.freed.len() > REMEMBERED
            && let Some((base, id)) = self.freed.pop_front()
            && self.by_base.get(&base) == Some(&id)
        {
            self.forget(DevicePtr(base));
        }
    }

    /// Forbids kernels and the host to write to an allocation, or allows it again.
    pub fn set_writable(&mut self, ptr: DevicePtr, writable: bool) {
        if let Some(id) = self.by_base.get(&ptr.0) {
            self.space.set_writable(*id, writable);
        }
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfBounds`], [`ErrorCode::Permission`].
    pub fn write(&mut self, ptr: DevicePtr, bytes: &[u8]) -> Result<(), EmuError> {
        self.space.write(ptr.0, bytes).map_err(|f| fault(&self.space, &f))
    }

    /// Reads bytes that were all written.
    ///
    /// # Errors
    /// [`ErrorCode::OutOfBounds`], [`ErrorCode::Permission`], [`ErrorCode::Uninitialised`].
    pub fn read(&self, ptr: DevicePtr, len: usize) -> Result<Vec<u8>, EmuError> {
        let mut out = vec![0; len];
        self.space.read(ptr.0, &mut out).map_err(|f| fault(&self.space, &f))?;
        Ok(out)
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

    /// Allocates a module's variables, once, and returns their addresses.
    pub(crate) fn load(&mut self, module: u128, ast: &Ast, names: &[String]) -> Result<Vec<u64>, EmuError> {
        let vars = || {
            let all = ast.vars.iter().chain(ast.entries.iter().flat_map(|e| &e.vars));
            all.filter(|v| matches!(v.space, PtxSpace::Global | PtxSpace::Const))
        };
        let mut fresh = Vec::new();
        for v in vars() {
            let key = (module, v.name.clone());
            if !self.variables.contains_key(&key) {
                let size = v.size.unwrap_or(0) as usize;
                let mut bytes = v.init.bytes.clone();
                bytes.resize(size, 0);
                let ptr = self.upload(&v.name, &bytes);
                self.variables.insert(key, ptr.0);
                fresh.push((v, ptr));
            }
        }
        let at = |name: &str| self.variables.get(&(module, name.to_owned())).copied();
        let undeclared = |name: &str| EmuError::new(ErrorCode::Symbol, format!("`{name}` is not declared"));
        let mut patches = Vec::new();
        for (v, ptr) in &fresh {
            for (offset, name, addend) in &v.init.addresses {
                let target = at(name).ok_or_else(|| undeclared(name))?.wrapping_add_signed(*addend);
                patches.push((ptr.0 + *offset as u64, target));
            }
        }
        let addresses = names.iter().map(|n| at(n).ok_or_else(|| undeclared(n))).collect();
        for (place, target) in patches {
            self.space.write(place, &target.to_le_bytes()).map_err(|f| fault(&self.space, &f))?;
        }
        for (v, ptr) in fresh {
            self.set_writable(ptr, v.space != PtxSpace::Const);
        }
        addresses
    }

    /// Frees a module's variables.
    pub(crate) fn unload(&mut self, module: u128) {
        let own: Vec<_> = self.variables.keys().filter(|(m, _)| *m == module).cloned().collect();
        for key in own {
            if let Some(base) = self.variables.remove(&key) {
                self.free(DevicePtr(base));
            }
        }
    }
}

/// The error code for a fault.
pub(crate) fn code_of(fault: &Fault) -> ErrorCode {
    match fault {
        Fault::OutOfBounds { .. } => ErrorCode::OutOfBounds,
        Fault::Freed { .. } | Fault::ReadOnly { .. } => ErrorCode::Permission,
        Fault::Undefined { .. } => ErrorCode::Uninitialised,
    }
}

fn fault(space: &Space, fault: &Fault) -> EmuError {
    EmuError::new(code_of(fault), space.explain(fault))
}
