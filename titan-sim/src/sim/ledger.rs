//! The ledger of rings, which is kept beside their barriers: which time a slot holds, and what each reader has claimed and
//! given back. Of rings that have become barriers it is kept by what the program claims (`ttg.claim.*`), for each warp.

use super::finding::{Found, Kind};
use super::machine::Machine;
use super::plan::{BULK_LOAD, RING_COPY};
use super::ring::Slot;
use super::state::Holds;
use super::work::{Res, Span};
use titan_core::ir::{Claim, Op, Pipe};

impl Machine<'_> {
    /// The most times of a ring that were acquired.
    pub(super) fn times(&self) -> u64 {
        self.threads.iter().flat_map(|t| &t.fill).copied().max().unwrap_or(0)
    }

    /// What a barrier program says that a warp does to a ring: its sides go through the times in order, and no time is filled,
    /// read or given back outside of its turn.
    pub(super) fn claimed(&mut self, agent: usize, op: &Op, claim: Claim, pipe: Pipe) -> Res<()> {
        let (ring, slot) = (pipe.index(), self.int(agent, op, 1)?);
        let (slots, staging) = (self.ring(ring)?.slots.max(1), self.ring(ring)?.readers.is_empty());
        // A ring that the same warps fill and read has no rounds: nobody waits for another.
        let round = if op.args.len() > 2 { Some(self.int(agent, op, 2)?) } else { None };
        let is = |time: u64| {
            u64::try_from(slot) == Ok(time % slots) && round.is_none_or(|r| u64::try_from(r) == Ok(time / slots))
        };
        let thread = self.thread(agent)?;
        let (Some(fill), Some(read)) = (thread.fill.get_mut(ring), thread.read.get_mut(ring)) else { return Ok(()) };
        // What is staged nobody claims to read: it is given back when it has been stored.
        let end = if staging { *fill } else { read.claimed };
        let open = |read: &super::state::Reader| (read.below..end).find(|t| is(*t) && !read.released(*t));
        let holds = match claim {
            Claim::Acquired => {
                *fill += 1;
                is(*fill - 1)
            }
            Claim::Filled => (fill.saturating_sub(slots)..*fill).any(is),
            Claim::Next => {
                read.claimed += 1;
                is(read.claimed - 1)
            }
            Claim::Ready => open(read).is_some(),
            Claim::Released => open(read).is_some_and(|time| read.release(time)),
        };
        if holds {
            return Ok(());
        }
        let (name, of) = (self.kernel().pipe_name(pipe), round.map_or(String::new(), |r| format!(" in round {r}")));
        let what = claim.mnemonic();
        Err(Found::new(Kind::Time, format!("`{what}` of slot {slot}{of} of `{name}`, whose turn it is not")))
    }

    /// A stage that is used was claimed, and is not given back.
    pub(super) fn check_held(&self, agent: usize, s: Slot) -> Res<()> {
        let name = self.kernel().pipe_name(Pipe::new(s.ring));
        if self.look(agent)?.read.get(s.ring).is_some_and(|r| r.released(s.time)) {
            return Err(Found::new(
                Kind::Stale,
                format!("time {} of `{name}` is used after it was given back", s.time),
            ));
        }
        Ok(())
    }

    /// A stage that is read holds its time.
    pub(super) fn check_stage(&self, agent: usize, s: Slot) -> Res<()> {
        self.check_held(agent, s)?;
        let name = self.kernel().pipe_name(Pipe::new(s.ring));
        match self.holds(s) {
            Holds::Stage(time) if time == s.time => Ok(()),
            Holds::Poison(time) if time == s.time => {
                Err(Found::new(Kind::Undefined, format!("time {time} of `{name}` is poison, and is read")))
            }
            Holds::Stage(time) | Holds::Poison(time) => Err(Found::new(
                Kind::Stale,
                format!("time {} of `{name}` is read from a slot that holds time {time}", s.time),
            )),
            Holds::Nothing => Err(Found::new(
                Kind::Undefined,
                format!("time {} of `{name}` is read, and nothing was written there", s.time),
            )),
        }
    }

    /// At the end of a program its rings are empty, and no right is left over.
    pub(super) fn check_rings(&self, main: usize) -> Res<()> {
        for agent in main..main + self.plan.agents() {
            let (thread, who) = (self.look(agent)?, self.role(agent));
            let left = [
                (thread.taken.is_empty(), "a slot of a staging ring that is taken and not written"),
                (thread.written.is_empty(), "a slot of a staging ring that is written and not stored"),
                (thread.parts.is_empty(), "parts of a right to read that are not joined"),
                (thread.products.is_empty(), "a product that is not waited for"),
                (thread.accs.is_empty(), "an accumulator that is not finished"),
            ];
            if let Some((_, what)) = left.into_iter().find(|(none, _)| !none) {
                return Err(Found::new(Kind::Token, format!("{who} ends with {what}")));
            }
        }
        for (i, ring) in self.plan.rings.iter().enumerate() {
            let name = self.kernel().pipe_name(Pipe::new(i));
            let filled =
                ring.fillers.iter().map(|f| self.look(main + f).map(|t| t.fill[i])).collect::<Res<Vec<u64>>>()?;
            let filled = filled.into_iter().max().unwrap_or(0);
            for reader in &ring.readers {
                let r = self.look(main + reader)?.read.get(i).cloned().unwrap_or_default();
                let who = self.role(main + reader);
                if r.claimed != filled {
                    return Err(Found::new(
                        Kind::Unbalanced,
                        format!("`{name}` is filled {filled} times, and {who} reads it {} times", r.claimed),
                    ));
                }
                if r.below != filled {
                    return Err(Found::new(
                        Kind::Unbalanced,
                        format!("{who} has not given back time {} of `{name}`", r.below),
                    ));
                }
            }
        }
        let here = |s: &Span| matches!(s, Span::Shared { cta, .. } if *cta == self.cta(main));
        let left =
            self.engine.pending().iter().find(|(_, o)| {
                matches!(o.class, BULK_LOAD | RING_COPY) && o.payload.touches.iter().any(|t| here(&t.span))
            });
        match left {
            Some((_, o)) => {
                let mut side = self.side(o.agent.index(), o.payload.op, o.payload.touches.first(), o.payload.time);
                side.helper = true;
                Err(Found::new(Kind::UnderWay, "the program ends while a copy is in flight").side(side))
            }
            None => Ok(()),
        }
    }
}
