//! Loops, `break` and `continue`.

use super::assigned::{self, Effects};
use super::own::Used;
use super::val::{PipeVal, RangeVal, Tiles};
use super::{FnLower, Lowered, OwnVal, Stop, Val};
use crate::ast::{Block, Expr, Label, LoopId, Pat, VarId};
use proc_macro2::Span;
use titan_core::diag::Code;
use titan_core::ir::builder::OpenLoop;
use titan_core::ir::{BinOp, Elem, ForKind, OpKind, Pred, Ty, Value};

/// An enclosing loop.
pub(super) struct LoopCtx {
    /// Its number, if it has a label.
    pub(super) label: Option<LoopId>,
    /// The number of the loop among all open loops; 0 is the outermost.
    pub(super) level: usize,
    /// The variables that the loop carries.
    pub(super) carried: Vec<VarId>,
    /// The value of the first `break`, for its shape.
    pub(super) value: Option<Val>,
    /// The types of the results, once a `break` has been lowered.
    pub(super) results: Option<Vec<Ty>>,
    /// Whether it is a `for`, whose results are its carried values, without a `break`.
    pub(super) counted: bool,
    /// For a loop over `produce(..)` or `consume(..)`: its place and name.
    pub(super) side: Option<(Span, &'static str)>,
    /// The states of the output tiles before the loop.
    pub(super) entry: Vec<Used>,
    /// The states of the output tiles at each exit from the loop.
    pub(super) exits: Vec<Vec<Used>>,
}

impl FnLower<'_, '_, '_> {
    /// The variables a loop carries: assigned inside, declared outside.
    pub(super) fn carried(&self, fx: &Effects) -> Vec<VarId> {
        fx.assigned.iter().copied().filter(|v| self.vars[*v].is_some()).collect()
    }

    pub(super) fn enter(&mut self, label: Option<&Label>, carried: Vec<VarId>, counted: bool, open: &OpenLoop) {
        let level = self.sh.depth;
        self.sh.depth += 1;
        let mut values = open.carried.iter().copied();
        for var in &carried {
            if let Some(old) = self.vars[*var].clone() {
                let val = old.rebuild(&mut values);
                self.name(&val, &self.func().vars[*var].name.to_string());
                self.vars[*var] = Some(val);
            }
        }
        let label = label.and_then(|l| l.of);
        let entry = self.owns_snapshot();
        // A counted loop may end before any iteration, and ends in the same state after the last.
        let exits = if counted { vec![entry.clone()] } else { Vec::new() };
        let (value, results, side) = (None, None, None);
        self.loops.push(LoopCtx { label, level, carried, value, results, counted, side, entry, exits });
    }

    /// Ends the body, closes the loop and returns the variables and the value after it.
    pub(super) fn leave(&mut self, open: OpenLoop, span: Span, before: Vec<Option<Val>>) -> Lowered<Val> {
        if !self.sh.b.is_terminated() {
            let carried = self.loops.last().map(|l| l.carried.clone()).unwrap_or_default();
            let values = self.flat_vars(&carried, span)?;
            self.owns_end_iteration(self.sh.depth - 1, span);
            self.at(span);
            self.sh.b.terminate(OpKind::Continue(0), &values);
        }
        let ctx = self.loops.pop().ok_or(Stop)?;
        self.sh.depth -= 1;
        self.owns_leave(ctx.level, &ctx.exits, span);
        let results = ctx.results.clone();
        let endless = !ctx.counted && results.is_none();
        let values = self.sh.b.end_loop(open, &results.unwrap_or_default());
        self.vars = before;
        if endless {
            self.dead_end(span)?;
            return Ok(Val::Unit);
        }
        let mut values = values.into_iter();
        for var in &ctx.carried {
            if let Some(old) = self.vars[*var].clone() {
                let val = old.rebuild(&mut values);
                self.name(&val, &self.func().vars[*var].name.to_string());
                self.vars[*var] = Some(val);
            }
        }
        Ok(ctx.value.map_or(Val::Unit, |v| v.rebuild(&mut values)))
    }

    /// The loop of this function with a level.
    pub(super) fn loop_at(&self, level: usize) -> Option<&LoopCtx> {
        self.loops.iter().find(|l| l.level == level)
    }

    /// Opens the loop around an inlined function with an early `return`; returns its level.
    pub(super) fn enter_returning(&mut self, open: &OpenLoop) -> usize {
        self.enter(None, Vec::new(), false, open);
        self.sh.depth - 1
    }

    pub(super) fn leave_returning(&mut self, open: OpenLoop, span: Span) -> Lowered<Val> {
        let vars = self.vars.clone();
        self.leave(open, span, vars)
    }

