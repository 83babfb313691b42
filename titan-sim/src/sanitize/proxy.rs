//! The frontier of proxy fences: the partitions that have executed a fence since a generic access and before their next accesses.
//!
//! | event | rule |
//! |---|---|
//! | generic access | no partition has fenced it |
//! | fence from generic to another proxy | all that the fencing partition sees is fenced by it, for the fence's scope |
//! | arrival | publishes both bits, seen and fenced: a fence after the arrival is not published |
//! | wait | acquires both bits; a fence after it covers what was acquired |
//! | asynchronous access | the generic writes of these bytes must be fenced; if it writes, the generic reads too |
//!
//! The destinations of `cp.async` and of `st.async` are generic: clients report them so. Asynchronous accesses before
//! generic ones need no fence, since completion brings one. A generic read before an asynchronous read needs none either,
//! unless the sanitizer is strict.
//!
//! Scopes: memory of one's own block needs [`Scope::Cta`] if the generic access was made in it too, memory of other
//! blocks of the cluster [`Scope::Cluster`], global memory [`Scope::Device`].
//!
//! Sources: PTX ISA, "async proxy" and `fence.proxy`; Triton's sanitizer; where that and Triton's fence pass disagree (a
//! read before a read), the pass is followed, and strict mode is the sanitizer's.

use super::mask::{Partition, bit};
use crate::engine::{Proxy, Scope};

/// The number of pairs of a proxy that needs a fence after the generic one, and a scope.
const LEVELS: usize = 6;

/// For each proxy and scope, the partitions that have fenced an effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Fences(Option<Box<[u64; LEVELS]>>);

/// The levels at which one partition has fenced an effect, a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Levels(u8);

impl Levels {
    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn add(&mut self, other: Levels) {
        self.0 |= other.0;
    }
}

/// The level of a proxy and a scope; the generic proxy has none.
const fn level(to: Proxy, scope: Scope) -> Option<usize> {
    match to {
        Proxy::Generic => None,
        Proxy::Async => Some(scope as usize),
        Proxy::TensorMap => Some(3 + scope as usize),
    }
}

impl Fences {
    /// Records the fence of a partition to a proxy, for this scope and narrower ones.
    pub(super) fn fence(&mut self, p: Partition, to: Proxy, scope: Scope) {
        for s in [Scope::Cta, Scope::Cluster, Scope::Device] {
            if s <= scope
                && let Some(at) = level(to, s)
            {
                self.0.get_or_insert_default()[at] |= bit(p);
            }
        }
    }

    /// Whether a partition has a fence to a proxy of at least this scope.
    pub(super) fn has(&self, p: Partition, to: Proxy, scope: Scope) -> bool {
        let levels = self.0.as_deref();
        level(to, scope).is_none_or(|at| levels.is_some_and(|l| l[at] & bit(p) != 0))
    }

    /// The levels at which a partition has fenced the effect.
    pub(super) fn of(&self, p: Partition) -> Levels {
        let levels = self.0.iter().flat_map(|l| l.iter().enumerate());
        Levels(levels.fold(0, |bits, (i, set)| if set & bit(p) == 0 { bits } else { bits | 1 << i }))
    }

    /// Adds the levels of one partition to others.
    pub(super) fn add(&mut self, partitions: u64, levels: Levels) {
        if levels.is_empty() {
            return;
        }
        for (i, set) in self.0.get_or_insert_default().iter_mut().enumerate() {
            if levels.0 >> i & 1 == 1 {
                *set |= partitions;
            }
        }
    }

    /// The union of the levels of these partitions, as at a rendezvous.
    pub(super) fn of_any(&self, partitions: u64) -> Levels {
        let levels = self.0.iter().flat_map(|l| l.iter().enumerate());
        Levels(levels.fold(0, |bits, (i, set)| if set & partitions == 0 { bits } else { bits | 1 << i }))
    }
}
