//! The ledger of rings, kept independently of their barriers: the ring time that each slot holds, and which times each reader has begun
//! to read and has released. For rings that were expanded to barriers it follows the claims of the program (`ttg.claim.*`), per warp.

use super::finding::{Found, Kind};
use super::machine::Machine;
use super::plan::{BULK_LOAD, RING_COPY};
use super::ring::Slot;
use super::state::Holds;
use super::work::{Res, Span};
use titan_core::ir::op_table::mnemonic;
use titan_core::ir::{Claim, FreeBy, Op, Pipe};

impl Machine<'_> {
    /// The largest number of ring times that were acquired, over all rings.
    pub(super) fn times(&self) -> u64 {
        self.threads.iter().flat_map(|t| &t.fill).copied().max().unwrap_or(0)
    }

    /// Checks a claim of a barrier program about a ring: each side goes through the ring times in order, and no time is filled,
    /// read or released out of order.
    pub(super) fn claimed(&mut self, agent: usize, op: &Op, claim: Claim, pipe: Pipe) -> Res<()> {
        let (ring, slot) = (pipe.index(), self.int(agent, op, 1)?);
        let (slots, staging) = (self.ring(ring)?.slots.max(1), self.ring(ring)?.readers.is_empty());
        // A ring that the same warps fill and read is claimed without its round: there is no wait between roles.
        let round = if op.args.len() > 2 { Some(self.int(agent, op, 2)?) } else { None };
        // If mbarriers release the slots, the operand may be the parity of a round instead of its number.
        let parities = self.kernel().laid_out.as_deref().is_some_and(|laid| laid.free == FreeBy::Mbarrier);
        let is_round = |r: i64, n: u64| u64::try_from(r).is_ok_and(|r| r == n || parities && r == n % 2);
        let is = |time: u64| u64::try_from(slot) == Ok(time % slots) && round.is_none_or(|r| is_round(r, time / slots));
        let thread = self.thread(agent)?;
        let (Some(fill), Some(read)) = (thread.fill.get_mut(ring), thread.read.get_mut(ring)) else { return Ok(()) };
        // A staging ring has no readers: its stage is released when it has been stored.
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
        let what = mnemonic(&op.kind);
        Err(Found::new(
            Kind::Time,
            format!("`{what}` of slot {slot}{of} of `{name}`, which is not the next time of the ring's clock"),
        ))
    }

    /// Checks that the stage of a slot has not been released.
    pub(super) fn check_held(&self, agent: usize, s: Slot) -> Res<()> {
        let name = self.kernel().pipe_name(Pipe::new(s.ring));
        if self.look(agent)?.read.get(s.ring).is_some_and(|r| r.released(s.time)) {
            return Err(Found::new(Kind::Stale, format!("time {} of `{name}` is used after it was released", s.time)));
        }
        Ok(())
    }

    /// Checks that the slot of a stage that is read still holds the stage's time.
    pub(super) fn check_stage(&self, agent: usize, s: Slot) -> Res<()> {
        self.check_held(agent, s)?;
        let name = self.kernel().pipe_name(Pipe::new(s.ring));
        match self.holds(s) {
            Holds::Stage(time) if time == s.time => Ok(()),
            Holds::Poison(time) if time == s.time => {
                Err(Found::new(Kind::Undefined, format!("time {time} of `{name}` is read, but it is poison")))
            }
            Holds::Stage(time) | Holds::Poison(time) => Err(Found::new(
                Kind::Stale,
                format!("time {} of `{name}` is read from a slot that holds time {time}", s.time),
            )),
            Holds::Nothing => Err(Found::new(
                Kind::Undefined,
                format!("time {} of `{name}` is read, but nothing was written to its slot", s.time),
            )),
        }
    }

    /// Checks at the end of a program that its rings are empty and that no token is left over.
    pub(super) fn check_rings(&self, main: usize) -> Res<()> {
        for agent in main..main + self.plan.agents() {
            let (thread, who) = (self.look(agent)?, self.role(agent));
            let left = [
                (thread.taken.is_empty(), "a slot of a staging ring that is acquired and not written"),
                (thread.written.is_empty(), "a slot of a staging ring that is written and not stored"),
                (thread.parts.is_empty(), "parts of a read permission that are not joined"),
                (thread.products.is_empty(), "an MMA that is not waited for"),
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
                        format!("{who} has not released time {} of `{name}`", r.below),
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
                Err(Found::new(Kind::InFlight, "the program ends while a copy is in flight").side(side))
            }
            None => Ok(()),
        }
    }
}
