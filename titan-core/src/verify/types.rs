//! Rules 10, 11 and 13: operand, result and carried types, constants.

use super::Error;
use super::structure::{is_closure, target};
use crate::diag::Code;
use crate::ir::fold::wrap;
use crate::ir::infer::{describe, infer};
use crate::ir::op_table::mnemonic;
use crate::ir::{Block, Const, Elem, Kernel, Op, OpId, OpKind, TtgOp, Ty, Value};

/// Violations of rules 10, 11 and 13.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    let mut checker = Checker { kernel, errors: Vec::new(), around: Vec::new() };
    checker.block(kernel.body);
    checker.errors
}

struct Checker<'a> {
    kernel: &'a Kernel,
    errors: Vec<Error>,
    around: Vec<OpId>,
}

impl Checker<'_> {
    fn error(&mut self, op: &Op, title: String) {
        self.errors.push(Error::new(Code::Operands, op.loc, title));
    }

    fn block(&mut self, block: Block) {
        let kernel = self.kernel;
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            if op.kind.is_terminator() {
                self.terminator(op);
                continue;
            }
            if matches!(op.kind, OpKind::For(_) | OpKind::Loop | OpKind::If) {
                self.region_op(op);
            } else {
                self.plain(op);
            }
            self.around.push(*id);
            op.regions.iter().for_each(|r| self.block(*r));
            self.around.pop();
        }
    }

    /// Checks an operation whose result types follow from its operands.
    fn plain(&mut self, op: &Op) {
        let args: Vec<Ty> = op.args.iter().map(|v| self.kernel.ty(*v)).collect();
        match infer(&op.kind, &args) {
            Err(e) => {
                let error = Error::new(e.code, op.loc, e.message);
                self.errors.push(match e.help {
                    Some(help) => error.help(help),
                    None => error,
                });
            }
            Ok(types) => self.results(op, &types),
        }
        if let OpKind::Const(c) = op.kind {
            self.constant(op, c);
        }
        let fetched = matches!(op.kind, OpKind::Ttg(TtgOp::AsyncProduce { .. }))
            && args.iter().any(|ty| matches!(ty, Ty::Tile(..)));
        if fetched && self.kernel.laid_out.is_none() {
            self.error(op, "only laid-out kernels copy tiles to a stage that are in registers already".to_owned());
        }
        let closure = self.around.last().is_some_and(|o| is_closure(&self.kernel.op(*o).kind));
        let scalar = |v: &Value| matches!(self.kernel.ty(*v), Ty::Scalar(_));
        if closure && !op.args.iter().chain(&op.results).all(scalar) {
            self.error(op, format!("`{}` in the closure of a reduction, which works on scalars", mnemonic(&op.kind)));
        }
        if let (true, Some(region), Some(Ty::Tile(e, _))) = (is_closure(&op.kind), op.regions.first(), args.first()) {
            for arg in &self.kernel.block(*region).args {
                let found = self.kernel.ty(*arg);
                if found != Ty::Scalar(*e) {
                    self.error(
                        op,
                        format!(
                            "the closure combines {}, but its argument is {}",
                            describe(Ty::Scalar(*e)),
                            describe(found)
                        ),
                    );
                }
            }
        }
    }

    fn results(&mut self, op: &Op, types: &[Ty]) {
        let name = mnemonic(&op.kind);
        if op.results.len() != types.len() {
            let title = format!("`{name}` has {} results, not {}", types.len(), op.results.len());
            self.errors.push(Error::new(Code::TypeAnnotation, op.loc, title));
        }
        for (result, ty) in op.results.iter().zip(types) {
            let stored = self.kernel.ty(*result);
            if stored != *ty {
                let title = format!("`{name}` gives {}, not {}", describe(*ty), describe(stored));
                self.errors.push(Error::new(Code::TypeAnnotation, op.loc, title));
            }
        }
    }

    /// Checks bounds, conditions and carried values.
    fn region_op(&mut self, op: &Op) {
        let kernel = self.kernel;
        let inside: &[Value] = op.regions.first().map_or(&[], |r| &kernel.block(*r).args);
        let bounds = if matches!(op.kind, OpKind::For(_)) { 3 } else { 0 };
        if op.kind == OpKind::If {
            if kernel.ty(op.args[0]) != Ty::BOOL {
                let found = describe(kernel.ty(op.args[0]));
                self.error(op, format!("a condition is one `bool`, not {found}"));
            }
        } else {
            for v in op.args[..bounds].iter().chain(inside.iter().take(bounds / 3)) {
                if kernel.ty(*v) != Ty::I32 {
                    self.error(
                        op,
                        format!("the bounds and the index of a loop are `i32`, not {}", describe(kernel.ty(*v))),
                    );
                }
            }
            self.agree(op, "a loop", &op.args[bounds..], &inside[bounds / 3..]);
        }
        if matches!(op.kind, OpKind::For(_)) {
            self.agree(op, "a loop", &op.args[bounds..], &op.results);
        }
        let given = op.args.iter().chain(&op.results).copied().find(|v| !kernel.ty(*v).is_carried());
        if let Some(v) = given {
            let (name, what) = (kernel.display_name(v), describe(kernel.ty(v)));
            let title = match kernel.ty(v) {
                Ty::Tensor(..) => format!("`{name}` is a tensor: tensors are neither carried nor yielded"),
                Ty::Scalar(_)
                | Ty::Tile(..)
                | Ty::Source(..)
                | Ty::Smem(..)
                | Ty::Compute(..)
                | Ty::Acc(..)
                | Ty::Token(..)
                | Ty::Barrier(_) => {
                    format!("`{name}` is {what}, which is neither carried nor yielded")
                }
            };
            self.error(op, title);
        }
    }

    fn terminator(&mut self, op: &Op) {
        let kernel = self.kernel;
        let Some(owner) = self.around.last().map(|o| kernel.op(*o)) else { return };
        let to = target(kernel, &self.around, &op.kind).map(|t| kernel.op(t));
        match (&op.kind, to) {
            (OpKind::Yield, _) if is_closure(&owner.kind) => {
                let element = owner.args.first().map_or(Ty::BOOL, |v| Ty::Scalar(kernel.ty(*v).elem()));
                let found = op.args.first().map_or(Ty::BOOL, |v| kernel.ty(*v));
                if found != element {
                    self.error(
                        op,
                        format!("the closure combines {}, but yields {}", describe(element), describe(found)),
                    );
                }
            }
            (OpKind::Yield, _) => self.agree(op, "the `if`", &owner.results, &op.args),
            (OpKind::Break(_), Some(to)) => self.agree(op, "the loop", &to.results, &op.args),
            (OpKind::Continue(_), Some(to)) => {
                let bounds = if matches!(to.kind, OpKind::For(_)) { 3 } else { 0 };
                self.agree(op, "the loop", &to.args[bounds..], &op.args);
            }
            (_, _) => {}
        }
    }

    /// Checks that types are pairwise equal; the numbers of values were checked before.
    fn agree(&mut self, op: &Op, what: &str, wanted: &[Value], found: &[Value]) {
        for (w, f) in wanted.iter().zip(found) {
            let (a, b) = (self.kernel.ty(*w), self.kernel.ty(*f));
            if a != b {
                let name = self.kernel.display_name(*w);
                self.error(op, format!("`{name}` of {what} is {}, but is given {}", describe(a), describe(b)));
            }
        }
    }

    fn constant(&mut self, op: &Op, c: Const) {
        let fault = match c {
            Const::Int(e, v) if e.is_int() || e == Elem::Bool => {
                (wrap(e, v) != v).then(|| format!("`{e}` does not hold {v}"))
            }
            Const::Float(e, v) if e.is_float() => (!e.holds(v)).then(|| format!("`{e}` does not hold {v:?}")),
            Const::Int(e, _) => Some(format!("an integer is not a constant of `{e}`")),
            Const::Float(e, _) => Some(format!("a float is not a constant of `{e}`")),
        };
        if let Some(title) = fault {
            self.errors.push(Error::new(Code::LiteralRange, op.loc, title));
        }
    }
}
