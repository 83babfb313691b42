//! In which block an operation belongs: what does not change in a loop is computed in front of it.
//!
//! What is moved out of a loop may have been asked for under a condition there, or in a loop without iterations: then it is
//! computed all the same. So only operations are moved that do nothing but give results, and are defined for all operands.
//! Nothing is moved out of the code of a role. Conditions stay where they are asked for, because machines have few registers
//! for them; what is chosen by one in front of a loop has it computed there once more.

use super::build::{Around, Builder};
use super::func::Value;
use super::op::{IntBin, OpKind, Ty};

impl Builder {
    /// Operands as an operation in an outer block needs them: conditions that are computed further in are computed once more.
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

    /// In which of the open blocks a pure operation belongs: in front of the outermost loop in which its operands do not change.
    /// What is only defined for some operands stays where it was asked for, since nobody may ask in that loop.
    pub(super) fn outermost(&self, kind: &OpKind, args: &[Value]) -> usize {
        let last = self.open.len() - 1;
        if !self.is_total(kind, args) {
            return last;
        }
        let lowest = args.iter().map(|v| self.belongs[v.index()]).max().unwrap_or(0);
        let outside = (lowest + 1..=last).rev().take_while(|at| self.open[*at].around != Around::Role);
        outside.filter(|at| self.open[*at].around == Around::Loop).min().map_or(last, |looped| looped - 1)
    }

    /// Whether an operation is defined for all values that its operands may have, and does nothing but give its results.
    #[expect(clippy::too_many_lines, reason = "a table: one row for each operation")]
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
            | OpKind::TensorMap(_)
            | OpKind::MapCluster
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
            OpKind::Access { .. }
            | OpKind::Load { .. }
            | OpKind::Store { .. }
            | OpKind::Atomic { .. }
            | OpKind::CompareSwap(_)
            | OpKind::CopyAsync { .. }
            | OpKind::CopyCommit
            | OpKind::CopyWait(_)
            | OpKind::CopyArrive { .. }
            | OpKind::MbarrierInit { .. }
            | OpKind::MbarrierInvalidate { .. }
            | OpKind::MbarrierArrive { .. }
            | OpKind::MbarrierWait
            | OpKind::MbarrierExpect { .. }
            | OpKind::MbarrierFence
            | OpKind::MbarrierArriveCluster { .. }
            | OpKind::ClusterArrive
            | OpKind::ClusterWait
            | OpKind::BulkLoad { .. }
            | OpKind::BulkStore { .. }
            | OpKind::BulkCommit
            | OpKind::BulkWait { .. }
            | OpKind::StoreMatrix { .. }
            | OpKind::ProxyFence
            | OpKind::Elect
            | OpKind::GroupFence
            | OpKind::GroupMma(_)
            | OpKind::GroupCommit
            | OpKind::GroupWait(_)
            | OpKind::SetMaxRegisters { .. }
            | OpKind::StoreRelease { .. }
            | OpKind::LoadAcquire
            | OpKind::SequenceWait
            | OpKind::Shuffle(_)
            | OpKind::Vote(_)
            | OpKind::Barrier
            | OpKind::NamedBarrier { .. }
            | OpKind::WarpBarrier
            | OpKind::LoadMatrix { .. }
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
