//! Counting barriers (mbarriers): a phase, arrivals and bytes.
//!
//! | state | bits | changed by |
//! |---|---|---|
//! | phase parity | 1 | flips when both counts below are zero |
//! | expected arrivals | 20 | `init` |
//! | pending arrivals | 20 | arrivals take from it; a flip sets it to the expected ones |
//! | bytes (signed) | 21 | `expect` adds, completed copies take away; may be negative within a phase |
//!
//! A copy may complete before its bytes are expected: the byte count is then negative, and the phase cannot end, since
//! the arrival that adds the expected bytes is still pending. A wait names a parity and passes when the phase of that
//! parity is not the current one; it consumes nothing, and a barrier that has advanced by two phases has the same
//! parity again, as on hardware.
//!
//! Source: PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier", contents of the object, ranges
//! of the counts, and phase completion.

use std::fmt;
use std::hash::{Hash, Hasher};

titan_core::entity! {
    /// An mbarrier.
    BarrierId, "barrier"
}

/// The largest arrival count.
pub const MAX_ARRIVALS: u32 = (1 << 20) - 1;
/// The largest magnitude of the byte count.
pub const MAX_BYTES: i64 = (1 << 20) - 1;

/// The state of one barrier. Before `init` and after `invalidate` it is not live, and every use is a fault.
///
/// Its hash covers what determines its behaviour: only the parity of the phase, so that loops return to earlier states.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PhaseBarrier {
    live: bool,
    /// Completed phases; the parity of the current phase is the parity of this.
    phase: u64,
    expected: u32,
    pending: u32,
    bytes: i64,
}

/// A use that is undefined on hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierFault {
    /// Initialised with no or too many arrivals.
    Count(u32),
    /// The barrier was initialised while it was live.
    Reinitialised,
    /// Used before `init` or after `invalidate`.
    NotLive,
    /// More arrivals than the phase has left.
    ArriveUnderflow {
        /// The number of arrivals of this operation.
        arrived: u32,
        /// The number of arrivals that the phase still expects.
        pending: u32,
    },
    /// The byte count has left its range.
    Bytes(i64),
}

impl fmt::Display for BarrierFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BarrierFault::Count(n) => {
                write!(f, "the arrival count of a barrier is 1 to {MAX_ARRIVALS}, but this one would be {n}")
            }
            BarrierFault::Reinitialised => write!(f, "the barrier is initialised again without being invalidated"),
            BarrierFault::NotLive => {
                write!(f, "the barrier is used before it is initialised or after it is invalidated")
            }
            BarrierFault::ArriveUnderflow { arrived, pending } => {
                write!(f, "{arrived} arrivals, but the phase has only {pending} pending")
            }
            BarrierFault::Bytes(n) => write!(f, "the byte count becomes {n}, out of ±{MAX_BYTES}"),
        }
    }
}

impl Hash for PhaseBarrier {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.live, self.phase & 1, self.expected, self.pending, self.bytes).hash(state);
    }
}

