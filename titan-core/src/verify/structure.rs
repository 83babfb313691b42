//! Rules 4 to 9: blocks, regions, terminators and the numbers of values that they pass.

use super::Error;
use crate::diag::Code;
use crate::ir::op_table::mnemonic;
use crate::ir::{Block, Effect, Fold, Kernel, Loc, LocalOp, OpId, OpKind, TtgOp};

/// Violations of rules 4 to 9.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    let mut checker = Checker { kernel, errors: Vec::new(), around: Vec::new() };
    let args = kernel.block(kernel.body).args.len();
    if args != 0 {
        checker.error(Loc::default(), format!("the body of a kernel has no arguments, not {args}"));
    }
    checker.block(kernel.body, Loc::default());
    checker.errors
}

struct Checker<'a> {
    kernel: &'a Kernel,
    errors: Vec<Error>,
    /// The operations around the current block, the outermost first.
    around: Vec<OpId>,
}

impl Checker<'_> {
    fn error(&mut self, loc: Loc, title: String) {
        self.errors.push(Error::new(Code::Structure, loc, title));
    }

    fn block(&mut self, block: Block, loc: Loc) {
        let kernel = self.kernel;
        let Some((last, before)) = kernel.block(block).ops.split_last() else {
            return self.error(loc, "a block without a terminator: it is empty".to_owned());
        };
        for id in before {
            let op = kernel.op(*id);
            if op.kind.is_terminator() {
                self.error(op.loc, format!("`{}` in the middle of a block: nothing may follow it", mnemonic(&op.kind)));
            }
        }
        let end = kernel.op(*last);
        if !end.kind.is_terminator() {
            let title = format!(
                "a block that ends in `{}`, not in `yield`, `break`, `continue` or `return`",
                mnemonic(&end.kind)
            );
            self.error(end.loc, title);
        }
        for id in &kernel.block(block).ops {
            if kernel.op(*id).kind.is_terminator() {
                self.terminator(*id);
            } else {
                self.op(*id);
            }
        }
    }

    fn op(&mut self, id: OpId) {
        let op = self.kernel.op(id);
        let name = mnemonic(&op.kind);
        let wanted = self.regions(&op.kind);
        if op.regions.len() != wanted {
            let found = op.regions.len();
            return self.error(op.loc, format!("`{name}` has {}, not {found}", counted(wanted, "region")));
        }
        if self.in_closure().is_some() && op.kind.effect() != Effect::Pure {
            self.error(op.loc, format!("`{name}` in the closure of a reduction, which must be pure"));
        } else if self.in_closure().is_some() && wanted > 0 {
            self.error(op.loc, format!("`{name}` in the closure of a reduction, which has no blocks inside"));
        }
        let bounds = if matches!(op.kind, OpKind::For(_)) { 3 } else { 0 };
        if op.args.len() < bounds {
            return self.error(op.loc, "`for` takes a first index, an end and a step".to_owned());
        }
        let carried = op.args.len() - bounds;
        if wanted == 0 {
            return;
        }
        let args =
            if op.kind.is_loop() { carried + usize::from(bounds > 0) } else { usize::from(is_closure(&op.kind)) * 2 };
        if op.kind == OpKind::If && op.args.len() != 1 {
            self.error(op.loc, format!("`if` takes one condition, but has {}", counted(op.args.len(), "value")));
        }
        if matches!(op.kind, OpKind::For(_)) && op.results.len() != carried {
            self.error(
                op.loc,
                format!("`for` returns the values that it carries, {carried}, not {}", op.results.len()),
            );
        }
        self.around.push(id);
        for region in &op.regions {
            let found = self.kernel.block(*region).args.len();
            if found != args {
                self.error(op.loc, format!("a block of `{name}` has {}, not {found}", counted(args, "argument")));
            }
            self.block(*region, op.loc);
        }
        self.around.pop();
    }

    fn regions(&self, kind: &OpKind) -> usize {
        if *kind == OpKind::If {
            2
        } else if *kind == OpKind::Ttg(TtgOp::Roles) {
            self.kernel.roles.len()
        } else {
            usize::from(kind.is_loop() || is_closure(kind))
        }
    }

    fn in_closure(&self) -> Option<OpId> {
        self.around.last().copied().filter(|id| is_closure(&self.kernel.op(*id).kind))
    }

    fn terminator(&mut self, id: OpId) {
        let op = self.kernel.op(id);
        let name = mnemonic(&op.kind);
        if !op.regions.is_empty() || !op.results.is_empty() {
            return self.error(op.loc, format!("`{name}` has no results and no regions"));
        }
        let Some(wanted) = self.wanted(id) else { return };
        if op.args.len() != wanted {
            let brought = counted(op.args.len(), "value");
            let title = format!("`{name}` passes {brought}, but its target takes {}", counted(wanted, "value"));
            self.error(op.loc, title);
        }
    }

    /// The number of values that a terminator must pass; `None` if it is in the wrong place, which is reported.
    fn wanted(&mut self, id: OpId) -> Option<usize> {
        let kernel = self.kernel;
        let op = kernel.op(id);
        let owner = self.around.last().map(|o| kernel.op(*o));
        if let Some(o) = owner.filter(|o| is_closure(&o.kind)) {
            if op.kind == OpKind::Yield {
                return Some(1);
            }
            let title =
                format!("the closure of `{}` ends in `yield`, not in `{}`", mnemonic(&o.kind), mnemonic(&op.kind));
            self.error(op.loc, title);
            return None;
        }
        match (&op.kind, owner) {
            (OpKind::Return, _) => Some(0),
            (OpKind::Yield, Some(o)) if o.kind == OpKind::If => Some(o.results.len()),
            (OpKind::Yield, Some(o)) if o.kind == OpKind::Ttg(TtgOp::Roles) => Some(0),
            (OpKind::Yield, Some(o)) => {
                self.error(
                    op.loc,
                    format!(
                        "the body of `{}` ends in `continue`, `break` or `return`, not in `yield`",
                        mnemonic(&o.kind)
                    ),
                );
                None
            }
            (OpKind::Yield, None) => {
                self.error(op.loc, "the body of a kernel ends in `return`, not in `yield`".to_owned());
                None
            }
            (_, _) => match target(kernel, &self.around, &op.kind) {
                Some(t) if matches!(op.kind, OpKind::Break(_)) => Some(kernel.op(t).results.len()),
                Some(t) => {
                    Some(kernel.op(t).args.len() - if matches!(kernel.op(t).kind, OpKind::For(_)) { 3 } else { 0 })
                }
                None => {
                    let loops = self.around.iter().filter(|o| kernel.op(**o).kind.is_loop()).count();
                    self.error(
                        op.loc,
                        format!("`{}` leaves more loops than there are around it, {loops}", mnemonic(&op.kind)),
                    );
                    None
                }
            },
        }
    }
}

/// The loop that a `break` or `continue` refers to, among the operations around it.
pub(super) fn target(kernel: &Kernel, around: &[OpId], kind: &OpKind) -> Option<OpId> {
    let (OpKind::Break(n) | OpKind::Continue(n)) = kind else { return None };
    let n = usize::try_from(*n).ok()?;
    around.iter().rev().copied().filter(|o| kernel.op(*o).kind.is_loop()).nth(n)
}

/// Whether the region of an operation is the function of a reduction.
pub(super) const fn is_closure(kind: &OpKind) -> bool {
    matches!(kind, OpKind::ReduceWith(_) | OpKind::ScanWith(_) | OpKind::Local(LocalOp::Fold { f: Fold::With, .. }))
}

fn counted(n: usize, what: &str) -> String {
    match n {
        0 => format!("no {what}s"),
        1 => format!("one {what}"),
        n => format!("{n} {what}s"),
    }
}
