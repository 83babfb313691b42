//! Structured control flow as labels and branches: blocks, arms, roles, and exits of loops; [`super::loops`] has the loops.

use super::copies::{self, From};
use super::error::Fault;
use super::{Arg, Done, Lower, form_of};
use crate::ptx::isa::control::{BRANCH, BRANCH_UNIFORM, MOVE_BITS, RETURN};
use crate::ptx::{Guard, Label, Line, Reg};
use titan_core::ir::Pred as Cmp;
use titan_core::lane::family::{Family, Flow};
use titan_core::lane::op::OpKind;
use titan_core::lane::uniform::Level;
use titan_core::lane::{Block, Op, Role, Ty, Value};

/// An enclosing loop.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// The target of `continue`.
    pub(super) next: Label,
    /// The target of `break`.
    pub(super) exit: Label,
    /// The registers that `continue` sets.
    pub(super) carried: Vec<Reg>,
    /// The registers that `break` sets.
    pub(super) results: Vec<Reg>,
}

impl Lower<'_> {
    /// Lowers a block; stops after its terminator.
    pub(super) fn block(&mut self, block: Block) -> Done {
        let func = self.func;
        for id in &func.block(block).ops {
            let op = func.op(*id);
            if !self.uses.wanted(op) {
                continue;
            }
            self.locate(op);
            let done = match op.kind.family() {
                Family::Flow(Flow::If) => self.branch(op),
                Family::Flow(Flow::Roles(roles)) => self.split(roles, op),
                Family::Flow(Flow::For) => self.for_loop(op),
                Family::Flow(Flow::Loop) => self.endless(op),
                Family::Flow(Flow::Return) => self.inst(&RETURN, &[]),
                Family::Flow(Flow::Break(n)) => self.leave(n, &op.args, true),
                Family::Flow(Flow::Continue(n)) => self.leave(n, &op.args, false),
                // The enclosing `if` reads the values that an arm yields; loops have no `yield`.
                Family::Flow(Flow::Yield) => Ok(()),
                Family::Pure
                | Family::Warp
                | Family::Mark { .. }
                | Family::Access { .. }
                | Family::Matrix { .. }
                | Family::Copy(_)
                | Family::Protocol
                | Family::Order
                | Family::Group(_)
                | Family::Barrier(_) => self.op(op),
            };
            done.map_err(|fault| fault.at(func, self.machine, op))?;
        }
        Ok(())
    }

    /// Emits a copy to a register.
    pub(super) fn copy(&mut self, to: Reg, from: &Arg) -> Done {
        self.inst(form_of(MOVE_BITS, &to.class)?, &[Arg::Reg(to), from.clone()])
    }

    /// Emits parallel copies to several registers.
    pub(super) fn copies(&mut self, to: &[Reg], from: &[Value]) -> Done {
        let mut copies = Vec::with_capacity(to.len());
        for (to, value) in to.iter().zip(from) {
            let from = match self.func.constant(*value) {
                Some(bits) => From::Bits(bits),
                None => From::Reg(self.reg(*value)?),
            };
            copies.push((*to, from));
        }
        let ordered = copies::order(&copies, &mut |like| self.fresh(like.class));
        for (to, from) in ordered {
            self.copy(
                to,
                &match from {
                    From::Reg(reg) => Arg::Reg(reg),
                    From::Bits(bits) => Arg::Bits(bits),
                },
            )?;
        }
        Ok(())
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels.push(0);
        Label(u32::try_from(self.labels.len()).unwrap_or(u32::MAX))
    }

    /// The number of branches to a label.
    pub(super) fn branches(&mut self, label: Label) -> Option<&mut u32> {
        self.labels.get_mut((label.0 as usize).checked_sub(1)?)
    }

    /// Places a label if a branch to it exists or, with `later`, will exist.
    pub(super) fn place(&mut self, label: Label, later: bool) {
        if later || self.branches(label).is_some_and(|n| *n > 0) {
            self.body.push(Line::Label(label));
        }
    }

    fn jump(&mut self, label: Label) -> Done {
        self.branch_to(None, true, label)
    }

    pub(super) fn branch_to(&mut self, guard: Option<Guard>, together: bool, label: Label) -> Done {
        if let Some(n) = self.branches(label) {
            *n += 1;
        }
        self.guarded(guard, if together { &BRANCH_UNIFORM } else { &BRANCH }, &[Arg::Label(label)])
    }

    /// Whether values are the same in all lanes of a warp.
    pub(super) fn together(&self, values: &[Value]) -> bool {
        values.iter().all(|v| self.uniform.level(*v) <= Level::Warp)
    }

    /// Lowers an arm, and copies the values that it yields to registers; returns whether control reaches its end.
    fn arm(&mut self, block: Block, results: &[Reg]) -> Result<bool, Fault> {
        let func = self.func;
        self.block(block)?;
        let Some(last) = func.block(block).ops.last().map(|id| func.op(*id)) else { return Ok(true) };
        if last.kind != OpKind::Yield {
            return Ok(false);
        }
        self.copies(results, &last.args)?;
        Ok(true)
    }

    /// Whether an arm emits no code.
    fn is_empty(&self, block: Block) -> bool {
        let data = self.func.block(block);
        data.ops
            .iter()
            .map(|id| self.func.op(*id))
            .all(|op| if op.kind == OpKind::Yield { op.args.is_empty() } else { !self.uses.wanted(op) })
    }

    fn branch(&mut self, op: &Op) -> Done {
        let results = self.outs(op);
        let ([cond], [yes, no]) = (op.args.as_slice(), op.regions.as_slice()) else {
            return Err(Fault::Defect("a branch takes a condition and two arms".to_owned()));
        };
        if let Some(bits) = self.func.constant(*cond) {
            self.arm(if bits == 0 { *no } else { *yes }, &results)?;
            return Ok(());
        }
        let (no_is_empty, yes_is_empty) = (self.is_empty(*no), self.is_empty(*yes));
        if no_is_empty && yes_is_empty {
            return Ok(());
        }
        let guard = self.guard(*cond)?;
        let inverted = Guard { negated: !guard.negated, ..guard };
        let together = self.together(&[*cond]);
        let end = self.label();
        if no_is_empty || yes_is_empty {
            let (skip, arm) = if no_is_empty { (inverted, *yes) } else { (guard, *no) };
            if self.leave_if(arm, Guard { negated: !skip.negated, ..skip }, together)? {
                return Ok(());
            }
            self.branch_to(Some(skip), together, end)?;
            self.arm(arm, &results)?;
            self.place(end, false);
            return Ok(());
        }
        let other = self.label();
        self.branch_to(Some(inverted), together, other)?;
        if self.arm(*yes, &results)? {
            self.jump(end)?;
        }
        self.place(other, false);
        self.arm(*no, &results)?;
        self.place(end, false);
        Ok(())
    }

    /// Emits the code of each role in turn, behind a branch for the other warps; the last role has all remaining warps.
    fn split(&mut self, roles: &[Role], op: &Op) -> Done {
        let results = self.outs(op);
        let Some(warp) = self.warp_id else { return Err(Fault::Defect("the warp's number is not there".to_owned())) };
        let end = self.label();
        let mut above = 0u32;
        for (i, (role, code)) in roles.iter().zip(&op.regions).enumerate() {
            if i + 1 == roles.len() {
                self.arm(*code, &results)?;
                break;
            }
            above = above.saturating_add(role.warps);
            let next = self.label();
            let others = self.compare((Cmp::Ge, false, Ty::B32), Arg::Reg(warp), Arg::Bits(u64::from(above)))?;
            self.branch_to(Some(Guard { reg: others, negated: false }), true, next)?;
            if self.arm(*code, &results)? {
                self.jump(end)?;
            }
            self.place(next, false);
        }
        self.place(end, false);
        Ok(())
    }

    /// Emits an arm that only leaves a loop, without values, as one branch; returns whether it was such an arm.
    fn leave_if(&mut self, arm: Block, guard: Guard, together: bool) -> Result<bool, Fault> {
        let func = self.func;
        let ops: Vec<&Op> =
            func.block(arm).ops.iter().map(|id| func.op(*id)).filter(|op| self.uses.wanted(op)).collect();
        let [op] = ops.as_slice() else { return Ok(false) };
        let (OpKind::Break(n) | OpKind::Continue(n)) = op.kind else { return Ok(false) };
        let (to, label) = self.target(n, matches!(op.kind, OpKind::Break(_)))?;
        for (to, value) in to.iter().zip(&op.args) {
            if func.constant(*value).is_some() || self.reg(*value)? != *to {
                return Ok(false);
            }
        }
        self.branch_to(Some(guard), together, label)?;
        Ok(true)
    }

    /// The registers that are set, and the label, when a loop is left (`out`) or continued.
    fn target(&self, n: u32, out: bool) -> Result<(Vec<Reg>, Label), Fault> {
        let at = self.frames.len().checked_sub(1 + n as usize);
        let Some(frame) = at.and_then(|at| self.frames.get(at)) else {
            return Err(Fault::Defect("no such loop".to_owned()));
        };
        let (to, label) = if out { (&frame.results, frame.exit) } else { (&frame.carried, frame.next) };
        Ok((to.clone(), label))
    }

    fn leave(&mut self, n: u32, args: &[Value], out: bool) -> Done {
        let (to, label) = self.target(n, out)?;
        self.copies(&to, args)?;
        self.jump(label)
    }
}
