//! The effect of one operation on rings, executed by one role.

use super::super::linear::Condition;
use super::super::run::{Fault, On, Run, Wait};
use super::super::state::{State, TokenState};
use crate::ir::{Block, Op, OpId, OpKind, Pipe, TtgOp, Ty, Value};

impl Run<'_> {
    /// The effect of an operation on rings; or the wait that blocks it.
    pub(in crate::verify::coexecution) fn event(
        &mut self,
        state: &mut State,
        role: usize,
        (id, op): (OpId, &Op),
        ttg: &TtgOp,
    ) -> Result<Option<Wait>, Fault> {
        let taken = |state: &mut State| op.args.first().and_then(|v| state.roles[role].tokens.remove(v));
        match ttg {
            TtgOp::Acquire(pipe) => return self.acquire(state, role, (id, op), *pipe),
            TtgOp::Ready(pipe) => {
                let Some(reader) = state.rings[pipe.index()].readers.iter_mut().find(|r| r.role == role) else {
                    return Ok(None);
                };
                let t = reader.claimed;
                reader.claimed += 1;
                self.check_time(state, role, (id, op), (*pipe, t, false))?;
                give(state, role, &op.results, &TokenState::Time(*pipe, t));
            }
            TtgOp::WaitReady => {
                let Some(TokenState::Time(pipe, t)) = op.args.first().and_then(|v| state.roles[role].tokens.get(v)).cloned()
                else {
                    return Ok(None);
                };
                if !state.rings[pipe.index()].filled.has(t) {
                    return Ok(Some(Wait { role, op: id, on: On::Filled(pipe) }));
                }
                drop(taken(state));
                give(state, role, &op.results, &TokenState::Time(pipe, t));
            }
            TtgOp::AsyncProduce { .. } | TtgOp::Fill(_) | TtgOp::Write => {
                if let Some(TokenState::Time(pipe, t)) = taken(state) {
                    state.rings[pipe.index()].filled.add(t);
                    give(state, role, &op.results, &TokenState::Time(pipe, t));
                }
            }
            TtgOp::Release | TtgOp::StoreWait => {
                if let Some(TokenState::Time(pipe, t)) = taken(state) {
                    release(state, role, pipe, t);
                }
            }
            TtgOp::ReadPerm | TtgOp::Consumed | TtgOp::Split(_) => {
                if let Some(held) = taken(state) {
                    give(state, role, &op.results, &held);
                }
            }
            TtgOp::Join => {
                let parts: Vec<Option<TokenState>> = op.args.iter().map(|v| state.roles[role].tokens.remove(v)).collect();
                if let Some(Some(held)) = parts.first() {
                    give(state, role, &op.results, held);
                }
            }
            TtgOp::StoreIssue(_) => {
                if let Some(held) = op.args.last().and_then(|v| state.roles[role].tokens.remove(v)) {
                    give(state, role, &op.results, &held);
                }
            }
            TtgOp::ComputeIssue => give(state, role, &op.results, &TokenState::Mma),
            TtgOp::ComputeWait => drop(taken(state)),
            TtgOp::AccStart(_) => give(state, role, &op.results, &TokenState::Acc(Vec::new())),
            TtgOp::AccMma => self.accumulate(state, role, op),
            TtgOp::AccFinish => {
                if let Some(TokenState::Acc(list)) = taken(state) {
                    list.into_iter().for_each(|(pipe, t)| release(state, role, pipe, t));
                }
            }
            TtgOp::Source(..)
            | TtgOp::SourceRows { .. }
            | TtgOp::Poisoned
            | TtgOp::View { .. }
            | TtgOp::Read
            | TtgOp::Roles
            | TtgOp::Finalize
            | TtgOp::Rematerialize
            // Barrier programs are executed by their claims alone.
            | TtgOp::Claim(..)
            | TtgOp::Fence { .. } => {}
        }
        Ok(None)
    }

    fn acquire(
        &mut self,
        state: &mut State,
        role: usize,
        (id, op): (OpId, &Op),
        pipe: Pipe,
    ) -> Result<Option<Wait>, Fault> {
        let slots = i64::from(self.kernel.pipe(pipe).map_or(1, |p| p.slots));
        let ring = &state.rings[pipe.index()];
        let t = ring.acquired;
        if !ring.readers.iter().all(|r| r.released.has(t - slots)) {
            if self.staging.contains(&pipe) {
                return Err(Fault::Staging { op: id, pipe });
            }
            return Ok(Some(Wait { role, op: id, on: On::Free(pipe) }));
        }
        self.check_time(state, role, (id, op), (pipe, t, true))?;
        let ring = &mut state.rings[pipe.index()];
        ring.acquired += 1;
        if self.staging.contains(&pipe) {
            ring.readers.iter_mut().for_each(|r| r.claimed += 1);
        }
        give(state, role, &op.results, &TokenState::Time(pipe, t));
        Ok(None)
    }

    /// A stated time must equal the clock.
    fn check_time(
        &mut self,
        state: &mut State,
        role: usize,
        (id, op): (OpId, &Op),
        (pipe, t, fills): (Pipe, i64, bool),
    ) -> Result<(), Fault> {
        let (Some(written), true) = (op.args.first(), self.timed) else { return Ok(()) };
        let written = self.symbols.int(*written, &state.roles[role].env, &mut state.facts);
        let clock = state.clocks[pipe.index()][usize::from(fills)].plus_const(t);
        match state.facts.decide(&Condition::Zero(written.minus(&clock), true)) {
            Some(true) => Ok(()),
            other => Err(Fault::Time { op: id, pipe, wrong: other == Some(false) }),
        }
    }

    /// An MMA takes its stage; the oldest stages beyond those of MMAs that may be in flight have been read, and are released.
    fn accumulate(&mut self, state: &mut State, role: usize, op: &Op) {
        let [acc, stage, ..] = op.args[..] else { return };
        let Ty::Acc(_, _, keep) = self.kernel.ty(acc) else { return };
        let tokens = &mut state.roles[role].tokens;
        let (Some(TokenState::Acc(mut list)), Some(TokenState::Time(pipe, t))) =
            (tokens.remove(&acc), tokens.remove(&stage))
        else {
            return;
        };
        list.push((pipe, t));
        while list.len() > usize::from(keep) {
            let (pipe, t) = list.remove(0);
            release(state, role, pipe, t);
        }
        give(state, role, &op.results, &TokenState::Acc(list));
    }

    /// Whether a block uses a ring.
    pub(in crate::verify) fn touches(&self, block: Block, pipe: Pipe) -> bool {
        let mut found = false;
        self.kernel.walk_block(block, &mut |_, op| {
            let names = |v: &Value| matches!(self.kernel.ty(*v), Ty::Token(_, p) if p == pipe);
            found |= matches!(op.kind, OpKind::Ttg(TtgOp::Claim(_, p)) if p == pipe);
            found |= op.args.iter().chain(&op.results).any(names);
        });
        found
    }
}

fn give(state: &mut State, role: usize, results: &[Value], held: &TokenState) {
    for result in results {
        state.roles[role].tokens.insert(*result, held.clone());
    }
}

fn release(state: &mut State, role: usize, pipe: Pipe, t: i64) {
    if let Some(reader) = state.rings[pipe.index()].readers.iter_mut().find(|r| r.role == role) {
        reader.released.add(t);
    }
}
