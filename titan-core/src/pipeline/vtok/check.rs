//! The independent checker of virtual tokens: executes loops and branches with concrete numbers, with groups as a queue.
//!
//! Every loop executes a given number of iterations, branches on loop counters are evaluated, and a wait that allows `n` groups
//! completes all older ones, and no others. A stage must be complete when it is read.
//!
//! Deliberately absent: the code of roles, whose groups belong to different threads.

use super::Groups;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Block, Family, Flow, Kernel, OpId, OpKind, Pipe, Token, TtgOp, Ty, Value};
use std::collections::VecDeque;

/// The error that a stage is read before its group must be complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Early {
    /// The wait for the stage.
    pub wait: OpId,
    /// The number of iterations of the loops.
    pub trips: i64,
}

/// Checks the result of [`super::assign`], with loops of every length up to `most`.
///
/// # Errors
/// The first wait after which a copy of its stage may still be in flight.
pub fn check(kernel: &Kernel, groups: &Groups, most: i64) -> Result<(), Early> {
    for trips in 0..=most {
        let mut run = Run {
            kernel,
            groups,
            trips,
            counters: SortedMap::new(),
            open: Vec::new(),
            queue: VecDeque::new(),
            complete: SortedSet::new(),
            clocks: vec![(0, 0); kernel.pipes.len()],
            claims: SortedMap::new(),
            early: None,
        };
        run.block(kernel.body);
        if let Some(wait) = run.early {
            return Err(Early { wait, trips });
        }
    }
    Ok(())
}

struct Run<'k> {
    kernel: &'k Kernel,
    groups: &'k Groups,
    /// The number of iterations of loops of unknown length.
    trips: i64,
    /// The known integers: counters, and functions of them.
    counters: SortedMap<Value, i64>,
    /// The stages in the open group.
    open: Vec<(Pipe, i64)>,
    /// The committed groups that may be in flight, the oldest first.
    queue: VecDeque<Vec<(Pipe, i64)>>,
    complete: SortedSet<(Pipe, i64)>,
    /// For each ring, the next times of its filling side and of its reading side.
    clocks: Vec<(i64, i64)>,
    claims: SortedMap<Value, (Pipe, i64)>,
    early: Option<OpId>,
}

/// Where a block continues if not behind its last operation.
enum Jump {
    /// In the next iteration of the enclosing loop with this number.
    Again(u32),
    /// After the enclosing loop with this number.
    Leave(u32),
    /// At the end of the program.
    End,
}

