//! The last write and the last reads of a lane, and the threads that see them.
//!
//! The sanitizer that this follows keeps matrices: which logical thread sees the last write, and whose reads each one
//! sees. Here each relevant access is an [`Effect`] that names its column: a record ([`Known`](super::known::Known)) of the threads that see
//! it, those that have fenced it, and the slots where it is published. A new read of the same reader replaces its effect, and with it all
//! publications of the old one; this implements reader generations.

use super::known::{KnownId, Records};
use super::report::Side;
use crate::engine::OpId;

/// An access that later ones must be ordered after.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    pub(super) side: Side,
    /// The asynchronous operation that performed the access; `None` if the agent performed it itself.
    pub(super) op: Option<OpId>,
    /// The commit group of the operation, numbered per agent and class.
    pub(super) group: Option<u32>,
    /// Whether the access is strong: other strong accesses may be unordered with it.
    pub(super) strong: bool,
    /// What is known of it: who sees and has fenced it, and where it is published.
    pub(super) known: KnownId,
}

impl Effect {
    /// Whether it equals another effect except for the agent within the partition and the bytes.
    fn is_like(&self, other: &Effect, records: &Records) -> bool {
        let (a, b) = (&self.side, &other.side);
        let same_group = (self.op, self.group, self.strong) == (other.op, other.group, other.strong);
        let same_who = (a.partition, a.unit, a.class) == (b.partition, b.unit, b.class)
            && (a.class.is_none() || a.agent == b.agent);
        same_group
            && same_who
            && (a.deed, a.proxy, a.place, a.tag, a.barrier) == (b.deed, b.proxy, b.place, b.tag, b.barrier)
            && records.are_alike(self.known, other.known)
    }
}

/// The state of the bytes of a lane.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// The last ordinary write.
    pub(super) write: Option<Effect>,
    /// The last strong write of each writer since the last ordinary write.
    pub(super) strong: Vec<Effect>,
    /// The last read of each reader since the last ordinary write.
    pub(super) reads: Vec<Effect>,
}

impl State {
    /// All effects of the lane, mutable.
    pub(super) fn effects(&mut self) -> impl Iterator<Item = &mut Effect> {
        self.write.iter_mut().chain(&mut self.strong).chain(&mut self.reads)
    }

    /// All effects of the lane.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Effect> {
        self.writes().chain(&self.reads)
    }

    /// The write effects: the ordinary write and the strong ones.
    pub(super) fn writes(&self) -> impl Iterator<Item = &Effect> {
        self.write.iter().chain(&self.strong)
    }

    pub(super) fn is_like(&self, other: &State, records: &Records) -> bool {
        let alike =
            |a: &[Effect], b: &[Effect]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_like(b, records));
        alike(self.write.as_slice(), other.write.as_slice())
            && alike(&self.strong, &other.strong)
            && alike(&self.reads, &other.reads)
    }
}