    pub(super) fn for_loop(
        &mut self,
        label: Option<&Label>,
        pat: &Pat,
        iter: &Expr,
        body: &Block,
        span: Span,
    ) -> Lowered<Val> {
        let over = self.expr(iter)?;
        let range = match &over {
            Val::Range(r) | Val::Pipe(PipeVal::Side { range: r, .. }) => *r,
            Val::Tiles(t) | Val::Pipe(PipeVal::Indices(t)) => self.tiles_range(t, span)?,
            _ => return Err(self.internal(span, "a loop over something else")),
        };
        let fx = assigned::of_block(body);
        let carried = self.carried(&fx);
        let init = self.flat_vars(&carried, span)?;
        let before = self.vars.clone();
        let one = self.i32(1);
        self.at(span);
        let open =
            self.sh.b.begin_for(range.kind, [range.lo, range.hi, one], &init).map_err(|e| self.type_error(span, e))?;
        let index = open.index.ok_or(Stop)?;
        self.enter(label, carried, true, &open);
        let item = match over {
            Val::Tiles(t) => Val::Own(self.own_tile(&t, index, span)?),
            Val::Pipe(PipeVal::Indices(t)) => {
                Val::Array(self.tile_index(&t, index, span)?.into_iter().map(Val::Value).collect())
            }
            Val::Pipe(PipeVal::Side { pipe, fills, span, .. }) => self.side_item(pipe, fills, index, span)?,
            _ => Val::Value(index),
        };
        self.bind(pat, item)?;
        self.block(body)?;
        self.leave(open, span, before)
    }

    /// The tile numbers of an output, `0 .. count`, distributed over the programs.
    pub(super) fn tiles_range(&mut self, t: &Tiles, span: Span) -> Lowered<RangeVal> {
        let hi = match (t.offsets, &t.counts) {
            (_, Some((_, total))) => *total,
            (Some(off), None) => {
                let (rows, cols) = (t.shape[0], t.shape[1]);
                self.op(span, OpKind::RaggedCount { rows, cols }, &[t.tensor, off])?
            }
            (None, None) => {
                let counts = self.tile_counts(t, span)?;
                self.product(&counts, span)?
            }
        };
        let lo = self.i32(0);
        Ok(RangeVal { lo, hi, kind: ForKind::Distributed })
    }

    pub(super) fn product(&mut self, factors: &[Value], span: Span) -> Lowered<Value> {
        let mut total = *factors.first().ok_or(Stop)?;
        for n in &factors[1..] {
            total = self.op(span, OpKind::Binary(BinOp::Mul), &[total, *n])?;
        }
        Ok(total)
    }

    /// Tiles along each axis: the quotient rounded up, without overflow.
    pub(super) fn tile_counts(&mut self, t: &Tiles, span: Span) -> Lowered<Vec<Value>> {
        if let Some((counts, _)) = &t.counts {
            return Ok(counts.clone());
        }
        let mut counts = Vec::new();
        for (axis, extent) in t.shape.iter().enumerate() {
            let dim = self.op(span, OpKind::Dim(u8::try_from(axis).unwrap_or(0)), &[t.tensor])?;
            let extent = self.i32(*extent);
            let whole = self.op(span, OpKind::Binary(BinOp::Div), &[dim, extent])?;
            let rest = self.op(span, OpKind::Binary(BinOp::Rem), &[dim, extent])?;
            let zero = self.i32(0);
            let partial = self.op(span, OpKind::Cmp(Pred::Ne), &[rest, zero])?;
            let partial = self.op(span, OpKind::Cast(Elem::I32), &[partial])?;
            counts.push(self.op(span, OpKind::Binary(BinOp::Add), &[whole, partial])?);
        }
        Ok(counts)
    }

    /// The output tile of this number.
    pub(super) fn own_tile(&mut self, t: &Tiles, number: Value, span: Span) -> Lowered<OwnVal> {
        let id = self.born(span);
        match t.offsets {
            Some(off) => {
                let (rows, cols) = (t.shape[0], t.shape[1]);
                let parts = self.ops(span, OpKind::RaggedTile { rows, cols }, &[t.tensor, off, number])?;
                let view = self.op(span, OpKind::Segment, &[t.tensor, off, parts[0]])?;
                Ok(OwnVal { id, tensor: view, index: parts[1..].to_vec(), group: Some(parts[0]), shape: t.shape })
            }
            None => {
                let index = self.tile_index(t, number, span)?;
                Ok(OwnVal { id, tensor: t.tensor, index, group: None, shape: t.shape })
            }
        }
    }

