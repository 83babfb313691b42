//! The operations of the barrier dialect: regions of shared memory, mbarriers, commit groups and counters.
//!
//! An arrival states how many threads arrive: all threads of the role, or one lane of each of its warps. Operations of a single thread are
//! executed by the first thread of the role or of the program.
//!
//! Deliberately absent: the correctness of the protocol, which the verifier checks.

use super::tile::{LoweredValue, Origin, Staged};
use super::{Lower, LowerError, Reg, WarpSet};
use crate::collections::SortedSet;
use crate::ir::{Kernel, NvGroup, NvOp, Op, OpId, OpKind, Pred, RegionOp, TtgOp, Value};
use crate::lane::{self, Region, Role, Space};

/// A region of shared memory, or one of its parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    pub(super) buffer: u32,
    /// The offset of the part in bytes, and its index.
    offset: Option<Reg>,
    number: Option<Reg>,
    /// The size of a part in bytes.
    stride: u32,
    parts: u32,
    /// Whether barriers between roles order the accesses to the region.
    ordered: bool,
}

/// An array of mbarriers, or one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Barriers {
    buffer: u32,
    at: u32,
    n: u32,
    /// The offset of the element in bytes.
    skip: Option<Reg>,
}

/// What is initialised before the roles begin.
#[derive(Clone, Copy, Debug)]
enum Initial {
    /// Barriers, and the arrivals that each of them counts.
    Barriers(Barriers, u32),
    /// Counters, which begin at zero.
    Counters(Bytes),
}

impl Initial {
    const fn buffer(&self) -> u32 {
        match self {
            Initial::Barriers(barriers, _) => barriers.buffer,
            Initial::Counters(bytes) => bytes.buffer,
        }
    }
}

/// The regions that several roles access: those that are defined before the roles and used in at least two of them.
pub(super) fn joined(kernel: &Kernel) -> SortedSet<Value> {
    let mut by_role: Vec<SortedSet<Value>> = Vec::new();
    kernel.walk(&mut |_, op| {
        if op.kind != OpKind::Ttg(TtgOp::Roles) {
            return;
        }
        for region in &op.regions {
            let mut named = SortedSet::new();
            kernel.walk_block(*region, &mut |_, op| named.extend(op.args.iter().copied()));
            by_role.push(named);
        }
    });
    let is_region = |v: &Value| kernel.ty(*v) == crate::ir::Ty::Barrier(crate::ir::BarrierTy::Region);
    let twice = |v: &Value| by_role.iter().filter(|named| named.contains(v)).count() > 1;
    by_role.iter().flatten().copied().filter(|v| is_region(v) && twice(v)).collect()
}

/// Whether an operation initialises barriers or counters.
pub(super) const fn is_init(kind: &OpKind) -> bool {
    matches!(kind, OpKind::Nv(NvOp::MbarrierInit { .. } | NvOp::SequenceInit))
}

