//! The effect of one operation on rings, executed by one role.

use super::super::linear::Condition;
use super::super::run::{Fault, On, Run, Wait, defect};
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
        match ttg {
            TtgOp::Acquire(pipe) => return self.acquire(state, role, (id, op), *pipe),
            TtgOp::Ready(pipe) => {
                let Some(reader) = state.rings[pipe.index()].readers.iter_mut().find(|r| r.role == role) else {
                    return defect(id, "a wait for a stage by a role that is no reader");
                };
                let t = reader.claimed;
                reader.claimed += 1;
                self.check_time(state, role, (id, op), (*pipe, t, false))?;
                give(state, role, &op.results, &TokenState::Time(*pipe, t));
            }
            TtgOp::WaitReady => {
                let wait = op.args.first().and_then(|v| state.roles[role].tokens.get(v)).cloned();
                let Some(TokenState::Time(pipe, t)) = wait else { return defect(id, NO_TOKEN) };
                // Asked before the token is taken: a role that waits has changed nothing, and takes the same step again
                // later.
                if !state.rings[pipe.index()].filled.has(t) {
                    return Ok(Some(Wait { role, op: id, on: On::Filled(pipe) }));
                }
                taken(state, role, (id, op))?;
                give(state, role, &op.results, &TokenState::Time(pipe, t));
            }
            TtgOp::AsyncProduce { .. } | TtgOp::Fill(_) | TtgOp::Write => {
                let (pipe, t) = time(taken(state, role, (id, op))?, id)?;
                state.rings[pipe.index()].filled.add(t);
                give(state, role, &op.results, &TokenState::Time(pipe, t));
            }
            TtgOp::Release | TtgOp::StoreWait => {
                let at = time(taken(state, role, (id, op))?, id)?;
                release(state, role, id, at)?;
            }
            TtgOp::ReadPerm | TtgOp::Consumed | TtgOp::Split(_) => {
                let held = taken(state, role, (id, op))?;
                give(state, role, &op.results, &held);
            }
            TtgOp::Join => {
                let parts: Option<Vec<TokenState>> =
                    op.args.iter().map(|v| state.roles[role].tokens.remove(v)).collect();
                let Some(held) = parts.and_then(|parts| parts.into_iter().next()) else {
                    return defect(id, NO_TOKEN);
                };
                give(state, role, &op.results, &held);
            }
            TtgOp::StoreIssue(_) => {
                // A store reads the staging slot until it is waited for; the token of its wait stands for the same
                // time.
                let Some(held) = op.args.last().and_then(|v| state.roles[role].tokens.remove(v)) else {
                    return defect(id, NO_TOKEN);
                };
                give(state, role, &op.results, &held);
            }
            TtgOp::ComputeIssue => give(state, role, &op.results, &TokenState::Mma),
            TtgOp::ComputeWait => drop(taken(state, role, (id, op))?),
            TtgOp::AccStart(_) => give(state, role, &op.results, &TokenState::Acc(Vec::new())),
            TtgOp::AccMma => self.accumulate(state, role, (id, op))?,
            TtgOp::AccFinish => {
                let TokenState::Acc(list) = taken(state, role, (id, op))? else { return defect(id, NO_TOKEN) };
                for at in list {
                    release(state, role, id, at)?;
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
        // A(t) comes after R(t - D, i) of every reader. A staging ring has no other role that could release: it would
        // wait for itself.
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

    /// Checks that a stated time equals the clock.
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
        // Undecided is refused as well: a stated time is a promise for all arguments.
        match state.facts.decide(&Condition::Zero(written.minus(&clock), true)) {
            Some(true) => Ok(()),
            other => Err(Fault::Time { op: id, pipe, wrong: other == Some(false) }),
        }
    }

    /// Records an MMA that takes its stage. The oldest stages, beyond those of MMAs that may be in flight, have been read and are released.
    fn accumulate(&mut self, state: &mut State, role: usize, (id, op): (OpId, &Op)) -> Result<(), Fault> {
        let [acc, stage, ..] = op.args[..] else { return defect(id, NO_TOKEN) };
        let Ty::Acc(_, _, keep) = self.kernel.ty(acc) else { return defect(id, NO_TOKEN) };
        let tokens = &mut state.roles[role].tokens;
        let (Some(TokenState::Acc(mut list)), Some(TokenState::Time(pipe, t))) =
            (tokens.remove(&acc), tokens.remove(&stage))
        else {
            return defect(id, NO_TOKEN);
        };
        list.push((pipe, t));
        // With KEEP = 1, the MMA of time t is complete when that of time t + 1 has been issued: its stage is released
        // here. Each round of the loop releases one.
        while list.len() > usize::from(keep) {
            release(state, role, id, list.remove(0))?;
        }
        give(state, role, &op.results, &TokenState::Acc(list));
        Ok(())
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

/// Tokens are used once, by operations of their kind: rules 36 to 40 were checked before.
const NO_TOKEN: &str = "an operation on a token that its role does not have";

/// The state of the token that is the first operand.
fn taken(state: &mut State, role: usize, (id, op): (OpId, &Op)) -> Result<TokenState, Fault> {
    let token = op.args.first().and_then(|v| state.roles[role].tokens.remove(v));
    token.map_or_else(|| defect(id, NO_TOKEN), Ok)
}

/// The ring and the time of a token.
fn time(token: TokenState, id: OpId) -> Result<(Pipe, i64), Fault> {
    match token {
        TokenState::Time(pipe, t) => Ok((pipe, t)),
        TokenState::Acc(_) | TokenState::Mma => defect(id, NO_TOKEN),
    }
}

fn give(state: &mut State, role: usize, results: &[Value], held: &TokenState) {
    for result in results {
        state.roles[role].tokens.insert(*result, held.clone());
    }
}

fn release(state: &mut State, role: usize, id: OpId, (pipe, t): (Pipe, i64)) -> Result<(), Fault> {
    let Some(reader) = state.rings[pipe.index()].readers.iter_mut().find(|r| r.role == role) else {
        return defect(id, "a stage that is released by a role that is no reader");
    };
    reader.released.add(t);
    Ok(())
}
