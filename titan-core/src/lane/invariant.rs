//! Loop-invariant code motion: the block in which an operation is placed.
//!
//! An operation that is moved out of a loop may have been under a condition there, or in a loop that executes zero iterations; then it is
//! computed unnecessarily. So only operations without effects are moved, and only if they are defined for all values of their operands.
//! Nothing is moved out of the code of a role. Conditions stay where they are requested, because machines have few predicate registers; if
//! an operation before a loop selects by such a condition, the condition is computed again there.

use super::build::{Around, Builder};
use super::family::Family;
use super::func::Value;
use super::op::{IntBin, OpKind, Ty};

impl Builder {
    /// The operands for an operation in the outer block `at`: conditions that are computed in inner blocks are computed again there.
    pub(super) fn outside(&mut self, args: &[Value], at: usize) -> Vec<Value> {
        args.iter().map(|arg| self.condition_at(*arg, at)).collect()
    }

    fn condition_at(&mut self, value: Value, at: usize) -> Value {
        let Some(op) = self.func.def_op(value).filter(|_| self.level(value) > at).cloned() else { return value };
        let args = self.outside(&op.args, at);
        let key = (op.kind, args);
        if let Some(known) = self.open[..=at].iter().rev().find_map(|s| s.known.get(&key)) {
            return known[0];
        }
        let results = self.push_at(at, key.clone(), Vec::new(), &[Ty::Pred], op.loc);
        self.open[at].known.insert(key, results.clone());
        results[0]
    }

    /// The depth of the open block in which a pure operation is placed: before the outermost loop in which its operands do not change. An
    /// operation that is undefined for some operands stays where it was requested, since the loop might never execute it.
    pub(super) fn outermost(&self, kind: &OpKind, args: &[Value]) -> usize {
        let last = self.open.len() - 1;
        if !self.is_total(kind, args) {
            return last;
        }
        let lowest = args.iter().map(|v| self.belongs[v.index()]).max().unwrap_or(0);
        let outside = (lowest + 1..=last).rev().take_while(|at| self.open[*at].around != Around::Role);
        outside.filter(|at| self.open[*at].around == Around::Loop).min().map_or(last, |looped| looped - 1)
    }

    /// Whether an operation is defined for all values that its operands may have, and has no effects.
    fn is_total(&self, kind: &OpKind, args: &[Value]) -> bool {
        let constant = |i: usize| args.get(i).and_then(|v: &Value| self.func.constant(*v));
        match kind {
            OpKind::Int(bin) => match bin {
                IntBin::DivS | IntBin::DivU | IntBin::RemS | IntBin::RemU => constant(1).is_some_and(|by| by != 0),
                IntBin::Shl | IntBin::ShrS | IntBin::ShrU => constant(1).is_some_and(|by| by < 32),
                IntBin::Add
                | IntBin::Sub
                | IntBin::Mul
                | IntBin::MulHi
                | IntBin::And
                | IntBin::Or
                | IntBin::Xor
                | IntBin::MinS
                | IntBin::MinU
                | IntBin::MaxS
                | IntBin::MaxU => true,
            },
            OpKind::Const(..)
            | OpKind::Slot(_)
            | OpKind::ThreadId
            | OpKind::LaneId
            | OpKind::WarpId
            | OpKind::ProgramId(_)
            | OpKind::NumPrograms(_)
            | OpKind::SharedBase
            | OpKind::Buffer(_)
            | OpKind::IntUn(_)
            | OpKind::MulWide { .. }
            | OpKind::IntCmp { .. }
            | OpKind::Extend { .. }
            | OpKind::Truncate(_)
            | OpKind::FromPred
            | OpKind::Float(..)
            | OpKind::FloatUn(..)
            | OpKind::Fma(_)
            | OpKind::FloatCmp(..)
            | OpKind::Convert { .. }
            | OpKind::Select
            | OpKind::Pack
            | OpKind::Unpack
            | OpKind::UnpackBytes { .. } => true,
            OpKind::Nv(op) => op.family() == Family::Pure,
            OpKind::Amd(op) => op.family() == Family::Pure,
            OpKind::Access { .. }
            | OpKind::Load { .. }
            | OpKind::Store { .. }
            | OpKind::Atomic { .. }
            | OpKind::CompareSwap(_)
            | OpKind::StoreRelease { .. }
            | OpKind::LoadAcquire
            | OpKind::SequenceWait
            | OpKind::Shuffle(_)
            | OpKind::Vote(_)
            | OpKind::Barrier
            | OpKind::WarpBarrier
            | OpKind::Mma(_)
            | OpKind::For
            | OpKind::Loop
            | OpKind::If
            | OpKind::Roles(_)
            | OpKind::Yield
            | OpKind::Break(_)
            | OpKind::Continue(_)
            | OpKind::Return => false,
        }
    }
}
