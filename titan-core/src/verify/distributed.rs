//! Rule 82: either every program runs a distributed loop, or none does, and all of them equally often.
//!
//! A distributed loop gives each of its iterations to one program, as if all programs ran it. If some of them do not, nobody computes the
//! tiles that they were given; and which ones these are depends on the number of programs, which the device determines.
//!
//! Rule 81, that an iteration does not end the loop, is checked with the other exits ([`super::control`]).

use super::Error;
use crate::analysis::diverging::Diverging;
use crate::diag::Code;
use crate::ir::{Block, ForKind, Kernel, Loc, OpId, OpKind, TtgOp};

/// Violations of rule 82.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    let mut any = false;
    kernel.walk(&mut |_, op| any |= op.kind == OpKind::For(ForKind::Distributed));
    if !any {
        return Vec::new();
    }
    let diverging = Diverging::new(kernel);
    let mut checker = Checker { kernel, diverging, around: Vec::new(), ended: None, errors: Vec::new() };
    checker.block(kernel.body);
    checker.errors
}

struct Checker<'a> {
    kernel: &'a Kernel,
    diverging: Diverging,
    around: Vec<OpId>,
    /// A `return` before this place at which only some programs may end.
    ended: Option<Loc>,
    errors: Vec<Error>,
}

impl Checker<'_> {
    fn block(&mut self, block: Block) {
        let kernel = self.kernel;
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            if op.kind == OpKind::For(ForKind::Distributed) {
                self.looped(*id);
            }
            if self.diverging.ends_some(*id) {
                self.ended = self.ended.or(Some(op.loc));
            }
            let before = self.ended;
            self.around.push(*id);
            for region in &op.regions {
                // A role ends alone.
                if op.kind == OpKind::Ttg(TtgOp::Roles) {
                    self.ended = before;
                }
                self.block(*region);
            }
            self.around.pop();
        }
    }

    /// Checks a distributed loop.
    fn looped(&mut self, id: OpId) {
        let (kernel, op) = (self.kernel, self.kernel.op(id));
        let around = self.around.iter().find(|outer| self.diverging.diverges(**outer));
        let cause = match (around, self.ended) {
            (Some(outer), _) => {
                let kind = &kernel.op(*outer).kind;
                let what = if *kind == OpKind::For(ForKind::Distributed) {
                    "the loop over tiles around it, of which each program runs a part"
                } else if kind.is_loop() {
                    "this loop, which programs may run differently often"
                } else {
                    "this branch, which programs may take differently"
                };
                Some((kernel.op(*outer).loc, what))
            }
            (None, Some(place)) => Some((place, "programs may end here")),
            (None, None) => None,
        };
        let bounds = op.args.get(..3).unwrap_or(&op.args);
        if let Some((place, what)) = cause {
            let title = "only some of the programs may run this loop over tiles: those of the others are neither stored nor \
                         skipped";
            let error = Error::new(Code::TokenDropped, op.loc, title).related(place, what);
            self.errors.push(error.help(
                "let all programs run it, and decide for each tile: `if .. { out.store(..) } else { out.skip() }`",
            ));
        } else if self.diverging.any(bounds) {
            let title = "the number of tiles may differ between programs: this loop gives each tile to one of them, and the \
                         others do not run it for that program";
            let error = Error::new(Code::TokenDropped, op.loc, title);
            self.errors.push(error.help(
                "loop over the tiles of the whole output; or launch a grid, and let each program loop over its part with `for i in ..`",
            ));
        }
    }
}