    /// The coordinates of the tile of this number.
    fn tile_index(&mut self, t: &Tiles, number: Value, span: Span) -> Lowered<Vec<Value>> {
        let mut args = vec![number];
        args.extend(self.tile_counts(t, span)?);
        let order = if t.group > 1 { OpKind::UnflattenGrouped(t.group) } else { OpKind::Unflatten };
        self.ops(span, order, &args)
    }

    /// Opens a loop without bounds; also returns the variables before it.
    fn begin_loop(&mut self, label: Option<&Label>, fx: &Effects, span: Span) -> Lowered<(OpenLoop, Vec<Option<Val>>)> {
        let carried = self.carried(fx);
        let init = self.flat_vars(&carried, span)?;
        let before = self.vars.clone();
        self.at(span);
        let open = self.sh.b.begin_loop(&init);
        self.enter(label, carried, false, &open);
        Ok((open, before))
    }

    pub(super) fn while_loop(&mut self, label: Option<&Label>, cond: &Expr, body: &Block, span: Span) -> Lowered<Val> {
        let mut fx = assigned::of_block(body);
        fx.assigned.extend(assigned::of_expr(cond).assigned);
        let (open, before) = self.begin_loop(label, &fx, span)?;
        let c = self.expr(cond)?;
        let c = self.value(c, cond.span)?;
        self.at(span);
        let mut branch = self.sh.b.begin_if(c);
        self.sh.b.terminate(OpKind::Yield, &[]);
        self.sh.b.begin_else(&mut branch);
        self.break_to(self.loops.len() - 1, None, span)?;
        self.sh.b.end_if(branch, &[]);
        self.block(body)?;
        self.leave(open, span, before)
    }

    pub(super) fn endless_loop(&mut self, label: Option<&Label>, body: &Block, span: Span) -> Lowered<Val> {
        let fx = assigned::of_block(body);
        let (open, before) = self.begin_loop(label, &fx, span)?;
        self.block(body)?;
        self.leave(open, span, before)
    }

    /// The loop to which `break` or `continue` refers.
    pub(super) fn target(&self, label: Option<&Label>, span: Span) -> Lowered<usize> {
        let found = self.loops.iter().rposition(|l| match label {
            Some(label) => label.of.is_some() && l.label == label.of,
            None => Some(l.level) != self.return_loop,
        });
        found.ok_or_else(|| self.error(Code::UnknownName, span, "there is no such loop here"))
    }

    pub(super) fn break_loop(&mut self, label: Option<&Label>, value: Option<&Expr>, span: Span) -> Lowered<Val> {
        let value = value.map(|e| self.expr(e)).transpose()?;
        let target = self.target(label, span)?;
        self.stays_in_sides(target, "break", span)?;
        self.break_to(target, value, span)?;
        Ok(Val::Unit)
    }

    pub(super) fn break_to(&mut self, target: usize, value: Option<Val>, span: Span) -> Lowered<()> {
        let (carried, level) = (self.loops[target].carried.clone(), self.loops[target].level);
        let mut values = self.flat_vars(&carried, span)?;
        if let Some(v) = &value
            && !v.flatten(&mut values)
        {
            return Err(self.error(
                Code::Syntax,
                span,
                "the value of a loop can be a scalar or tile, but not a tensor or output tile",
            ));
        }
        self.carriable(&values, span)?;
        let tys = values.iter().map(|v| self.ty(*v)).collect();
        let exit = self.owns_snapshot();
        let ctx = &mut self.loops[target];
        ctx.exits.push(exit);
        ctx.results = Some(tys);
        if value.is_some() {
            ctx.value = value;
        }
        let depth = self.depth_of(level);
        self.at(span);
        self.sh.b.terminate(OpKind::Break(depth), &values);
        Ok(())
    }

    pub(super) fn continue_loop(&mut self, label: Option<&Label>, span: Span) -> Lowered<Val> {
        let target = self.target(label, span)?;
        self.stays_in_sides(target + 1, "continue", span)?;
        let (carried, level) = (self.loops[target].carried.clone(), self.loops[target].level);
        self.owns_end_iteration(level, span);
        let values = self.flat_vars(&carried, span)?;
        let depth = self.depth_of(level);
        self.at(span);
        self.sh.b.terminate(OpKind::Continue(depth), &values);
        Ok(Val::Unit)
    }

    pub(super) fn return_value(&mut self, value: Option<&Expr>, span: Span) -> Lowered<Val> {
        let value = value.map(|e| self.expr(e)).transpose()?;
        match self.return_loop {
            Some(level) => {
                let target = self.loops.iter().position(|l| l.level == level).ok_or(Stop)?;
                self.break_to(target, Some(value.unwrap_or(Val::Unit)), span)?;
            }
            None => {
                self.at(span);
                self.sh.b.terminate(OpKind::Return, &[]);
            }
        }
        Ok(Val::Unit)
    }
}