impl PhaseBarrier {
    /// Whether the barrier is initialised.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        self.live
    }

    /// The number of completed phases.
    #[must_use]
    pub const fn phase(&self) -> u64 {
        self.phase
    }

    /// The number of arrivals that the current phase still expects.
    #[must_use]
    pub const fn pending(&self) -> u32 {
        self.pending
    }

    /// The number of bytes that the current phase still expects; negative if more were transferred than expected so far.
    #[must_use]
    pub const fn bytes(&self) -> i64 {
        self.bytes
    }

    /// A description of what the current phase still expects.
    #[must_use]
    pub fn missing(&self) -> String {
        let arrivals = if self.pending == 1 { "1 arrival".to_owned() } else { format!("{} arrivals", self.pending) };
        let one = self.pending == 1 && self.bytes == 0;
        let bytes = if self.bytes == 0 { String::new() } else { format!(" and {} bytes", self.bytes) };
        format!("{arrivals}{bytes} {} missing", if one { "is" } else { "are" })
    }

    /// Whether a wait for the phase of this parity passes.
    #[must_use]
    pub const fn passed(&self, parity: bool) -> bool {
        (self.phase & 1 == 1) != parity
    }

    /// Initialises the barrier: phase 0, with an arrival count of `count` per phase.
    ///
    /// # Errors
    /// [`BarrierFault::Count`], [`BarrierFault::Reinitialised`].
    pub const fn init(&mut self, count: u32) -> Result<(), BarrierFault> {
        if count == 0 || count > MAX_ARRIVALS {
            return Err(BarrierFault::Count(count));
        }
        if self.live {
            return Err(BarrierFault::Reinitialised);
        }
        *self = PhaseBarrier { live: true, phase: 0, expected: count, pending: count, bytes: 0 };
        Ok(())
    }

    /// Invalidates the barrier.
    ///
    /// # Errors
    /// [`BarrierFault::NotLive`].
    pub fn invalidate(&mut self) -> Result<(), BarrierFault> {
        self.check_live()?;
        *self = PhaseBarrier::default();
        Ok(())
    }

    const fn check_live(&self) -> Result<(), BarrierFault> {
        if self.live { Ok(()) } else { Err(BarrierFault::NotLive) }
    }

    /// Expects bytes (`expect_tx`); returns whether the phase completed.
    ///
    /// # Errors
    /// [`BarrierFault::NotLive`], [`BarrierFault::Bytes`].
    pub fn expect(&mut self, bytes: u32) -> Result<bool, BarrierFault> {
        self.add_bytes(bytes.into())
    }

    /// Completes bytes (`complete_tx`); returns whether the phase completed.
    ///
    /// # Errors
    /// [`BarrierFault::NotLive`], [`BarrierFault::Bytes`].
    pub fn complete(&mut self, bytes: u32) -> Result<bool, BarrierFault> {
        self.add_bytes(-i64::from(bytes))
    }

    fn add_bytes(&mut self, bytes: i64) -> Result<bool, BarrierFault> {
        self.check_live()?;
        let sum = self.bytes + bytes;
        if sum.abs() > MAX_BYTES {
            return Err(BarrierFault::Bytes(sum));
        }
        self.bytes = sum;
        Ok(self.flip())
    }

    /// Arrives `count` times; returns whether the phase completed.
    ///
    /// # Errors
    /// [`BarrierFault::NotLive`], [`BarrierFault::ArriveUnderflow`].
    pub fn arrive(&mut self, count: u32) -> Result<bool, BarrierFault> {
        self.check_live()?;
        if count > self.pending {
            return Err(BarrierFault::ArriveUnderflow { arrived: count, pending: self.pending });
        }
        self.pending -= count;
        Ok(self.flip())
    }

    /// Arrives and lowers the arrival count of later phases by as much; returns whether the phase completed.
    ///
    /// # Errors
    /// The same as for [`arrive`](Self::arrive).
    pub fn arrive_and_drop(&mut self, count: u32) -> Result<bool, BarrierFault> {
        let left = self.expected.saturating_sub(count);
        self.check_live()?;
        if count > self.pending {
            return Err(BarrierFault::ArriveUnderflow { arrived: count, pending: self.pending });
        }
        self.expected = left;
        self.arrive(count)
    }

    /// Adds a pending arrival to the current phase, as the form of `cp.async.mbarrier.arrive` without `.noinc` does at its issue.
    ///
    /// # Errors
    /// [`BarrierFault::NotLive`], [`BarrierFault::Count`].
    pub fn add_pending(&mut self, count: u32) -> Result<(), BarrierFault> {
        self.check_live()?;
        let sum = self.pending.saturating_add(count);
        if sum > MAX_ARRIVALS {
            return Err(BarrierFault::Count(sum));
        }
        self.pending = sum;
        Ok(())
    }

    const fn flip(&mut self) -> bool {
        let ended = self.pending == 0 && self.bytes == 0;
        if ended {
            self.phase += 1;
            self.pending = self.expected;
        }
        ended
    }
}