impl Run<'_> {
    fn block(&mut self, block: Block) -> Option<Jump> {
        for id in &self.kernel.block(block).ops {
            let jump = self.op(*id);
            if self.groups.commits.contains(id) {
                let group = std::mem::take(&mut self.open);
                self.queue.push_back(group);
            }
            if jump.is_some() {
                return jump;
            }
        }
        None
    }

    /// Executes an iteration of a loop: whether the loop goes on, or where the block around it continues.
    fn iteration(&mut self, body: Block) -> Result<bool, Jump> {
        match self.block(body) {
            None | Some(Jump::Again(0)) => Ok(true),
            Some(Jump::Leave(0)) => Ok(false),
            Some(Jump::Again(n)) => Err(Jump::Again(n - 1)),
            Some(Jump::Leave(n)) => Err(Jump::Leave(n - 1)),
            Some(Jump::End) => Err(Jump::End),
        }
    }

    /// The value of an integer: constants, counters, sums; unknown bounds are `trips`.
    fn int(&self, value: Value) -> i64 {
        if let Some(known) = self.counters.get(&value) {
            return *known;
        }
        if let Some(c) = self.kernel.int_constant(value) {
            return c;
        }
        let Some(op) = self.kernel.def_op(value) else { return self.trips };
        match (&op.kind, &op.args[..]) {
            (OpKind::Binary(crate::ir::BinOp::Add), [a, b]) => self.int(*a) + self.int(*b),
            (OpKind::Binary(crate::ir::BinOp::Sub), [a, b]) => self.int(*a) - self.int(*b),
            (_, _) => self.trips,
        }
    }

    fn holds(&self, value: Value) -> bool {
        let Some(op) = self.kernel.def_op(value) else { return true };
        let (OpKind::Cmp(pred), [a, b]) = (&op.kind, &op.args[..]) else { return true };
        let (a, b) = (self.int(*a), self.int(*b));
        match pred {
            crate::ir::Pred::Eq => a == b,
            crate::ir::Pred::Ne => a != b,
            crate::ir::Pred::Lt => a < b,
            crate::ir::Pred::Le => a <= b,
            crate::ir::Pred::Gt => a > b,
            crate::ir::Pred::Ge => a >= b,
        }
    }

    fn op(&mut self, id: OpId) -> Option<Jump> {
        let kernel = self.kernel;
        let op = kernel.op(id);
        match op.kind.family() {
            Family::Flow(Flow::For(_)) => {
                let [lo, hi, step] = [0, 1, 2].map(|i| self.int(op.args[i]));
                let body = op.regions[0];
                let (mut at, mut goes_on) = (lo, true);
                while goes_on && at < hi && self.early.is_none() {
                    if let Some(counter) = kernel.block(body).args.first() {
                        self.counters.insert(*counter, at);
                    }
                    match self.iteration(body) {
                        Ok(more) => goes_on = more,
                        Err(jump) => return Some(jump),
                    }
                    at += step.max(1);
                }
                None
            }
            Family::Flow(Flow::Loop) => {
                for _ in 0..self.trips {
                    match self.iteration(op.regions[0]) {
                        Ok(true) => {}
                        Ok(false) => break,
                        Err(jump) => return Some(jump),
                    }
                }
                None
            }
            Family::Flow(Flow::If) => {
                let arm = usize::from(!self.holds(op.args[0]));
                op.regions.get(arm).and_then(|arm| self.block(*arm))
            }
            Family::Ttg(ttg) => {
                self.event(id, ttg);
                None
            }
            Family::Flow(Flow::Break(n)) => Some(Jump::Leave(n)),
            Family::Flow(Flow::Continue(n)) => Some(Jump::Again(n)),
            Family::Flow(Flow::Return) => Some(Jump::End),
            Family::Flow(Flow::Yield)
            | Family::Data(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => None,
        }
    }

    fn event(&mut self, id: OpId, ttg: &TtgOp) {
        let op = self.kernel.op(id);
        let ring =
            |v: Option<&Value>| if let Ty::Token(Token::Slot, pipe) = self.kernel.ty(*v?) { Some(pipe) } else { None };
        match ttg {
            TtgOp::AsyncProduce { .. } | TtgOp::Fill(_) => {
                let Some(pipe) = ring(op.args.first()) else { return };
                let clock = &mut self.clocks[pipe.index()];
                self.open.push((pipe, clock.0));
                clock.0 += 1;
            }
            TtgOp::Ready(pipe) => {
                let clock = &mut self.clocks[pipe.index()];
                self.claims.extend(op.results.first().map(|claim| (*claim, (*pipe, clock.1))));
                clock.1 += 1;
            }
            TtgOp::WaitReady => {
                let allowed = self.groups.waits.get(&id).map_or(0, |n| *n as usize);
                while self.queue.len() > allowed {
                    self.complete.extend(self.queue.pop_front().unwrap_or_default());
                }
                let awaited = op.args.first().and_then(|v| self.claims.get(v));
                if awaited.is_none_or(|stage| !self.complete.contains(stage)) {
                    self.early.get_or_insert(id);
                }
            }
            // These neither start copies of a ring nor wait for them.
            TtgOp::Source(..)
            | TtgOp::SourceRows { .. }
            | TtgOp::Acquire(_)
            | TtgOp::Poisoned
            | TtgOp::ReadPerm
            | TtgOp::Split(_)
            | TtgOp::Join
            | TtgOp::View { .. }
            | TtgOp::Read
            | TtgOp::Consumed
            | TtgOp::Release
            | TtgOp::ComputeIssue
            | TtgOp::ComputeWait
            | TtgOp::AccStart(_)
            | TtgOp::AccMma
            | TtgOp::AccFinish
            | TtgOp::Write
            | TtgOp::StoreIssue(_)
            | TtgOp::StoreWait
            | TtgOp::Finalize
            | TtgOp::Rematerialize
            | TtgOp::Claim(..)
            | TtgOp::Fence { .. }
            | TtgOp::Roles => {}
        }
    }
}
