//! Lowers pipelines: rings, roles and tokens. A `Stage` of the language is a read permission (`rperm`) in the IR.
//!
//! The verifier checks on the IR that tokens are used, that rings are filled as often as they are read, and that waits end.

mod call;
mod method;
mod token;

use super::control::Arm;
use super::loops::LoopCtx;
use super::{FnLower, Lowered, Stop, Val};
use crate::ast::{Block, Expr, Pat, RoleArm};
use proc_macro2::Span;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::{OpKind, Pipe, RoleDecl, TtgOp, Ty, Value};

impl FnLower<'_, '_, '_> {
    /// `match role() { .. }`: a region for each role, in the order of the attribute.
    pub(super) fn roles(&mut self, arms: &[RoleArm], span: Span) -> Lowered<Val> {
        let decls: Vec<(String, RoleDecl)> = self.sh.roles.clone();
        self.sh.b.set_roles(decls.iter().map(|(_, d)| d.clone()).collect());
        let before = self.vars.clone();
        let mut regions = Vec::new();
        for (name, _) in &decls {
            let arm = arms.iter().find(|a| a.path[1] == name.as_str()).ok_or(Stop)?;
            regions.push(self.sh.b.begin_role());
            self.expr(&arm.body)?;
            self.at(arm.path[1].span());
            self.sh.b.end_role();
            // Each role has its own copy of the variables that it assigns.
            self.vars.clone_from(&before);
        }
        self.at(span);
        self.sh.b.roles(regions);
        Ok(Val::Unit)
    }

    fn ttg(&mut self, span: Span, op: TtgOp, args: &[Value]) -> Lowered<Value> {
        self.op(span, OpKind::Ttg(op), args)
    }

    fn ttg_effect(&mut self, span: Span, op: TtgOp, args: &[Value]) -> Lowered<Val> {
        self.effect(span, OpKind::Ttg(op), args)
    }

    /// Releases a stage that may have been read, or a poisoned one.
    pub(super) fn release(&mut self, stage: Value, span: Span) -> Lowered<Val> {
        let consumed = self.ttg(span, TtgOp::Consumed, &[stage])?;
        self.ttg_effect(span, TtgOp::Release, &[consumed])
    }

    /// `if let Some(stage) = ready.wait_filled() { .. } else { .. }`
    pub(super) fn branch_filled(
        &mut self,
        ready: Value,
        pat: &Pat,
        arms: (&Block, Option<&Expr>),
        span: Span,
    ) -> Lowered<Val> {
        let stage = self.ttg(span, TtgOp::WaitReady, &[ready])?;
        let poisoned = self.ttg(span, TtgOp::Poisoned, &[stage])?;
        self.branch_on(poisoned, Arm::Passed(stage, arms.1), Arm::Stage(pat, stage, arms.0), span)
    }

    /// The items of a loop over `produce(..)` or `consume(..)`: the number of the iteration and a token.
    pub(super) fn side_item(&mut self, pipe: Pipe, fills: bool, index: Value, span: Span) -> Lowered<Val> {
        if let Some(l) = self.loops.last_mut() {
            l.side = Some((span, if fills { "produce" } else { "consume" }));
        }
        let op = if fills { TtgOp::Acquire(pipe) } else { TtgOp::Ready(pipe) };
        let token = self.ttg(span, op, &[])?;
        Ok(Val::Tuple(vec![Val::Value(index), Val::Value(token)]))
    }

    /// Reports a jump that leaves a loop over `produce(..)` or `consume(..)` among the open loops from number `first` on.
    pub(super) fn stays_in_sides(&self, first: usize, what: &str, span: Span) -> Lowered<()> {
        let side = |l: &LoopCtx| l.side;
        let Some((at, name)) = self.loops.get(first..).unwrap_or_default().iter().find_map(side) else { return Ok(()) };
        let title = format!(
            "`{what}` leaves the loop over `{name}(..)` early, but the other roles rely on all of its iterations"
        );
        let diag = Diagnostic::new(Code::EarlyExit, span, title).related(at, "the loop");
        Err(self
            .push_diag(diag.help("compute the number of iterations before `match role()`, so that all roles use it")))
    }

    /// The operand of an MMA that must be in registers: a tile of a stage is loaded.
    pub(super) fn in_registers(&mut self, val: Val, span: Span) -> Lowered<Value> {
        let v = self.value(val, span)?;
        if matches!(self.ty(v), Ty::Smem(..)) { self.ttg(span, TtgOp::Read, &[v]) } else { Ok(v) }
    }
}
