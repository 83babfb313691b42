//! Global memory as the waves of one workgroup see it.
//!
//! The waves of a workgroup run on one compute unit and share its first-level cache, which performs their vector memory operations in
//! the order in which it gets them. So an operation that one wave issued before it told another one, by a barrier or through the local
//! data share, is performed before what that wave issues afterwards: a load sees the store, and a store does not overtake the load.
//! No wait is needed for this, and compilers omit it (LLVM, "Memory Model gfx942": `vmcnt` is not waited for at workgroup scope unless a
//! workgroup is spread over compute units).
//!
//! Other workgroups have other caches. For them a store happens when it is complete: when `vmcnt` says so, it is in the second-level
//! cache.
//!
//! An operation is *performed* at the latest when its wave tells others something, or when it completes. Bytes that are stored by then, and
//! not complete, are *ahead*: they are visible in the workgroup only. A later store of the workgroup to the same byte replaces them, so
//! that stores to one address happen in one order for everyone. Atomic operations happen in the second-level cache, for everyone at once,
//! after the stores to the same bytes.
//!
//! ```text
//! wave 0:  store x = 1 ─ s_barrier ──────────────── waits for vmcnt
//! wave 1:                s_barrier ─ load x: 1
//! another workgroup:                 load x: 0                       load x: 1
//! ```
//!
//! Deliberately absent: lines of a cache that are stale because another workgroup has written to memory. `buffer_inv` and `buffer_wbl2` have
//! no effect.

use super::exec::transfer::Data;
use super::memory::Memory;
use super::wave::Serial;
use std::collections::BTreeMap;
use titan_sim::engine::Fault;

/// A byte that only the workgroup sees yet.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    by: Serial,
    value: u8,
    shadow: u8,
}

/// The operations that are performed and not complete.
#[derive(Clone, Debug, Default)]
pub(crate) struct L1 {
    ahead: BTreeMap<u64, Ahead>,
    /// What each operation has read; empty for stores.
    performed: BTreeMap<Serial, Data>,
}

const fn end(address: u64, len: usize) -> u64 {
    address.saturating_add(len as u64)
}

impl L1 {
    /// Records that an operation is performed, with what it has read.
    pub(crate) fn perform(&mut self, op: Serial, read: Data) {
        self.performed.insert(op, read);
    }

    pub(crate) fn is_performed(&self, op: Serial) -> bool {
        self.performed.contains_key(&op)
    }

    /// Takes what an operation that completes has read, if it is performed.
    pub(crate) fn take(&mut self, op: Serial) -> Option<Data> {
        self.performed.remove(&op)
    }

    /// Reads bytes and the shadow of each.
    pub(crate) fn load(
        &self,
        memory: &Memory,
        address: u64,
        bytes: &mut [u8],
        shadows: &mut [u8],
    ) -> Result<(), Fault> {
        memory.load_bytes(address, bytes, shadows)?;
        if !self.ahead.is_empty() {
            for (at, byte) in self.ahead.range(address..end(address, bytes.len())) {
                let i = usize::try_from(at - address).unwrap_or(0);
                (bytes[i], shadows[i]) = (byte.value, byte.shadow);
            }
        }
        Ok(())
    }

    /// Stores bytes for the workgroup only.
    pub(crate) fn store_ahead(
        &mut self,
        memory: &Memory,
        by: Serial,
        address: u64,
        (bytes, shadows): (&[u8], &[u8]),
    ) -> Result<(), Fault> {
        memory.may_write(address, bytes.len())?;
        for (at, (value, shadow)) in (address..).zip(bytes.iter().zip(shadows)) {
            self.ahead.insert(at, Ahead { by, value: *value, shadow: *shadow });
        }
        Ok(())
    }

    /// Stores bytes for everyone, after what the workgroup has stored there.
    pub(crate) fn store(
        &mut self,
        memory: &mut Memory,
        address: u64,
        (bytes, shadows): (&[u8], &[u8]),
    ) -> Result<(), Fault> {
        self.drop_ahead(address, bytes.len(), |_| true);
        memory.store_bytes(address, bytes, shadows)
    }

    /// Makes bytes visible to everyone that an operation has stored and no later one has replaced.
    pub(crate) fn complete(
        &mut self,
        memory: &mut Memory,
        by: Serial,
        address: u64,
        (bytes, shadows): (&[u8], &[u8]),
    ) -> Result<(), Fault> {
        let own = self.drop_ahead(address, bytes.len(), |a| a.by == by);
        if own.len() == bytes.len() {
            return memory.store_bytes(address, bytes, shadows);
        }
        own.into_iter().try_for_each(|(at, byte)| memory.store_bytes(at, &[byte.value], &[byte.shadow]))
    }

    /// Makes all bytes of a range visible to everyone.
    pub(crate) fn settle(&mut self, memory: &mut Memory, address: u64, len: usize) -> Result<(), Fault> {
        let all = self.drop_ahead(address, len, |_| true);
        all.into_iter().try_for_each(|(at, byte)| memory.store_bytes(at, &[byte.value], &[byte.shadow]))
    }

    /// Removes bytes of a range that are ahead.
    fn drop_ahead(&mut self, address: u64, len: usize, which: impl Fn(&Ahead) -> bool) -> Vec<(u64, Ahead)> {
        if self.ahead.is_empty() {
            return Vec::new();
        }
        let inside = self.ahead.range(address..end(address, len)).filter(|(_, a)| which(a));
        let inside: Vec<(u64, Ahead)> = inside.map(|(at, byte)| (*at, *byte)).collect();
        for (at, _) in &inside {
            self.ahead.remove(at);
        }
        inside
    }
}
