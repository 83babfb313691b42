//! Blocks and branches.

use super::assigned;
use super::own::Meeting;
use super::val::PipeVal;
use super::{Closure, FnLower, Lowered, Stop, Val};
use crate::ast::{Block, Cond, Expr, Pat, Stmt, VarId};
use crate::consts::{self, ConstValue};
use proc_macro2::Span;
use titan_core::collections::SortedSet;
use titan_core::diag::Code;
use titan_core::ir::{OpKind, TtgOp, Ty, Value};

/// An arm of a branch.
pub(super) enum Arm<'x> {
    Block(&'x Block),
    /// Taken if an optional tensor is present.
    Tensor(&'x Pat, Value, &'x Block),
    /// Taken for a stage that is not poison.
    Stage(&'x Pat, Value, &'x Block),
    /// Taken for a poisoned stage, which is released without being read.
    Passed(Value, Option<&'x Expr>),
    Else(Option<&'x Expr>),
}

impl Arm<'_> {
    /// The variables that it assigns.
    fn assigned(&self) -> SortedSet<VarId> {
        match self {
            Arm::Block(b) | Arm::Tensor(_, _, b) | Arm::Stage(_, _, b) => assigned::of_block(b).assigned,
            Arm::Passed(_, e) | Arm::Else(e) => e.map(|e| assigned::of_expr(e).assigned).unwrap_or_default(),
        }
    }
}

impl FnLower<'_, '_, '_> {
    pub(super) fn block(&mut self, block: &Block) -> Lowered<Val> {
        let mut last = Val::Unit;
        for stmt in &block.stmts {
            if self.sh.b.is_terminated() {
                return Ok(Val::Unit);
            }
            last = Val::Unit;
            match stmt {
                Stmt::Let { pat, init, .. } => {
                    if let Some(e) = init {
                        let val = self.expr(e)?;
                        if self.sh.b.is_terminated() {
                            return Ok(Val::Unit);
                        }
                        self.bind(pat, val)?;
                    }
                }
                Stmt::Expr { expr, semi } => {
                    let val = self.expr(expr)?;
                    if semi.is_none() {
                        last = val;
                    }
                }
            }
        }
        Ok(last)
    }

    // Branches.

    pub(super) fn branch(&mut self, cond: &Cond, then: &Block, other: Option<&Expr>, span: Span) -> Lowered<Val> {
        let (c, binding) = match cond {
            Cond::Expr(e) => {
                match consts::eval(e, &self.env) {
                    Ok(ConstValue::Bool(true)) => return self.block(then),
                    Ok(ConstValue::Bool(false)) => return other.map_or(Ok(Val::Unit), |e| self.expr(e)),
                    _ => {}
                }
                let c = self.expr(e)?;
                (self.value(c, e.span)?, None)
            }
            Cond::LetSome { pat, option, .. } => {
                let t = match self.expr(option)? {
                    Val::Pipe(PipeVal::Filled(ready)) => {
                        return self.branch_filled(ready, pat, (then, other), option.span);
                    }
                    t => self.tensor(t, option.span)?,
                };
                (self.op(option.span, OpKind::Present, &[t])?, Some((pat, t)))
            }
        };
        let plain = self.closure == Closure::None || (self.closure == Closure::Map && binding.is_some());
        if !plain || matches!(self.ty(c), Ty::Tile(..)) {
            return self.choose(c, then, other, span);
        }
        let first = binding.map_or(Arm::Block(then), |(pat, t)| Arm::Tensor(pat, t, then));
        self.branch_on(c, first, Arm::Else(other), span)
    }

    /// `if` inside a closure: both arms are executed, and their values and the variables that they assign are selected for each element.
    fn choose(&mut self, mask: Value, then: &Block, other: Option<&Expr>, span: Span) -> Lowered<Val> {
        if self.closure == Closure::None {
            return Err(self.error(Code::Condition, span, "a condition must be one `bool`, not a mask"));
        }
        let merged = self.merged_vars(&Arm::Block(then), &Arm::Else(other));
        let before = self.vars.clone();
        let a = self.under_a_condition(|f| f.block(then))?;
        let vars_a = std::mem::replace(&mut self.vars, before.clone());
        let b = self.under_a_condition(|f| other.map_or(Ok(Val::Unit), |e| f.expr(e)))?;
        let vars_b = std::mem::replace(&mut self.vars, before);
        for var in merged {
            if let (Some(Some(a)), Some(Some(b))) = (vars_a.get(var), vars_b.get(var)) {
                self.vars[var] = Some(self.pick(mask, a, b, span)?);
            }
        }
        self.pick(mask, &a, &b, span)
    }

    /// Lowers code that is executed even where its value is not selected.
    pub(super) fn under_a_condition(&mut self, code: impl FnOnce(&mut Self) -> Lowered<Val>) -> Lowered<Val> {
        let was = std::mem::replace(&mut self.chosen, true);
        let val = code(self);
        self.chosen = was;
        val
    }

    /// `a` where the mask holds, `b` elsewhere.
    pub(super) fn pick(&mut self, mask: Value, a: &Val, b: &Val, span: Span) -> Lowered<Val> {
        match (a, b) {
            (Val::Unit, _) | (_, Val::Unit) => Ok(Val::Unit),
            (Val::Value(a), Val::Value(b)) if a == b => Ok(Val::Value(*a)),
            (Val::Value(a), Val::Value(b)) => {
                let (mut a, mut b) = (*a, *b);
                let shape = [mask, a, b].into_iter().find_map(|v| self.ty(v).tile_shape());
                if let Some(shape) = shape {
                    let elem = self.ty(a).elem();
                    a = self.beside(Val::Value(a), elem, shape, span)?;
                    b = self.beside(Val::Value(b), elem, shape, span)?;
                }
                Ok(Val::Value(self.op(span, OpKind::Select, &[mask, a, b])?))
            }
            (Val::Tuple(a), Val::Tuple(b)) => self.pick_each(mask, a, b, span).map(Val::Tuple),
            (Val::Array(a), Val::Array(b)) => self.pick_each(mask, a, b, span).map(Val::Array),
            _ => Err(self.error(Code::Syntax, span, "the value of an `if` in a closure must be a scalar")),
        }
    }

    fn pick_each(&mut self, mask: Value, a: &[Val], b: &[Val], span: Span) -> Lowered<Vec<Val>> {
        a.iter().zip(b).map(|(a, b)| self.pick(mask, a, b, span)).collect()
    }

    pub(super) fn branch_on(&mut self, cond: Value, first: Arm<'_>, second: Arm<'_>, span: Span) -> Lowered<Val> {
        let merged = self.merged_vars(&first, &second);
        let before = self.vars.clone();
        let owns_before = self.owns_snapshot();
        self.at(span);
        let mut open = self.sh.b.begin_if(cond);
        let a = self.arm(&first, span)?;
        let end_a = self.arm_end(&a, &merged, span)?;
        let owns_a = self.owns_snapshot();
        let vars_a = std::mem::replace(&mut self.vars, before.clone());
        self.owns_restore(&owns_before);
        self.sh.b.begin_else(&mut open);
        let b = self.arm(&second, span)?;
        let end_b = self.arm_end(&b, &merged, span)?;
        let (results, shape_vars, shape_val) = match (&end_a, &end_b) {
            (Some(tys), Some(_)) => {
                self.owns_join(&owns_a, span, Meeting::Branch);
                (tys.clone(), vars_a, a)
            }
            (Some(tys), None) => {
                self.owns_restore(&owns_a);
                (tys.clone(), vars_a, a)
            }
            (None, Some(tys)) => (tys.clone(), self.vars.clone(), b),
            (None, None) => {
                self.sh.b.end_if(open, &[]);
                self.vars = before;
                self.dead_end(span)?;
                return Ok(Val::Unit);
            }
        };
        let values = self.sh.b.end_if(open, &results);
        let mut values = values.into_iter();
        self.vars = before;
        for var in merged {
            let shape = shape_vars[var].clone().ok_or(Stop)?;
            let val = shape.rebuild(&mut values);
            self.name(&val, &self.func().vars[var].name.to_string());
            self.vars[var] = Some(val);
        }
        Ok(shape_val.rebuild(&mut values))
    }

    fn arm(&mut self, arm: &Arm<'_>, span: Span) -> Lowered<Val> {
        match arm {
            Arm::Block(b) => self.block(b),
            Arm::Tensor(pat, tensor, b) => {
                self.bind(pat, Val::Tensor(*tensor))?;
                self.block(b)
            }
            Arm::Stage(pat, stage, b) => {
                let rperm = self.op(span, OpKind::Ttg(TtgOp::ReadPerm), &[*stage])?;
                self.bind(pat, Val::Value(rperm))?;
                self.block(b)
            }
            Arm::Passed(stage, other) => {
                self.release(*stage, span)?;
                other.map_or(Ok(Val::Unit), |e| self.expr(e))
            }
            Arm::Else(other) => other.map_or(Ok(Val::Unit), |e| self.expr(e)),
        }
    }

    /// The variables that have a value after the branch and may have been assigned inside.
    fn merged_vars(&self, first: &Arm<'_>, second: &Arm<'_>) -> Vec<VarId> {
        let (a, b) = (first.assigned(), second.assigned());
        let declared_inside = |v: VarId| self.vars[v].is_none() && !(a.contains(&v) && b.contains(&v));
        let all: SortedSet<VarId> = a.iter().chain(&b).copied().collect();
        all.into_iter().filter(|v| !declared_inside(*v)).collect()
    }

    /// Ends an arm: yields the merged variables and the arm's value. `None` if the end of the arm is unreachable.
    fn arm_end(&mut self, val: &Val, merged: &[VarId], span: Span) -> Lowered<Option<Vec<Ty>>> {
        if self.sh.b.is_terminated() {
            return Ok(None);
        }
        let mut values = self.flat_vars(merged, span)?;
        if !val.flatten(&mut values) {
            return Err(self.error(
                Code::Syntax,
                span,
                "the value of an `if` can be a scalar or tile, but not a tensor or output tile",
            ));
        }
        self.carriable(&values, span)?;
        let tys = values.iter().map(|v| self.ty(*v)).collect();
        self.at(span);
        self.sh.b.terminate(OpKind::Yield, &values);
        Ok(Some(tys))
    }

    pub(super) fn flat_vars(&mut self, vars: &[VarId], span: Span) -> Lowered<Vec<Value>> {
        let mut values = Vec::new();
        for var in vars {
            let val = self.var(*var, span)?;
            if !val.flatten(&mut values) {
                let title = format!(
                    "`{}` cannot be assigned in a branch or loop, because it is not a scalar or tile",
                    self.func().vars[*var].name
                );
                return Err(self.error(Code::Syntax, span, title));
            }
        }
        self.carriable(&values, span)?;
        Ok(values)
    }

    /// Rejects tiles in stages and copy sources, which cannot be carried by branches and loops.
    pub(super) fn carriable(&self, values: &[Value], span: Span) -> Lowered<()> {
        if values.iter().all(|v| self.ty(*v).is_carried()) {
            return Ok(());
        }
        let title = "a tile of a stage or a copy source cannot be the value of a branch or loop";
        self.sh.cx.error_help(
            Code::Syntax,
            span,
            title,
            "write the expression where it is used; `.load()` reads a tile of a stage into registers",
        );
        Err(Stop)
    }

    /// Ends a block whose end is unreachable, because every block needs a terminator.
    pub(super) fn dead_end(&mut self, span: Span) -> Lowered<()> {
        self.at(span);
        match self.loops.last().map(|l| (l.carried.clone(), l.level)) {
            Some((carried, level)) => {
                let values = self.flat_vars(&carried, span)?;
                let depth = self.depth_of(level);
                self.sh.b.terminate(OpKind::Continue(depth), &values);
            }
            None => self.sh.b.terminate(OpKind::Return, &[]),
        }
        Ok(())
    }

    pub(super) fn depth_of(&self, level: usize) -> u32 {
        u32::try_from(self.sh.depth - 1 - level).unwrap_or(0)
    }
}
