//! The table of selection: how each operation that has no regions, and is no terminator, becomes instructions.

use super::Select;
use super::memory::Access;
use crate::codegen::error::{Done, Fault};
use titan_core::lane::op::OpKind;
use titan_core::lane::{AmdOp, NvOp, Op};

/// Why an operation of another machine cannot be selected.
fn only_elsewhere<T>(what: &str) -> Result<T, Fault> {
    Err(Fault::Refused(what.to_owned()))
}

const MBARRIERS: &str = "there are no mbarriers, and no barriers of a part of a workgroup";
const COPIES: &str = "there are no asynchronous copies by threads to the local data share";
const BULK: &str = "there are no bulk copies by tensor maps";
const CLUSTERS: &str = "there are no clusters of workgroups";
const GROUPS: &str = "there are no matrix instructions of several waves";
const ROLES: &str =
    "waves with roles of their own cannot wait for each other, since there are no barriers of a part of a workgroup";
const MATRICES: &str = "there are no loads and stores of matrices by a whole wave";

/// What this machine lacks for an operation of NVIDIA's.
const fn lacking(op: &NvOp) -> &'static str {
    match op {
        NvOp::CopyAsync { .. } | NvOp::CopyCommit | NvOp::CopyWait(_) => COPIES,
        NvOp::CopyArrive { .. }
        | NvOp::MbarrierInit { .. }
        | NvOp::MbarrierInvalidate { .. }
        | NvOp::MbarrierArrive { .. }
        | NvOp::MbarrierExpect { .. }
        | NvOp::MbarrierWait
        | NvOp::MbarrierFence
        | NvOp::NamedBarrier { .. } => MBARRIERS,
        NvOp::MbarrierArriveCluster { .. } | NvOp::MapCluster | NvOp::ClusterArrive | NvOp::ClusterWait => CLUSTERS,
        NvOp::TensorMap(_)
        | NvOp::MapEntry(_)
        | NvOp::MakeMap { .. }
        | NvOp::BulkLoad { .. }
        | NvOp::BulkStore { .. }
        | NvOp::BulkCommit
        | NvOp::BulkWait { .. }
        | NvOp::ProxyFence { .. } => BULK,
        NvOp::Elect => "a lane is elected only for bulk copies",
        NvOp::GroupFence
        | NvOp::GroupMma(_)
        | NvOp::GroupCommit
        | NvOp::GroupWait(_)
        | NvOp::SetMaxRegisters { .. } => GROUPS,
        NvOp::LoadMatrix { .. } | NvOp::StoreMatrix { .. } => MATRICES,
    }
}

impl Select<'_> {
    /// Selects the instructions of one operation that has no regions and is not a terminator.
    pub(super) fn op(&mut self, op: &Op) -> Done {
        match &op.kind {
            OpKind::Const(..) => Ok(()),
            OpKind::Slot(slot) => self.slot(*slot, op),
            OpKind::ThreadId => self.thread_id(op),
            OpKind::LaneId => self.lane_id(op),
            OpKind::WarpId => self.warp_id(op),
            OpKind::ProgramId(axis) => self.program_id(*axis, op),
            OpKind::NumPrograms(axis) => self.num_programs(*axis, op),
            OpKind::SharedBase => self.shared_base(op),

            OpKind::Int(bin) => self.int_op(*bin, op),
            OpKind::IntUn(un) => self.int_function(*un, op),
            OpKind::MulWide { signed } => self.mul_wide(*signed, op),
            OpKind::IntCmp { pred, signed } => self.int_compare(*pred, *signed, op),
            OpKind::Extend { from, signed, to } => self.extend(*from, *signed, *to, op),
            OpKind::Truncate(to) => self.truncate(*to, op),
            OpKind::FromPred => self.pred_to_int(op),
            OpKind::Float(bin, ty) => self.float_op(*bin, *ty, op),
            OpKind::FloatUn(un, ty) => self.float_function(*un, *ty, op),
            OpKind::Fma(ty) => self.fma(*ty, op),
            OpKind::FloatCmp(pred, ty) => self.float_compare(*pred, *ty, op),
            OpKind::Convert { from, to } => self.convert(*from, *to, op),
            OpKind::Select => self.select(op),
            OpKind::Pack => self.pack(op),
            OpKind::Unpack => self.unpack(op),
            OpKind::UnpackBytes { signed } => self.unpack_bytes(*signed, op),

            OpKind::Load { space, bytes, n, offset, masked } => {
                self.load(Access { space: *space, bytes: *bytes, n: *n, offset: *offset, masked: *masked }, op)
            }
            OpKind::Store { space, bytes, n, offset, masked } => {
                self.store(Access { space: *space, bytes: *bytes, n: *n, offset: *offset, masked: *masked }, op)
            }
            OpKind::Atomic { op: function, space, masked } => self.atomic(*function, *space, *masked, op),
            OpKind::CompareSwap(space) => self.compare_swap(*space, op),
            OpKind::Shuffle(shuffle) => self.shuffle(*shuffle, op),
            OpKind::Vote(vote) => self.vote(*vote, op),
            OpKind::Barrier => self.barrier(),
            OpKind::WarpBarrier => self.wave_barrier(),

            OpKind::Amd(AmdOp::Buffer) => self.buffer(op),
            OpKind::Amd(AmdOp::BufferLoad { bytes, n, offset }) => self.buffer_load((*bytes, *n, *offset), op),
            OpKind::Nv(op) => Err(Fault::Refused(lacking(op).to_owned())),
            OpKind::StoreRelease { .. } | OpKind::LoadAcquire | OpKind::SequenceWait => only_elsewhere(ROLES),
            OpKind::Mma(atom) => self.mma(atom, op),

            OpKind::Buffer(_) | OpKind::Access { .. } => {
                Err(Fault::Defect("shared memory is to be allocated, and barriers placed, before".to_owned()))
            }
            OpKind::Roles(_) => only_elsewhere(ROLES),
            OpKind::For
            | OpKind::Loop
            | OpKind::If
            | OpKind::Yield
            | OpKind::Break(_)
            | OpKind::Continue(_)
            | OpKind::Return => Err(Fault::Defect("control where an operation was expected".to_owned())),
        }
    }
}
