//! Byte-addressed memory: allocations with names and bounds, and a poison bit for each byte.
//!
//! An access outside of all live allocations is a fault that names the nearest one. Allocations keep their addresses when
//! freed, so that a use after free is reported as such. Bytes are undefined until written; undefined bytes hold `0xFF`, which
//! is NaN in every floating-point format, and reading one is a fault unless the reader asks which are defined.
//!
//! Deliberately absent: the agents that access memory (they occur in events), and the order of accesses (the observer's task).

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

titan_core::entity! {
    /// The number of a memory.
    SpaceId, "space"
}

titan_core::entity! {
    /// The number of an allocation of a memory.
    AllocationId, "allocation"
}

/// The value of undefined bytes.
pub const POISON: u8 = 0xFF;

/// An access that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No allocation holds all of the bytes.
    OutOfBounds {
        /// The address of the first byte of the access.
        address: u64,
        /// The length of the access, in bytes.
        len: u64,
        /// The allocation that holds the first byte, or the nearest one.
        near: Option<AllocationId>,
    },
    /// The allocation is freed.
    Freed {
        /// The address of the first byte of the access.
        address: u64,
        /// The allocation.
        allocation: AllocationId,
    },
    /// The allocation may not be written.
    ReadOnly {
        /// The address of the first byte of the access.
        address: u64,
        /// The allocation.
        allocation: AllocationId,
    },
    /// A byte that is read was never written.
    Undefined {
        /// The address of the first undefined byte.
        address: u64,
        /// The allocation that contains it.
        allocation: AllocationId,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Allocation {
    id: AllocationId,
    name: String,
    base: u64,
    len: usize,
    /// The contents; empty once the allocation is freed.
    bytes: Vec<u8>,
    defined: Bits,
    live: bool,
    writable: bool,
}

impl Allocation {
    const fn end(&self) -> u64 {
        self.base + self.len as u64
    }

    fn key(&self) -> Key {
        (self.base, self.len, self.id.index())
    }

    /// Whether the allocation contains `len` bytes from `address` on; the address is not before its base.
    const fn holds(&self, address: u64, len: usize) -> bool {
        self.live && address < self.end() && self.end() - address >= len as u64
    }
}

/// A byte-addressed memory: its allocations, by address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Space {
    name: String,
    /// The allocations in the order of their addresses; they do not overlap.
    allocations: BTreeMap<Key, Allocation>,
    /// The allocations that are not removed.
    keys: BTreeMap<AllocationId, Key>,
    /// The number of allocations made so far.
    made: usize,
}

/// The base, length and number of an allocation. An allocation without bytes comes before one with bytes at the same address.
type Key = (u64, usize, usize);