impl Lower<'_> {
    pub(super) fn region_op(&mut self, op: &Op, region: &RegionOp) -> Result<(), LowerError> {
        match region {
            RegionOp::Place { offset, bytes, parts } => {
                let result = op.results[0];
                let name = self.k.display_name(result);
                let buffer = self.b.buffer(&name, *bytes, *offset);
                // When barriers were placed, slots of a ring and adjacent tiles were distinguished, and accesses of roles were ordered by a
                // protocol.
                let is_tile = |id: &&OpId| matches!(self.k.op(**id).kind, OpKind::Region(RegionOp::Tile { .. }));
                let tiles = self.tree.users(result).iter().filter(is_tile).count();
                let by_slots =
                    self.tree.users(result).iter().any(|id| self.k.op(*id).kind == OpKind::Region(RegionOp::At));
                let ordered = *parts > 1 || tiles > 1 || by_slots || self.joined.contains(&result);
                let (stride, parts) = (bytes / (*parts).max(1), *parts);
                self.define(
                    result,
                    LoweredValue::Region(Bytes { buffer, offset: None, number: None, stride, parts, ordered }),
                );
            }
            RegionOp::At => {
                let bytes = self.bytes_of(op.args[0])?;
                let slot = self.scalar(op.args[1]);
                let stride = self.b.i32(bytes.stride.cast_signed());
                let offset = self.b.mul(slot, stride);
                self.define(
                    op.results[0],
                    LoweredValue::Region(Bytes { offset: Some(offset), number: Some(slot), parts: 1, ..bytes }),
                );
            }
            RegionOp::Tile { offset, .. } => {
                let bytes = self.bytes_of(op.args[0])?;
                let Some(encoding) = self.k.encoding(op.results[0]).cloned() else {
                    return Err(self.defect("shared memory without an encoding"));
                };
                let start = bytes.offset.unwrap_or_else(|| self.b.i32(0));
                let base = Some((start, *offset));
                let origin = Origin::default();
                let slot = bytes.number.map(|number| (number, bytes.stride));
                let staged = Staged { buffer: bytes.buffer, encoding, base, slot, origin, ordered: bytes.ordered };
                self.define(op.results[0], LoweredValue::Buffer(staged));
            }
            RegionOp::Read | RegionOp::Write | RegionOp::Call(_) | RegionOp::Wait => {
                return Err(self.unsupported("an access to a region without a tile type"));
            }
        }
        Ok(())
    }

    pub(super) fn bytes_of(&self, value: Value) -> Result<Bytes, LowerError> {
        match &self.lowered[value.index()] {
            Some(LoweredValue::Region(bytes)) => Ok(*bytes),
            _ => Err(self.defect("an operand that is not a region")),
        }
    }

    pub(super) fn barriers_of(&self, value: Value) -> Result<Barriers, LowerError> {
        match &self.lowered[value.index()] {
            Some(LoweredValue::Barriers(barriers)) => Ok(*barriers),
            _ => Err(self.defect("an operand that is not a barrier")),
        }
    }

    /// The address of a barrier, or of the `i`-th barrier of an array.
    pub(super) fn barrier_word(&mut self, barriers: Barriers, i: u32) -> Reg {
        let base = self.b.one(lane::OpKind::Buffer(barriers.buffer), &[]);
        let at = match barriers.skip {
            Some(skip) => self.b.add(base, skip),
            None => base,
        };
        self.b.add_const(at, i64::from(barriers.at + 8 * i))
    }

    /// The address of the barrier that is the first operand of an operation.
    fn barrier(&mut self, op: &Op) -> Result<Reg, LowerError> {
        let barriers = self.barriers_of(op.args[0])?;
        self.touch(Region::Ring(barriers.buffer), true);
        Ok(self.barrier_word(barriers, 0))
    }

    /// The address of the counter that is an operand of an operation.
    fn counter(&mut self, op: &Op) -> Result<Reg, LowerError> {
        let bytes = self.bytes_of(op.args[0])?;
        self.touch(Region::Ring(bytes.buffer), true);
        let base = self.b.one(lane::OpKind::Buffer(bytes.buffer), &[]);
        Ok(match bytes.offset {
            Some(offset) => self.b.add(base, offset),
            None => base,
        })
    }

    /// Lowers initialisations of barriers and counters that follow each other: one thread executes all of them in one branch. With a condition
    /// on each of them, NVIDIA's assembler would wait for earlier accesses before each, and repeat some for each thread of the warp.
    pub(super) fn initialise(&mut self, ops: &[OpId]) -> Result<(), LowerError> {
        let all = ops.iter().map(|id| self.initial(self.k.op(*id))).collect::<Result<Vec<_>, _>>()?;
        let mut open = self.begin_any_thread();
        // The accesses of one thread are ordered among themselves: each buffer is marked once.
        let buffers: SortedSet<u32> = all.iter().map(Initial::buffer).collect();
        buffers.into_iter().for_each(|buffer| self.touch(Region::Buffer(buffer), true));
        for (id, initial) in ops.iter().zip(all) {
            self.at = Some(*id);
            self.b.set_loc(self.k.op(*id).loc);
            match initial {
                Initial::Barriers(barriers, count) => {
                    for i in 0..barriers.n {
                        let at = self.barrier_word(barriers, i);
                        self.b.op(lane::NvOp::MbarrierInit { count, masked: false }, &[at]);
                    }
                }
                Initial::Counters(bytes) => {
                    let (base, zero) = (self.b.one(lane::OpKind::Buffer(bytes.buffer), &[]), self.b.i32(0));
                    for i in 0..bytes.parts {
                        let at = self.b.add_const(base, i64::from(i * bytes.stride));
                        let store =
                            lane::OpKind::Store { space: Space::Shared, bytes: 4, n: 1, offset: 0, masked: false };
                        self.b.op(store, &[at, zero]);
                    }
                }
            }
        }
        self.end_one_thread(&mut open);
        Ok(())
    }

    /// What an operation initialises.
    fn initial(&self, op: &Op) -> Result<Initial, LowerError> {
        if let OpKind::Nv(NvOp::MbarrierInit { count }) = op.kind {
            return Ok(Initial::Barriers(self.barriers_of(op.args[0])?, count));
        }
        Ok(Initial::Counters(self.bytes_of(op.args[0])?))
    }

    pub(super) fn nv_op(&mut self, op: &Op, nv: NvOp) -> Result<(), LowerError> {
        match nv {
            NvOp::MbarrierAlloc { at, n } => {
                let bytes = self.bytes_of(op.args[0])?;
                self.define(
                    op.results[0],
                    LoweredValue::Barriers(Barriers { buffer: bytes.buffer, at, n, skip: None }),
                );
            }
            NvOp::MbarrierAt => {
                let barriers = self.barriers_of(op.args[0])?;
                let (slot, eight) = (self.scalar(op.args[1]), self.b.i32(8));
                let skip = Some(self.b.mul(slot, eight));
                self.define(op.results[0], LoweredValue::Barriers(Barriers { n: 1, skip, ..barriers }));
            }
            NvOp::MbarrierInit { .. } | NvOp::SequenceInit => {
                return Err(self.defect("initialisations are lowered together"));
            }
            NvOp::BulkLoad { .. } => self.bulk_load(op)?,
            NvOp::BulkStore { .. } => self.bulk_store(op)?,
            NvOp::Wgmma => self.group_mma(op)?,
            NvOp::WaitGroup { group: NvGroup::Wgmma, n, .. } => self.group_wait(op, n),
            NvOp::WaitParity
            | NvOp::SequenceWait
            | NvOp::SequenceStore
            | NvOp::Arrive { .. }
            | NvOp::ArriveCluster { .. }
            | NvOp::ClusterRank
            | NvOp::CpAsyncArrive { .. }
            | NvOp::Commit { .. }
            | NvOp::WaitGroup { .. }
            | NvOp::WarpSync
            | NvOp::BarrierSync { .. }
            | NvOp::BarrierArrive { .. }
            | NvOp::MbarrierInval
            | NvOp::ArriveExpectTx { .. }
            | NvOp::ExpectTx { .. }
            | NvOp::MbarrierWait
            | NvOp::TryWait
            | NvOp::TestWait
            | NvOp::FenceMbarrierInit
            | NvOp::CpAsync { .. }
            | NvOp::WgmmaFence
            | NvOp::ClusterArrive
            | NvOp::ClusterWait
            | NvOp::Tcgen05(_)
            | NvOp::SetMaxNReg { .. } => self.order(op, nv)?,
        }
        Ok(())
    }

    /// Lowers waits, arrivals and barriers.
    fn order(&mut self, op: &Op, nv: NvOp) -> Result<(), LowerError> {
        match nv {
            NvOp::WaitParity => {
                let (at, parity) = (self.barrier(op)?, self.scalar(op.args[1]));
                self.b.op(lane::NvOp::MbarrierWait, &[at, parity]);
            }
            NvOp::SequenceWait => {
                let (at, n) = (self.counter(op)?, self.scalar(op.args[1]));
                self.b.op(lane::OpKind::SequenceWait, &[at, n]);
            }
            NvOp::SequenceStore => {
                let (at, n, first) = (self.counter(op)?, self.scalar(op.args[1]), self.is_first_thread());
                self.b.op(lane::OpKind::StoreRelease { masked: true }, &[at, n, first]);
            }
            NvOp::Arrive { arrivals } => self.arrive(op, arrivals)?,
            NvOp::ArriveCluster { arrivals } => self.arrive_cluster(op, arrivals)?,
            NvOp::ClusterRank => self.rank_op(op),
            NvOp::ClusterArrive => drop(self.b.op(lane::NvOp::ClusterArrive, &[])),
            NvOp::ClusterWait => drop(self.b.op(lane::NvOp::ClusterWait, &[])),
            NvOp::ArriveExpectTx { bytes } => {
                let at = self.barrier(op)?;
                let (mut args, first) = (vec![at], self.of_one_thread());
                args.extend(first);
                self.b.op(lane::NvOp::MbarrierExpect { bytes, masked: first.is_some() }, &args);
            }
            NvOp::FenceMbarrierInit => drop(self.b.op(lane::NvOp::MbarrierFence, &[])),
            NvOp::WgmmaFence => drop(self.b.op(lane::NvOp::GroupFence, &[])),
            NvOp::Commit { group: NvGroup::Wgmma, .. } => drop(self.b.op(lane::NvOp::GroupCommit, &[])),
            NvOp::Commit { group: NvGroup::BulkStore, .. } => drop(self.b.op(lane::NvOp::BulkCommit, &[])),
            NvOp::WaitGroup { group: NvGroup::BulkStore, n, read } => {
                self.b.op(lane::NvOp::BulkWait { n, read }, &[]);
            }
            NvOp::SetMaxNReg { registers } => {
                let more = registers > self.entry_registers();
                self.b.op(lane::NvOp::SetMaxRegisters { registers, more }, &[]);
            }
            NvOp::CpAsyncArrive { noinc: true, .. } => {
                let at = self.barrier(op)?;
                self.b.op(lane::NvOp::CopyArrive { masked: false }, &[at]);
            }
            NvOp::Commit { group: NvGroup::CpAsync, .. } => {
                self.b.op(lane::NvOp::CopyCommit, &[]);
            }
            NvOp::WaitGroup { group: NvGroup::CpAsync, n, .. } => {
                self.b.op(lane::NvOp::CopyWait(n), &[]);
            }
            NvOp::WarpSync => {
                self.b.op(lane::OpKind::WarpBarrier, &[]);
            }
            NvOp::BarrierSync { id: 0, .. } if self.warp_set.role.is_none() => {
                self.b.op(lane::OpKind::Barrier, &[]);
            }
            NvOp::BarrierSync { id, threads } => {
                self.b.op(lane::NvOp::NamedBarrier { id, threads, wait: true }, &[]);
            }
            NvOp::BarrierArrive { id, threads } => {
                self.b.op(lane::NvOp::NamedBarrier { id, threads, wait: false }, &[]);
            }
            NvOp::MbarrierAlloc { .. }
            | NvOp::MbarrierAt
            | NvOp::MbarrierInit { .. }
            | NvOp::SequenceInit
            | NvOp::MbarrierInval
            | NvOp::ExpectTx { .. }
            | NvOp::MbarrierWait
            | NvOp::TryWait
            | NvOp::TestWait
            | NvOp::BulkLoad { .. }
            | NvOp::BulkStore { .. }
            | NvOp::CpAsync { .. }
            | NvOp::CpAsyncArrive { noinc: false, .. }
            | NvOp::Wgmma
            | NvOp::WaitGroup { group: NvGroup::Wgmma, .. }
            | NvOp::Tcgen05(_) => {
                let name = crate::ir::op_table::mnemonic(&op.kind);
                return Err(self.unsupported(format!("`{name}`")));
            }
        }
        Ok(())
    }

    /// Arrives with all threads of the warp set, or with one lane of each warp.
    fn arrive(&mut self, op: &Op, arrivals: u32) -> Result<(), LowerError> {
        let at = self.barrier(op)?;
        if arrivals == self.warp_set.warps * self.laid.lanes {
            self.b.op(lane::NvOp::MbarrierArrive { count: 1, masked: false }, &[at]);
            return Ok(());
        }
        if arrivals != self.warp_set.warps {
            return Err(self.unsupported(format!("{arrivals} arrivals of {} warps", self.warp_set.warps)));
        }
        let lane = self.b.one(lane::OpKind::LaneId, &[]);
        let zero = self.b.i32(0);
        let first = self.b.cmp_u(Pred::Eq, lane, zero);
        self.b.op(lane::NvOp::MbarrierArrive { count: 1, masked: true }, &[at, first]);
        Ok(())
    }

    /// Arrives with one lane of each warp at the barrier of each program of the cluster.
    fn arrive_cluster(&mut self, op: &Op, arrivals: u32) -> Result<(), LowerError> {
        let barriers = self.barriers_of(op.args[0])?;
        if arrivals != self.warp_set.warps {
            return Err(self.unsupported(format!("{arrivals} arrivals of {} warps", self.warp_set.warps)));
        }
        self.touch(Region::Ring(barriers.buffer), true);
        let lane = self.b.one(lane::OpKind::LaneId, &[]);
        let programs = self.b.i32(self.laid.cluster.cast_signed());
        let one_each = self.b.cmp_u(Pred::Lt, lane, programs);
        let last = self.b.i32((self.laid.cluster - 1).cast_signed());
        let rank = self.b.and(lane, last);
        // The address of the array in the other program is loop-invariant.
        let own = self.b.one(lane::OpKind::Buffer(barriers.buffer), &[]);
        let base = self.b.one(lane::NvOp::MapCluster, &[own, rank]);
        let at = match barriers.skip {
            Some(skip) => self.b.add(base, skip),
            None => base,
        };
        let at = self.b.add_const(at, i64::from(barriers.at));
        self.b.op(lane::NvOp::MbarrierArriveCluster { masked: true }, &[at, one_each]);
        Ok(())
    }

    fn rank_op(&mut self, op: &Op) {
        let rank = self.cluster_rank();
        self.define(op.results[0], LoweredValue::Scalar(rank));
    }

    /// The rank of this program in its cluster. The programs of a cluster are adjacent along axis 0; the index of the first is a multiple
    /// of their number.
    pub(super) fn cluster_rank(&mut self) -> Reg {
        let (program, last) = (self.b.one(lane::OpKind::ProgramId(0), &[]), self.laid.cluster - 1);
        let last = self.b.i32(last.cast_signed());
        self.b.and(program, last)
    }

    /// A barrier of the warp set that executes the current code.
    pub(super) fn warp_set_barrier(&mut self) {
        let kind = match self.warp_set.role.and_then(|r| u8::try_from(r + 1).ok()) {
            Some(id) => lane::OpKind::Nv(lane::NvOp::NamedBarrier {
                id,
                threads: self.warp_set.warps * self.laid.lanes,
                wait: true,
            }),
            None => lane::OpKind::Barrier,
        };
        self.b.op(kind, &[]);
    }

    /// Lowers roles: each role executes its region with its own warps.
    pub(super) fn roles(&mut self, op: &Op) -> Result<(), LowerError> {
        let mut roles = Vec::new();
        let mut warp_sets = Vec::new();
        let mut first = 0;
        for (index, role) in self.k.roles.iter().enumerate() {
            warp_sets.push(WarpSet { first, warps: role.warps, role: Some(index) });
            roles.push(Role { warps: role.warps, barrier: u8::try_from(index + 1).unwrap_or(u8::MAX) });
            first += role.warps;
        }
        let all = self.warp_set;
        let mut open = self.b.begin_roles(&roles, &[]);
        for (i, (warp_set, region)) in warp_sets.into_iter().zip(&op.regions).enumerate() {
            if i > 0 {
                self.b.begin_else(&mut open);
            }
            self.warp_set = warp_set;
            self.role_code(*region)?;
        }
        self.warp_set = all;
        self.b.end(open);
        Ok(())
    }
}
