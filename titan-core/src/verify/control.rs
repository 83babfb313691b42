//! Rules 18 to 22, 24 and 81: the grid's axes, loops and exits from them, constant divisors, stores to inputs.

use super::Error;
use super::loops::is_positive;
use super::structure::target;
use crate::analysis::access::{Kind, kind_of};
use crate::analysis::forms::{Forms, is_input};
use crate::analysis::number::root;
use crate::analysis::uses::may_break;
use crate::diag::Code;
use crate::ir::op_table::mnemonic;
use crate::ir::{BinOp, Block, Def, ForKind, GridSpec, Kernel, Op, OpId, OpKind, Value};

/// Violations of rules 18 to 22, 24 and 81.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    let mut checker = Checker { kernel, errors: Vec::new(), around: Vec::new(), forms: None };
    checker.block(kernel.body);
    checker.errors
}

struct Checker<'a> {
    kernel: &'a Kernel,
    errors: Vec<Error>,
    around: Vec<OpId>,
    /// Computed for the first step that is not a constant.
    forms: Option<Forms>,
}

impl Checker<'_> {
    fn block(&mut self, block: Block) {
        let kernel = self.kernel;
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            self.grid_axis(op);
            self.exit(op);
            self.looped(*id, op);
            self.divisor(op);
            self.input(op);
            self.around.push(*id);
            op.regions.iter().for_each(|r| self.block(*r));
            self.around.pop();
        }
    }

    fn grid_axis(&mut self, op: &Op) {
        let (OpKind::ProgramId(axis) | OpKind::NumPrograms(axis)) = op.kind else { return };
        let (axes, grid) = match &self.kernel.sig.grid {
            GridSpec::Extents(e) => (e.len(), "the grid"),
            GridSpec::Persistent => (1, "a persistent grid"),
        };
        if usize::from(axis) >= axes {
            let has = match axes {
                0 => "no axes".to_owned(),
                1 => "one axis, 0".to_owned(),
                n => format!("{n} axes, 0 to {}", n - 1),
            };
            let title = format!("`{}({axis})`: {grid} has {has}", mnemonic(&op.kind));
            self.errors.push(
                Error::new(Code::GridAxis, op.loc, title)
                    .help("add an extent to `grid(..)`, or use an axis that it has"),
            );
        }
    }

    /// Checks a terminator that leaves a loop.
    fn exit(&mut self, op: &Op) {
        if !matches!(op.kind, OpKind::Return | OpKind::Break(_) | OpKind::Continue(_)) {
            return;
        }
        let kernel = self.kernel;
        let leaves = |l: &OpId| match (&op.kind, target(kernel, &self.around, &op.kind)) {
            (OpKind::Return, _) => true,
            (OpKind::Break(_), Some(t)) => t == *l || self.outside(t, *l),
            (OpKind::Continue(_), Some(t)) => t != *l && self.outside(t, *l),
            (_, _) => false,
        };
        let left = |kind: ForKind| {
            let of_kind = |o: &&OpId| kernel.op(**o).kind == OpKind::For(kind);
            self.around.iter().rev().filter(of_kind).find(|o| leaves(o)).copied()
        };
        if let Some(l) = left(ForKind::Pipelined) {
            let name = loop_name(kernel, l);
            let title = format!("`{}` leaves {name} early, while its loads run ahead", mnemonic(&op.kind));
            let error = Error::new(Code::EarlyExit, op.loc, title).related(kernel.op(l).loc, "the pipelined loop");
            self.errors.push(
                error.help("compute the end before the loop, use a plain range, or `select` the elements that count"),
            );
        } else if let Some(l) = left(ForKind::Distributed) {
            let title = format!(
                "`{}` leaves the loop over tiles early: the tiles that it does not reach are neither stored nor skipped",
                mnemonic(&op.kind)
            );
            let error = Error::new(Code::TokenDropped, op.loc, title).related(kernel.op(l).loc, "the loop over tiles");
            self.errors.push(
                error
                    .help("run it for every tile, and skip those that have nothing to store: `out.skip()`")
                    .help("which tiles a program reaches depends on the number of programs, and so on the device"),
            );
        }
    }

    /// Whether loop `a` encloses loop `b`; both enclose the current operation.
    fn outside(&self, a: OpId, b: OpId) -> bool {
        let at = |id: OpId| self.around.iter().position(|o| *o == id);
        at(a) < at(b)
    }

    fn looped(&mut self, id: OpId, op: &Op) {
        let kernel = self.kernel;
        let pipelined = |o: &&OpId| kernel.op(**o).kind == OpKind::For(ForKind::Pipelined);
        if op.kind == OpKind::For(ForKind::Pipelined)
            && let Some(outer) = self.around.iter().rev().find(pipelined)
        {
            let title = format!("{} is inside {}", loop_name(kernel, id), loop_name(kernel, *outer));
            let error =
                Error::new(Code::NestedPipeline, op.loc, title).related(kernel.op(*outer).loc, "the outer loop");
            self.errors.push(error.help("pipeline the inner one, and make the outer one a plain range"));
        }
        if let Some(step) = op.args.get(2).filter(|_| matches!(op.kind, OpKind::For(_))) {
            self.step(id, *step);
        }
        if op.kind == OpKind::Loop && !may_break(kernel, id) {
            let error = Error::new(Code::Unreachable, op.loc, "this loop never ends: nothing in it leaves it");
            self.errors.push(error.help("`break` under a condition that becomes true"));
        }
    }

    fn step(&mut self, id: OpId, step: Value) {
        let (kernel, loc) = (self.kernel, self.kernel.op(id).loc);
        let error = match kernel.int_constant(step) {
            Some(1..) => return,
            Some(step) => {
                let title = format!("{} never ends: its step is {step}", loop_name(kernel, id));
                Error::new(Code::Unreachable, loc, title)
            }
            None => {
                let forms = self.forms.get_or_insert_with(|| Forms::new(kernel, true));
                if is_positive(kernel, forms, step) {
                    return;
                }
                let (looped, name) = (loop_name(kernel, id), kernel.name_or_line(step));
                let title = format!("{looped} may never end: its step, {name}, may be 0 or negative");
                Error::new(Code::Unreachable, loc, title).help(self.positive(step))
            }
        };
        self.errors.push(error);
    }

    /// How a step can be made positive.
    fn positive(&self, step: Value) -> String {
        let kernel = self.kernel;
        let at_least = format!("step by the maximum of {} and 1 (`max`)", kernel.name_or_line(step));
        match kernel.value(step).def {
            Def::Param(_) => {
                format!("{at_least}, or require it of the launch: `require(%{} > 0)`", kernel.display_name(step))
            }
            Def::Result(..) | Def::BlockArg(..) => at_least,
        }
    }

    fn divisor(&mut self, op: &Op) {
        let OpKind::Binary(kind @ (BinOp::Div | BinOp::Rem)) = op.kind else { return };
        let [_, by] = op.args[..] else { return };
        if self.kernel.ty(by).elem().is_int()
            && scalar_behind(self.kernel, by).and_then(|v| self.kernel.int_constant(v)) == Some(0)
        {
            let sign = if kind == BinOp::Div { "/" } else { "%" };
            self.errors.push(Error::new(
                Code::DivisionByZero,
                op.loc,
                format!("`{sign} 0`: the divisor is the constant zero"),
            ));
        }
    }

    fn input(&mut self, op: &Op) {
        let kernel = self.kernel;
        let stores = matches!(kind_of(&op.kind), Some(Kind::Write | Kind::Scatter | Kind::Atomic));
        let param = op.args.first().filter(|_| stores).and_then(|t| root(kernel, *t));
        if let Some(p) = param.filter(|p| is_input(kernel, *p)) {
            let name = kernel.display_name(kernel.param(p));
            let title = format!("`{}` to `{name}`, which is an input", mnemonic(&op.kind));
            self.errors.push(Error::new(Code::StoreToInput, op.loc, title).help(format!("take `{name}` by `&mut`")));
        }
    }
}

/// The scalar of which a tile is a splat, or the scalar itself.
fn scalar_behind(kernel: &Kernel, value: Value) -> Option<Value> {
    match kernel.def_op(value) {
        Some(op) if matches!(op.kind, OpKind::Splat(_)) => op.args.first().copied(),
        Some(_) | None => Some(value),
    }
}

/// The name of a loop in messages, by its variable if that has a name.
fn loop_name(kernel: &Kernel, id: OpId) -> String {
    let op = kernel.op(id);
    let kind = if let OpKind::For(kind @ (ForKind::Pipelined | ForKind::Distributed)) = op.kind {
        format!("the {kind} loop")
    } else {
        "the loop".to_owned()
    };
    let index = op.regions.first().and_then(|r| kernel.block(*r).args.first());
    let name = index.filter(|_| matches!(op.kind, OpKind::For(_))).and_then(|v| kernel.value(*v).name.clone());
    name.map_or(kind.clone(), |n| format!("{kind} over `{n}`"))
}
