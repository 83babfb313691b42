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
use titan_core::lane::Op;
use titan_core::lane::op::OpKind;

impl Lower<'_> {
    /// Lowers one operation that has no regions and is not a terminator.
    #[expect(clippy::too_many_lines, reason = "a table: one row for each operation")]
    pub(super) fn op(&mut self, op: &Op) -> Done {
        let number = |n: u32| Arg::Bits(u64::from(n));
        match &op.kind {
            OpKind::Const(..) => Ok(()),
            OpKind::Slot(slot) => self.slot(*slot, op),
            OpKind::ThreadId => self.thread_id(op),
            OpKind::LaneId => self.lane_id(op),
            OpKind::WarpId => self.warp_number(op),
            OpKind::ProgramId(axis) => self.program_id(*axis, op),
            OpKind::NumPrograms(axis) => self.num_programs(*axis, op),
            OpKind::SharedBase => self.shared_base(op),
            OpKind::TensorMap(map) => self.tensor_map(*map, op),
            OpKind::MapEntry(map) => self.map_entry(*map, op),
            OpKind::MakeMap { map, axes } => self.make_map(*map, axes, op),
            OpKind::MapCluster => self.map_cluster(op),

            OpKind::Int(bin) => self.int_op(*bin, op),
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
            OpKind::CopyAsync { bytes, offset, masked } => self.copy_async(*bytes, *offset, *masked, op),
            OpKind::CopyCommit => self.inst(&COPY_COMMIT, &[]),
            OpKind::CopyWait(n) => self.inst(&COPY_WAIT, &[number(*n)]),
            OpKind::BulkLoad { rank, multicast, masked } => self.bulk_load((*rank, *multicast), *masked, op),
            OpKind::BulkStore { rank } => self.bulk_store(*rank, op),
            OpKind::BulkCommit => self.inst(&BULK_COMMIT, &[]),
            OpKind::BulkWait { n, read } => self.inst(if *read { &BULK_WAIT_READ } else { &BULK_WAIT }, &[number(*n)]),

            OpKind::CopyArrive { masked } => self.at_barrier(&COPY_ARRIVE, *masked, op),
            OpKind::MbarrierInit { count, masked } => self.init(*count, *masked, op),
            OpKind::MbarrierInvalidate { masked } => self.at_barrier(&INVALIDATE, *masked, op),
            OpKind::MbarrierArrive { count, masked } => self.arrive(*count, *masked, op),
            OpKind::MbarrierArriveCluster { masked } => self.at_barrier(&ARRIVE_CLUSTER, *masked, op),
            OpKind::MbarrierExpect { bytes, masked } => self.expect(*bytes, *masked, op),
            OpKind::MbarrierWait => self.mbarrier_wait(op),
            OpKind::StoreRelease { masked } => self.store_release(*masked, op),
            OpKind::LoadAcquire => self.load_acquire(op),
            OpKind::SequenceWait => self.sequence_wait(op),
            OpKind::MbarrierFence => self.inst(&INIT_FENCE, &[]),
            OpKind::ProxyFence { cluster: false } => self.inst(&PROXY_FENCE, &[]),
            OpKind::ProxyFence { cluster: true } => self.inst(&PROXY_FENCE_CLUSTER, &[]),
            OpKind::ClusterArrive => self.inst(&CLUSTER_ARRIVE, &[]),
            OpKind::ClusterWait => self.inst(&CLUSTER_WAIT, &[]),
            OpKind::Barrier => self.inst(&BARRIER, &[Arg::Bits(0)]),
            OpKind::NamedBarrier { id, threads, wait } => {
                let form = if *wait { &BARRIER_SOME } else { &BARRIER_ARRIVE };
                self.inst(form, &[number((*id).into()), number(*threads)])
            }
            OpKind::WarpBarrier => self.inst(&BARRIER_WARP, &[Arg::Bits(super::warp::MEMBERS)]),

            OpKind::Elect => self.elect(op),
            OpKind::Shuffle(shuffle) => self.shuffle(*shuffle, op),
            OpKind::Vote(vote) => self.vote(*vote, op),
            OpKind::LoadMatrix { n, transposed, offset } => self.load_matrix((*n, *transposed), *offset, op),
            OpKind::StoreMatrix { n, transposed, offset } => self.store_matrix((*n, *transposed), *offset, op),
            OpKind::Mma(atom) => self.mma(atom, op),
            OpKind::GroupFence => self.inst(&GROUP_FENCE, &[]),
            OpKind::GroupMma(group) => self.group_mma(group, op),
            OpKind::GroupCommit => self.inst(&GROUP_COMMIT, &[]),
            OpKind::GroupWait(n) => self.group_wait(*n, op),
            OpKind::SetMaxRegisters { registers, more } => {
                self.inst(if *more { &MORE_REGISTERS } else { &FEWER_REGISTERS }, &[number(*registers)])
            }

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
        }
    }
}
