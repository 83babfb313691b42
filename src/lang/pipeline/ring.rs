//! Rings, and the tokens of the role that fills them.
//!
//! The n-th `acquire` and the n-th `ready` of a ring refer to the same stage, in whatever order the tokens are then used. Stages
//! are counted separately for each role that reads, because every one of them reads every stage.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use super::bundle::Bundle;
use super::role;
use super::stage::Ready;
use crate::lang::condition::Condition;

/// `D` slots for stages of the tiles `B` in shared memory. Stages are counted over the whole program, not for each loop.
///
/// In kernels: `Ring::<(Smem<f16, 128, 64>, Smem<f16, 256, 64>), 4>::new()`, at the top of the kernel.
pub struct Ring<B: Bundle, const D: i32> {
    times: Rc<Times<B>>,
}

/// The numbers of calls of `acquire` and of `ready` on a ring so far.
pub(super) type Times<B> = RefCell<Clocks<B>>;

pub(super) struct Clocks<B: Bundle> {
    acquired: u64,
    /// The number of stages that each role has begun to read.
    claimed: BTreeMap<usize, u64>,
    pub(super) stages: BTreeMap<u64, Contents<B>>,
}

/// The contents of a committed stage.
pub(super) enum Contents<B: Bundle> {
    Copy(B::Source),
    Zeros,
    Poison,
}

impl<B: Bundle, const D: i32> Ring<B, D> {
    /// A ring of free slots.
    #[expect(clippy::new_without_default, reason = "kernels create rings by this name, in one place")]
    #[must_use]
    pub fn new() -> Self {
        let empty = || RefCell::new(Clocks { acquired: 0, claimed: BTreeMap::new(), stages: BTreeMap::new() });
        Ring { times: role::shared(empty) }
    }

    /// Waits for the next free slot, that is, until all readers have released its last stage.
    pub fn acquire(&self) -> Slot<'_, B> {
        let mut clocks = self.times.borrow_mut();
        clocks.acquired += 1;
        Slot { times: &self.times, time: clocks.acquired - 1 }
    }

    /// A pending wait for the next stage, which may still be in flight.
    pub fn ready(&self) -> Ready<'_, B> {
        let mut clocks = self.times.borrow_mut();
        let claimed = clocks.claimed.entry(role::current()).or_default();
        *claimed += 1;
        Ready { times: &self.times, time: *claimed - 1 }
    }

    /// One `acquire` for each value of the range.
    pub fn produce(&self, range: Range<i32>) -> impl Iterator<Item = (i32, Slot<'_, B>)> {
        range.map(|t| (t, self.acquire()))
    }

    /// One `ready` for each value of the range.
    pub fn consume(&self, range: Range<i32>) -> impl Iterator<Item = (i32, Ready<'_, B>)> {
        range.map(|t| (t, self.ready()))
    }
}

impl<B: Bundle, const D: i32> fmt::Debug for Ring<B, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ring").field("slots", &D).finish_non_exhaustive()
    }
}

/// A free slot, to fill once.
#[must_use = "an acquired slot must be filled and committed: `slot.copy(source).commit()`"]
pub struct Slot<'r, B: Bundle> {
    times: &'r Times<B>,
    time: u64,
}

impl<'r, B: Bundle> Slot<'r, B> {
    /// Copies to the slot: from one source, or from a tuple with a source for each of its tiles.
    pub fn copy(self, source: B::Source) -> Filling<'r, B> {
        self.with(Contents::Copy(source))
    }

    /// Copies if the condition holds; otherwise the stage contains zeros.
    pub fn copy_if(self, condition: impl Condition, source: B::Source) -> Filling<'r, B> {
        if condition.holds() { self.copy(source) } else { self.zero() }
    }

    /// Copies if the condition holds; otherwise the stage is poisoned, and its reader must wait by `wait_filled`.
    pub fn copy_or_poison(self, condition: impl Condition, source: B::Source) -> Filling<'r, B> {
        if condition.holds() { self.copy(source) } else { self.poison() }
    }

    /// Fills the slot with zeros instead of a copy.
    pub fn zero(self) -> Filling<'r, B> {
        self.with(Contents::Zeros)
    }

    /// Poisons the stage instead of a copy: its reader must wait by `wait_filled`.
    pub fn poison(self) -> Filling<'r, B> {
        self.with(Contents::Poison)
    }

    fn with(self, contents: Contents<B>) -> Filling<'r, B> {
        Filling { slot: self, contents }
    }
}

impl<B: Bundle> fmt::Debug for Slot<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot of time {}", self.time)
    }
}

/// A slot with the contents to copy to it.
#[must_use = "a copy starts with `.commit()`"]
pub struct Filling<'r, B: Bundle> {
    slot: Slot<'r, B>,
    contents: Contents<B>,
}

impl<B: Bundle> Filling<'_, B> {
    /// Starts the copy; the stage is ready when all its bytes have arrived.
    pub fn commit(self) {
        self.slot.times.borrow_mut().stages.insert(self.slot.time, self.contents);
    }
}

impl<B: Bundle> fmt::Debug for Filling<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Filling of time {}", self.slot.time)
    }
}