impl Space {
    /// Creates an empty memory with this name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Space {
        Space { name: name.into(), allocations: BTreeMap::new(), keys: BTreeMap::new(), made: 0 }
    }

    /// The name of the memory.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Allocates undefined bytes; `None` if the addresses are taken, or if the host lacks memory.
    pub fn allocate(&mut self, name: impl Into<String>, base: u64, len: usize) -> Option<AllocationId> {
        let end = base.checked_add(len as u64)?;
        let clash = |a: &Allocation| a.base < end && base < a.end();
        let before = self.allocations.range(..(base, 0, 0)).next_back();
        let after = self.allocations.range((base, 0, 0)..).next();
        if [before, after].into_iter().flatten().any(|(_, a)| clash(a)) {
            return None;
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).ok()?;
        bytes.resize(len, POISON);
        let (id, name, defined) = (AllocationId::new(self.made), name.into(), Bits::new(len));
        self.made += 1;
        let made = Allocation { id, name, base, len, bytes, defined, live: true, writable: true };
        self.keys.insert(id, made.key());
        self.allocations.insert(made.key(), made);
        Some(id)
    }

    fn get(&self, id: AllocationId) -> Option<&Allocation> {
        self.allocations.get(self.keys.get(&id)?)
    }

    fn get_mut(&mut self, id: AllocationId) -> Option<&mut Allocation> {
        self.allocations.get_mut(self.keys.get(&id)?)
    }

    /// Frees an allocation, whose addresses stay reserved. Returns false if it was freed before.
    pub fn free(&mut self, id: AllocationId) -> bool {
        let Some(a) = self.get_mut(id).filter(|a| a.live) else { return false };
        a.live = false;
        (a.bytes, a.defined) = (Vec::new(), Bits::new(0));
        true
    }

    /// Removes an allocation, so that another may take its addresses.
    pub fn forget(&mut self, id: AllocationId) {
        if let Some(key) = self.keys.remove(&id) {
            self.allocations.remove(&key);
        }
    }

    /// Forbids writing to an allocation, or allows it again.
    pub fn set_writable(&mut self, id: AllocationId, writable: bool) {
        if let Some(a) = self.get_mut(id) {
            a.writable = writable;
        }
    }

    /// Whether the allocation may be written to.
    #[must_use]
    pub fn is_writable(&self, id: AllocationId) -> bool {
        self.get(id).is_some_and(|a| a.writable)
    }

    /// Makes all bytes undefined.
    pub fn poison(&mut self) {
        for a in self.allocations.values_mut() {
            a.bytes.fill(POISON);
            a.defined.clear();
        }
    }

    /// Makes some bytes undefined.
    ///
    /// # Errors
    /// [`Fault`], as for a write.
    pub fn poison_range(&mut self, address: u64, len: usize) -> Result<(), Fault> {
        let (a, at) = self.place_mut(address, len)?;
        a.bytes[at..at + len].fill(POISON);
        a.defined.set(at, len, false);
        Ok(())
    }

    /// The allocation's name, base and length.
    #[must_use]
    pub fn describe(&self, id: AllocationId) -> Option<(&str, u64, usize)> {
        self.get(id).map(|a| (a.name.as_str(), a.base, a.len))
    }

    /// All bytes of an allocation, undefined ones as [`POISON`]; empty if the allocation is freed.
    #[must_use]
    pub fn bytes(&self, id: AllocationId) -> Option<&[u8]> {
        self.get(id).map(|a| a.bytes.as_slice())
    }

    /// The allocation that contains the `len` bytes from `address` on, or the fault if there is none.
    fn holding(&self, address: u64, len: usize) -> Result<&Allocation, Fault> {
        let before = self.allocations.range(..=(address, usize::MAX, usize::MAX)).next_back();
        match before {
            Some((_, a)) if a.holds(address, len) => Ok(a),
            Some(_) | None => Err(self.outside(address, len)),
        }
    }

    #[cold]
    fn outside(&self, address: u64, len: usize) -> Fault {
        let distance =
            |a: &&Allocation| if address < a.base { a.base - address } else { address.saturating_sub(a.end()) };
        let before = self.allocations.range(..=(address, usize::MAX, usize::MAX)).next_back();
        let after =
            self.allocations.range((Bound::Excluded((address, usize::MAX, usize::MAX)), Bound::Unbounded)).next();
        let near = [before, after].into_iter().flatten().map(|(_, a)| a).min_by_key(distance);
        match near {
            Some(a) if !a.live && distance(&a) == 0 => Fault::Freed { address, allocation: a.id },
            Some(_) | None => Fault::OutOfBounds { address, len: len as u64, near: near.map(|a| a.id) },
        }
    }

    fn place(&self, address: u64, len: usize) -> Result<(&Allocation, usize), Fault> {
        let a = self.holding(address, len)?;
        Ok((a, offset(address, a.base)))
    }

    fn place_mut(&mut self, address: u64, len: usize) -> Result<(&mut Allocation, usize), Fault> {
        let a = self.holding(address, len)?;
        let (id, key, at) = (a.id, a.key(), offset(address, a.base));
        match self.allocations.get_mut(&key) {
            Some(a) if a.writable => Ok((a, at)),
            Some(_) | None => Err(Fault::ReadOnly { address, allocation: id }),
        }
    }

    /// Checks that all these bytes belong to one live allocation, and returns it.
    ///
    /// # Errors
    /// [`Fault::OutOfBounds`], [`Fault::Freed`].
    pub fn check(&self, address: u64, len: usize) -> Result<AllocationId, Fault> {
        self.holding(address, len).map(|a| a.id)
    }

    /// Reads bytes that are all defined.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn read(&self, address: u64, out: &mut [u8]) -> Result<(), Fault> {
        let (a, at) = self.place(address, out.len())?;
        if let Some(hole) = a.defined.first_clear(at, out.len()) {
            return Err(Fault::Undefined { address: a.base + hole as u64, allocation: a.id });
        }
        out.copy_from_slice(&a.bytes[at..at + out.len()]);
        Ok(())
    }

    /// Reads bytes, defined or not. Returns whether all of them were defined.
    ///
    /// # Errors
    /// [`Fault`], but not [`Fault::Undefined`].
    pub fn read_any(&self, address: u64, out: &mut [u8]) -> Result<bool, Fault> {
        let (a, at) = self.place(address, out.len())?;
        out.copy_from_slice(&a.bytes[at..at + out.len()]);
        Ok(a.defined.first_clear(at, out.len()).is_none())
    }

    /// Bytes of one allocation, if all of them are defined.
    #[must_use]
    pub fn defined(&self, address: u64, len: usize) -> Option<&[u8]> {
        let (a, at) = self.place(address, len).ok()?;
        a.defined.first_clear(at, len).is_none().then(|| &a.bytes[at..at + len])
    }

    /// Writes bytes, which are defined from then on.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Fault> {
        let (a, at) = self.place_mut(address, bytes.len())?;
        a.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        a.defined.set(at, bytes.len(), true);
        Ok(())
    }

    /// Copies bytes within the memory, as if all were read before any is written. Copies of undefined bytes are undefined.
    ///
    /// # Errors
    /// [`Fault`], but not [`Fault::Undefined`].
    pub fn copy(&mut self, from: u64, to: u64, len: usize) -> Result<(), Fault> {
        let (bytes, defined) = self.extract(from, len)?;
        self.insert(to, &bytes, &defined)
    }

    /// Reads bytes, together with a flag for each that states whether it is defined.
    ///
    /// # Errors
    /// [`Fault`], but not [`Fault::Undefined`].
    pub fn extract(&self, address: u64, len: usize) -> Result<(Vec<u8>, Vec<bool>), Fault> {
        let (a, at) = self.place(address, len)?;
        let mut defined = vec![false; len];
        a.defined.copy_to(at, &mut defined);
        Ok((a.bytes[at..at + len].to_vec(), defined))
    }

    /// Reads bytes, defined or not, and a flag for each of them that states whether it is defined; both have the same length.
    ///
    /// # Errors
    /// [`Fault`], but not [`Fault::Undefined`].
    pub fn look(&self, address: u64, out: &mut [u8], defined: &mut [bool]) -> Result<(), Fault> {
        let (a, at) = self.place(address, out.len())?;
        out.copy_from_slice(&a.bytes[at..at + out.len()]);
        a.defined.copy_to(at, defined);
        Ok(())
    }

    /// Writes bytes, each of which is defined only if its flag in `defined` is set.
    ///
    /// # Errors
    /// [`Fault`], as for a write.
    pub fn insert(&mut self, address: u64, bytes: &[u8], defined: &[bool]) -> Result<(), Fault> {
        let (a, at) = self.place_mut(address, bytes.len())?;
        a.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        a.defined.set(at, bytes.len(), true);
        for (i, _) in defined.iter().enumerate().filter(|(i, d)| !**d && *i < bytes.len()) {
            a.bytes[at + i] = POISON;
            a.defined.set(at + i, 1, false);
        }
        Ok(())
    }

    /// The message of a fault in this memory, with the names of its allocations.
    #[must_use]
    pub fn explain(&self, fault: &Fault) -> String {
        Explained { space: self, fault }.to_string()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "within an allocation, whose length is a usize")]
