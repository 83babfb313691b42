//! Operations by which a program sees its place in the grid, for passes that give programs other places.
//!
//! An operation without operands whose result is a number, and which is not a constant, is taken to depend on the grid, so that a new
//! operation of this kind stops these passes until it is named here.

use crate::ir::{Family, Flow, ForKind, Kernel, Op, OpKind, Ty};

/// What an operation depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asks {
    /// Nothing of the grid.
    Nothing,
    /// The program's index along an axis.
    Index(u8),
    /// The number of programs along an axis.
    Number(u8),
    /// The grid in another way: the operation deals its iterations to programs, or is not known.
    More,
}

impl Asks {
    pub(super) fn of(kernel: &Kernel, op: &Op) -> Asks {
        if let OpKind::ProgramId(axis) = op.kind {
            return Asks::Index(axis);
        }
        if let OpKind::NumPrograms(axis) = op.kind {
            return Asks::Number(axis);
        }
        match op.kind.family() {
            Family::Flow(Flow::For(ForKind::Distributed)) => Asks::More,
            Family::Flow(
                Flow::For(ForKind::Sequential | ForKind::Pipelined)
                | Flow::Loop
                | Flow::If
                | Flow::Yield
                | Flow::Break(_)
                | Flow::Continue(_)
                | Flow::Return,
            ) => Asks::Nothing,
            Family::Data(_)
            | Family::Ttg(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => {
                let number = op.results.iter().any(|v| matches!(kernel.ty(*v), Ty::Scalar(_)));
                let constant = matches!(op.kind, OpKind::Const(_));
                if number && op.args.is_empty() && !constant { Asks::More } else { Asks::Nothing }
            }
        }
    }
}
