//! The table of instruction selection: how each operation that has no regions, and is no terminator, becomes instructions.

use super::error::Fault;
use super::memory::Access;
use super::{Arg, Done, Lower};
use crate::ptx::isa::group::{
    BULK_COMMIT, BULK_WAIT, BULK_WAIT_READ, FEWER_REGISTERS, GROUP_COMMIT, GROUP_FENCE, INIT_FENCE, MORE_REGISTERS,
    PROXY_FENCE, PROXY_FENCE_CLUSTER,
};
use crate::ptx::isa::memory::{COPY_COMMIT, COPY_WAIT};
use crate::ptx::isa::sync::{
    ARRIVE_CLUSTER, BARRIER, BARRIER_ARRIVE, BARRIER_SOME, BARRIER_WARP, CLUSTER_ARRIVE, CLUSTER_WAIT, COPY_ARRIVE,
    INVALIDATE,
};
use titan_core::lane::op::OpKind;
use titan_core::lane::{NvOp, Op};

impl Lower<'_> {
    /// Lowers one operation that has no regions and is not a terminator.
    pub(super) fn op(&mut self, op: &Op) -> Done {
        match &op.kind {
            OpKind::Const(..) => Ok(()),
            OpKind::Slot(slot) => self.slot(*slot, op),
            OpKind::ThreadId => self.thread_id(op),
            OpKind::LaneId => self.lane_id(op),
            OpKind::WarpId => self.warp_number(op),
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
            OpKind::FloatCmp(pred, ty) => self.float_condition(*pred, *ty, op),
            OpKind::Convert { from, to } => self.convert_op(*from, *to, op),
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
            OpKind::StoreRelease { masked } => self.store_release(*masked, op),
            OpKind::LoadAcquire => self.load_acquire(op),
            OpKind::SequenceWait => self.sequence_wait(op),
            OpKind::Barrier => self.inst(&BARRIER, &[Arg::Bits(0)]),
            OpKind::WarpBarrier => self.inst(&BARRIER_WARP, &[Arg::Bits(super::warp::MEMBERS)]),
            OpKind::Shuffle(shuffle) => self.shuffle(*shuffle, op),
            OpKind::Vote(vote) => self.vote(*vote, op),
            OpKind::Mma(atom) => self.mma(atom, op),

            OpKind::Buffer(_) | OpKind::Access { .. } => {
                Err(Fault::Refused("shared memory is to be allocated, and barriers placed, before".to_owned()))
            }
            OpKind::For
            | OpKind::Loop
            | OpKind::If
            | OpKind::Roles(_)
            | OpKind::Yield
            | OpKind::Break(_)
            | OpKind::Continue(_)
            | OpKind::Return => Err(Fault::Defect("control where an operation was expected".to_owned())),
            OpKind::Nv(nv) => self.nv_op(nv, op),
            OpKind::Amd(_) => Err(Fault::Refused("there are no buffers that bound accesses".to_owned())),
        }
    }

    /// Emits an operation of NVIDIA's dialect.
    fn nv_op(&mut self, nv: &NvOp, op: &Op) -> Done {
        let number = |n: u32| Arg::Bits(u64::from(n));
        match nv {
            NvOp::TensorMap(map) => self.tensor_map(*map, op),
            NvOp::MapEntry(map) => self.map_entry(*map, op),
            NvOp::MakeMap { map, axes } => self.make_map(*map, axes, op),
            NvOp::MapCluster => self.map_cluster(op),
            NvOp::CopyAsync { bytes, offset, masked } => self.copy_async(*bytes, *offset, *masked, op),
            NvOp::CopyCommit => self.inst(&COPY_COMMIT, &[]),
            NvOp::CopyWait(n) => self.inst(&COPY_WAIT, &[number(*n)]),
            NvOp::BulkLoad { rank, multicast, masked } => self.bulk_load((*rank, *multicast), *masked, op),
            NvOp::BulkStore { rank } => self.bulk_store(*rank, op),
            NvOp::BulkCommit => self.inst(&BULK_COMMIT, &[]),
            NvOp::BulkWait { n, read } => self.inst(if *read { &BULK_WAIT_READ } else { &BULK_WAIT }, &[number(*n)]),

            NvOp::CopyArrive { masked } => self.at_barrier(&COPY_ARRIVE, *masked, op),
            NvOp::MbarrierInit { count, masked } => self.init(*count, *masked, op),
            NvOp::MbarrierInvalidate { masked } => self.at_barrier(&INVALIDATE, *masked, op),
            NvOp::MbarrierArrive { count, masked } => self.arrive(*count, *masked, op),
            NvOp::MbarrierArriveCluster { masked } => self.at_barrier(&ARRIVE_CLUSTER, *masked, op),
            NvOp::MbarrierExpect { bytes, masked } => self.expect(*bytes, *masked, op),
            NvOp::MbarrierWait => self.mbarrier_wait(op),
            NvOp::MbarrierFence => self.inst(&INIT_FENCE, &[]),
            NvOp::ProxyFence { cluster: false } => self.inst(&PROXY_FENCE, &[]),
            NvOp::ProxyFence { cluster: true } => self.inst(&PROXY_FENCE_CLUSTER, &[]),
            NvOp::ClusterArrive => self.inst(&CLUSTER_ARRIVE, &[]),
            NvOp::ClusterWait => self.inst(&CLUSTER_WAIT, &[]),
            NvOp::NamedBarrier { id, threads, wait } => {
                let form = if *wait { &BARRIER_SOME } else { &BARRIER_ARRIVE };
                self.inst(form, &[number((*id).into()), number(*threads)])
            }

            NvOp::Elect => self.elect(op),
            NvOp::LoadMatrix { n, transposed, offset } => self.load_matrix((*n, *transposed), *offset, op),
            NvOp::StoreMatrix { n, transposed, offset } => self.store_matrix((*n, *transposed), *offset, op),
            NvOp::GroupFence => self.inst(&GROUP_FENCE, &[]),
            NvOp::GroupMma(group) => self.group_mma(group, op),
            NvOp::GroupCommit => self.inst(&GROUP_COMMIT, &[]),
            NvOp::GroupWait(n) => self.group_wait(*n, op),
            NvOp::SetMaxRegisters { registers, more } => {
                self.inst(if *more { &MORE_REGISTERS } else { &FEWER_REGISTERS }, &[number(*registers)])
            }
        }
    }
}
