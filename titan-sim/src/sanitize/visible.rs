//! Visibility: the accesses that are legal, and the effects that they record.
//!
//! | access | legal if the accessing thread sees | records |
//! |---|---|---|
//! | read | the last write, and the strong writes since | itself among the reads, in the place of an earlier one of the same reader |
//! | write | the last write, the strong writes and all reads since | itself alone: the reads before it are forgotten |
//! | strong | the same, except strong accesses, which may be unordered | itself; ordinary accesses are kept |
//!
//! The accessing thread: an agent's own access sees what its partition sees. An operation of an ordered unit sees what the unit sees.
//! One of an unordered unit (TMA) sees only what the partition sees: two of them, unless one was waited for, are not
//! ordered. The recorded effect is seen by the partition and all of its units (*peers*) if it is the agent's own access, else by the
//! unit alone, or by no thread if the class has no unit.
//!
//! Two operations of one agent whose classes are declared to be executed in order need no other order. In memories whose operations run out
//! of order, a partition sees before its accesses only what it has fenced after a synchronization, or waited for itself.
//!
//! A write of the bytes that are already there need not be ordered after writes: compilers store replicated results from
//! every warp that has them. Reading bytes that were never written is not an error here; poison detects it.
//!
//! Sources: Triton's sanitizer, write and read visibility, reader generations (#11216), TMA by base visibility (#11162);
//! FastTrack (Flanagan, Freund, PLDI 2009) for strong accesses and equal writes, as in [`engine::race`].
//!
//! [`engine::race`]: crate::engine::race

use super::config::Classes;
use super::effect::{Effect, State};
use super::known::{KnownId, Records};
use super::mask::{Mask, Unit};
use super::report::{Deed, Rule, Side};
use crate::engine::{OpId, Proxy, Scope};

/// An access that is being checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deal {
    pub(super) side: Side,
    pub(super) op: Option<OpId>,
    pub(super) group: Option<u32>,
    pub(super) strong: bool,
    /// Whether the access is a write of the bytes that are already there.
    pub(super) unchanged: bool,
    /// The unit whose visibility is checked.
    pub(super) eyes: Unit,
    /// The logical threads that see the access afterwards.
    pub(super) seen: Mask,
    /// The scope that a fence needs if the other access was made in the same block.
    pub(super) scope: Scope,
    /// The scope that a fence needs otherwise.
    pub(super) far: Scope,
    /// Whether asynchronous reads need fences after generic reads.
    pub(super) strict: bool,
    /// The classes of operations that the same agent has issued earlier and that are executed before this access.
    pub(super) pipelined: Classes,
}

impl Deal {
    const fn reads_only(&self) -> bool {
        !self.side.deed.writes() && !matches!(self.side.deed, Deed::Arrive)
    }

    /// Whether an effect is ordered before this access, or belongs to the same operation.
    fn sees(&self, e: &Effect, records: &Records) -> bool {
        let pipelined = || e.side.agent == self.side.agent && e.side.class.is_some_and(|c| self.pipelined.has(c));
        records.of(e).is_before(self.side.partition, self.eyes) || (self.op.is_some() && e.op == self.op) || pipelined()
    }

    fn clashes(&self, e: &Effect, records: &Records) -> bool {
        !(self.strong && e.strong || self.sees(e, records))
    }

    /// The rule that is broken by an effect that the access does not see.
    fn rule(&self, e: &Effect, write: bool, records: &Records) -> Rule {
        let both = self.side.class.is_some() && e.side.class.is_some();
        if records.of(e).misses_fence(self.side.partition) {
            Rule::MissingSyncFence
        } else if both && e.side.partition == self.side.partition {
            Rule::UnorderedAsync
        } else if e.group.is_some() && records.of(e).seen.base() == 0 {
            Rule::PendingAccess
        } else if write {
            Rule::OutstandingWrite
        } else {
            Rule::OutstandingRead
        }
    }
}

/// The effect that makes an access illegal, and the rule that is broken.
pub(super) fn conflict<'s>(state: &'s State, now: &Deal, records: &Records) -> Option<(Rule, &'s Effect)> {
    // Equal bytes are written: only readers must be ordered before.
    let equal = now.unchanged && !now.reads_only();
    let mut writes = state.writes().filter(|_| !equal);
    if let Some(e) = writes.find(|e| now.clashes(e, records)) {
        return Some((now.rule(e, true, records), e));
    }
    if now.reads_only() {
        return None;
    }
    state.reads.iter().find(|e| now.clashes(e, records)).map(|e| (now.rule(e, false, records), e))
}

/// The missing fence, if the access is by another proxy than the generic one. `same_block` returns whether the agent of an effect
/// is of the block of the access.
pub(super) fn unfenced<'s>(
    state: &'s State,
    now: &Deal,
    records: &Records,
    same_block: impl Fn(&Effect) -> bool,
) -> Option<(Rule, &'s Effect)> {
    let (to, p) = (now.side.proxy, now.side.partition);
    if to == Proxy::Generic {
        return None;
    }
    let reads = state.reads.iter().filter(|_| now.strict || !now.reads_only());
    let generic = state.writes().chain(reads).filter(|e| e.side.proxy == Proxy::Generic);
    let mut own = generic.filter(|e| now.op.is_none() || e.op != now.op);
    own.find_map(|e| {
        let scope = if same_block(e) { now.scope } else { now.far };
        let fences = &records.of(e).fences;
        let rule = if fences.has(p, to, Scope::Cta) { Rule::NarrowFence } else { Rule::MissingFence };
        (!fences.has(p, to, scope)).then_some((rule, e))
    })
}

/// Records the effect of an access in the state of its bytes; `known` is the record of a new access that `now.seen` see.
pub(super) fn record(state: &mut State, now: &Deal, known: KnownId, records: &Records) {
    let (op, group, strong) = (now.op, now.group, now.strong);
    let effect = Effect { side: now.side, op, group, strong, known };
    if now.reads_only() {
        state.reads.retain(|old| !replaces(now, old, records));
        state.reads.push(effect);
    } else if strong {
        state.strong.retain(|old| !replaces(now, old, records));
        state.strong.push(effect);
    } else {
        state.write = Some(effect);
        state.strong.clear();
        state.reads.clear();
    }
}

/// Whether every thread that is ordered after `now` is also ordered after `old`, an effect of the same reader or writer.
fn replaces(now: &Deal, old: &Effect, records: &Records) -> bool {
    let (a, b) = (&now.side, &old.side);
    if (a.partition, a.unit, a.class, a.deed) != (b.partition, b.unit, b.class, b.deed) || now.strong && !old.strong {
        return false;
    }
    // Groups complete in order.
    let grouped = a.agent == b.agent && old.group.is_some() && old.group <= now.group;
    grouped || now.sees(old, records)
}