const fn offset(address: u64, base: u64) -> usize {
    (address - base) as usize
}

struct Explained<'a> {
    space: &'a Space,
    fault: &'a Fault,
}

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (space, name) = (&self.space.name, |id: &AllocationId| self.space.describe(*id).map_or("?", |d| d.0));
        match self.fault {
            Fault::OutOfBounds { address, len, near } => {
                let near = near.and_then(|id| self.space.describe(id));
                let Some((name, base, size)) = near else {
                    return write!(f, "{len} bytes at {address:#x}: nothing is allocated in {space} memory");
                };
                let end = base + size as u64;
                write!(f, "{len} bytes at {address:#x} of {space} memory are not all inside an allocation: ")?;
                if *address < base {
                    write!(f, "they begin {} bytes before `{name}` of {size} bytes", base - address)
                } else if *address < end {
                    write!(f, "`{name}` has {size} bytes, and they begin at its byte {}", address - base)
                } else {
                    write!(f, "they begin {} bytes after the end of `{name}` of {size} bytes", address - end)
                }
            }
            Fault::Freed { address, allocation } => {
                write!(f, "{address:#x} of {space} memory belongs to `{}`, which is freed", name(allocation))
            }
            Fault::ReadOnly { address, allocation } => {
                write!(f, "{address:#x} of {space} memory belongs to `{}`, which may not be written", name(allocation))
            }
            Fault::Undefined { address, allocation } => {
                let base = self.space.describe(*allocation).map_or(0, |d| d.1);
                write!(f, "byte {} of `{}` ({space} memory) was never written", address - base, name(allocation))
            }
        }
    }
}

/// A set of bits, one for each byte of an allocation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Bits {
    words: Vec<u64>,
}

impl Bits {
    fn new(len: usize) -> Bits {
        Bits { words: vec![0; len.div_ceil(64)] }
    }

    fn clear(&mut self) {
        self.words.fill(0);
    }

    /// The words of the set that a range covers, each with a mask of its bits in the range.
    fn masks(start: usize, len: usize) -> impl Iterator<Item = (usize, u64)> {
        let end = start + len;
        (start / 64..end.div_ceil(64)).map(move |w| {
            let (lo, hi) = (start.max(w * 64) - w * 64, end.min(w * 64 + 64) - w * 64);
            (w, if hi - lo == 64 { u64::MAX } else { ((1 << (hi - lo)) - 1) << lo })
        })
    }

    fn set(&mut self, start: usize, len: usize, value: bool) {
        for (w, mask) in Bits::masks(start, len) {
            if value {
                self.words[w] |= mask;
            } else {
                self.words[w] &= !mask;
            }
        }
    }

    fn get(&self, i: usize) -> bool {
        self.words.get(i / 64).is_some_and(|w| w >> (i % 64) & 1 == 1)
    }

    /// The bits from `start` on.
    fn copy_to(&self, start: usize, out: &mut [bool]) {
        // Mostly all bytes are defined.
        if self.first_clear(start, out.len()).is_none() {
            out.fill(true);
        } else {
            out.iter_mut().enumerate().for_each(|(i, bit)| *bit = self.get(start + i));
        }
    }

    fn first_clear(&self, start: usize, len: usize) -> Option<usize> {
        Bits::masks(start, len).find_map(|(w, mask)| {
            let clear = !self.words[w] & mask;
            (clear != 0).then(|| w * 64 + clear.trailing_zeros() as usize)
        })
    }
}
