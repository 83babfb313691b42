//! The operations that are invisible to other agents, and the accesses that an agent makes next.
#![expect(clippy::wildcard_enum_match_arm, reason = "most operations are of no interest here")]

use crate::engine::{Agent, Class};
use crate::sim::access::{Touching, shared, tensor};
use crate::sim::machine::Machine;
use crate::sim::plan::{BULK_STORE, BULK_WRITE, CP_ASYNC, Plan, TENSOR_LOAD, TENSOR_STORE, WGMMA, param_of};
use crate::sim::value::Val;
use std::collections::{BTreeMap, BTreeSet};
use titan_core::ir::{
    Access, AmdOp, CallProxy, Effect, Kernel, LocalOp, NvOp, Op, OpId, OpKind, ParamKind, RegionOp, Tcgen05Op, TtgOp,
    Unit,
};

/// The objects that are private to one agent, independent of the state.
#[derive(Debug)]
pub(super) struct Privacy {
    /// Whether the kernel is laid out: the sanitizer sees every access of its warps, so overlaps of accesses need not be explored.
    watched: bool,
    /// Named barriers at which the same warps arrive in every phase: the order of arrivals does not matter.
    gather: BTreeSet<u8>,
    /// Whether the kernel invalidates some barrier.
    invalidates: bool,
    /// For each parameter, whether it is only read, or only one agent of the cluster accesses it.
    params: Vec<bool>,
    /// For each ring, whether it is a staging ring of one agent.
    rings: Vec<bool>,
}

impl Privacy {
    pub(super) fn of(plan: &Plan<'_>, ctas: usize) -> Privacy {
        let kernel = plan.kernel;
        let private = |i: usize| {
            let param = kernel.sig.params.get(i).map(|p| &p.kind);
            let touches = |k: &Kernel, op: &Op| op.args.iter().any(|v| param_of(k, *v) == Some(i));
            match param {
                Some(ParamKind::Tensor { access: Access::Mut, .. }) => ctas == 1 && plan.who(touches).len() <= 1,
                _ => true,
            }
        };
        Privacy {
            watched: kernel.laid_out.is_some(),
            gather: gatherings(plan),
            invalidates: kernel.ops.iter().any(|op| op.kind == OpKind::Nv(NvOp::MbarrierInval)),
            params: (0..kernel.sig.params.len()).map(private).collect(),
            rings: plan.rings.iter().map(|r| r.staging && r.fillers.len() <= 1).collect(),
        }
    }

    fn tensors(&self, kernel: &Kernel, op: &Op) -> bool {
        op.args.iter().filter_map(|v| param_of(kernel, *v)).all(|p| self.params.get(p).copied().unwrap_or(false))
    }

    fn ring(&self, i: usize) -> bool {
        self.rings.get(i).copied().unwrap_or(false)
    }
}

/// The named barriers of a laid-out kernel that count exactly the threads whose code contains them, at every place.
fn gatherings(plan: &Plan<'_>) -> BTreeSet<u8> {
    let kernel = plan.kernel;
    let Some(laid) = kernel.laid_out.as_deref() else { return BTreeSet::new() };
    let mut role_of: BTreeMap<OpId, usize> = BTreeMap::new();
    for (role, block) in plan.roles_op.map_or(&[][..], |id| &kernel.op(id).regions).iter().enumerate() {
        kernel.walk_block(*block, &mut |id, _| role_of.extend([(id, role)]));
    }
    // For each number: the warps that arrive (those of a role, or all), and whether the barrier counts exactly them at every place.
    let mut whole: BTreeMap<u8, (Option<usize>, bool)> = BTreeMap::new();
    kernel.walk(&mut |at, op| {
        let (id, counted) = match op.kind {
            OpKind::Nv(NvOp::BarrierSync { id, threads }) => (id, Some(threads)),
            OpKind::Nv(NvOp::BarrierArrive { id, .. }) => (id, None),
            _ => return,
        };
        let who = role_of.get(&at).copied();
        let warps = who.map_or(laid.warps, |r| kernel.roles.get(r).map_or(0, |r| r.warps));
        let fits = counted == warps.checked_mul(laid.lanes);
        whole.entry(id).and_modify(|all| all.1 &= fits && all.0 == who).or_insert((who, fits));
    });
    whole.into_iter().filter(|(_, (_, fits))| *fits).map(|(id, _)| id).collect()
}

impl Machine<'_> {
    /// Whether an agent's next step commutes with every present and future step of the others.
    pub(super) fn is_local(&self, agent: usize, privacy: &Privacy) -> bool {
        let Some(id) = self.next_op(agent) else {
            // The end of an agent is visible only to cluster and program barriers.
            return self.cluster.is_none() && self.ctas.iter().all(|c| c.block.is_none());
        };
        let op = self.kernel().op(id);
        match &op.kind {
            OpKind::Ttg(ttg) => self.is_local_ttg(agent, op, ttg, privacy),
            OpKind::Region(region) => match region {
                RegionOp::Place { .. } | RegionOp::At | RegionOp::Tile { .. } => true,
                RegionOp::Read | RegionOp::Write | RegionOp::Call(_) | RegionOp::Wait => false,
            },
            OpKind::Local(local) => match local {
                LocalOp::Store | LocalOp::Load | LocalOp::Copy { .. } | LocalOp::Fetch { .. } => privacy.watched,
                LocalOp::Settle { .. } => false,
                LocalOp::Alloc { .. }
                | LocalOp::Guard
                | LocalOp::Slice { .. }
                | LocalOp::Reshape(_)
                | LocalOp::Stack
                | LocalOp::Mma
                | LocalOp::Convert
                | LocalOp::Fold { .. } => true,
            },
            OpKind::Nv(nv) => self.is_local_nv(agent, *nv, privacy),
            OpKind::Mma if self.reads_stages(op) => false,
            OpKind::Amd(amd) => matches!(amd, AmdOp::Mfma | AmdOp::SetPrio { .. }),
            // What these return depends on the updates of other agents before them, although the accesses are no race.
            OpKind::Fetch(_) | OpKind::CompareExchange => privacy.tensors(self.kernel(), op),
            kind => match kind.effect() {
                Effect::Pure | Effect::Control => true,
                Effect::Read | Effect::Trap | Effect::Write | Effect::Atomic | Effect::Print => {
                    privacy.watched || privacy.tensors(self.kernel(), op)
                }
                Effect::Pipeline => privacy.tensors(self.kernel(), op),
            },
        }
    }

    fn is_local_ttg(&self, agent: usize, op: &Op, ttg: &TtgOp, privacy: &Privacy) -> bool {
        let staging = |i: usize| match op.args.get(i).map(|v| self.val(agent, *v)) {
            Some(Val::Token { pipe, .. }) => privacy.ring(pipe as usize),
            _ => false,
        };
        match ttg {
            TtgOp::Source(..) | TtgOp::SourceRows { .. } => privacy.tensors(self.kernel(), op),
            TtgOp::Ready(_)
            | TtgOp::ReadPerm
            | TtgOp::Split(_)
            | TtgOp::Join
            | TtgOp::View { .. }
            | TtgOp::Consumed
            | TtgOp::AccStart(_)
            | TtgOp::Roles
            | TtgOp::Finalize
            | TtgOp::Rematerialize
            | TtgOp::Claim(..)
            | TtgOp::Fence { .. } => true,
            TtgOp::Acquire(pipe) => privacy.ring(pipe.index()),
            TtgOp::Write => staging(0),
            TtgOp::StoreIssue(_) => staging(op.args.len().saturating_sub(1)) && privacy.tensors(self.kernel(), op),
            // Local if every staging ring is the agent's own: then the stores that it waits for read no other ring.
            TtgOp::StoreWait => privacy.rings.iter().zip(&self.plan.rings).all(|(own, ring)| *own || !ring.staging),
            TtgOp::ComputeWait | TtgOp::AccFinish => {
                self.engine.pending().of(Agent::new(agent), WGMMA).is_empty() && self.holds_nothing(agent, op)
            }
            TtgOp::AsyncProduce { .. }
            | TtgOp::Fill(_)
            | TtgOp::WaitReady
            | TtgOp::Poisoned
            | TtgOp::Read
            | TtgOp::Release
            | TtgOp::ComputeIssue
            | TtgOp::AccMma => false,
        }
    }

    /// Whether the operand holds no stages: it is not an accumulator, or an accumulator without stages to release.
    fn holds_nothing(&self, agent: usize, op: &Op) -> bool {
        match op.args.first().map(|v| self.val(agent, *v)) {
            Some(Val::Acc(id)) => {
                self.threads.get(agent).and_then(|t| t.accs.get(&id)).is_none_or(|a| a.held.is_empty())
            }
            _ => true,
        }
    }

    fn is_local_nv(&self, agent: usize, nv: NvOp, privacy: &Privacy) -> bool {
        let passes = |class: Class, n: u32| self.engine.pending().passes(Agent::new(agent), class, n);
        match nv {
            NvOp::MbarrierAlloc { .. }
            | NvOp::MbarrierAt
            | NvOp::ClusterRank
            | NvOp::WgmmaFence
            | NvOp::WarpSync
            | NvOp::Commit { .. } => true,
            // Taking registers may take those that another agent waits for, so only releasing them is local.
            NvOp::SetMaxNReg { registers } => self.gives_registers(agent, registers),
            NvOp::Tcgen05(tensor) => self.is_local_tensor(agent, &tensor),
            NvOp::WaitGroup { group, n, .. } => match group {
                titan_core::ir::NvGroup::CpAsync => privacy.watched || passes(CP_ASYNC, n),
                titan_core::ir::NvGroup::Wgmma => privacy.watched || passes(WGMMA, n),
                titan_core::ir::NvGroup::BulkStore => passes(BULK_STORE, n) && passes(BULK_WRITE, n),
            },
            NvOp::BarrierSync { id, .. } => privacy.gather.contains(&id),
            // With `.noinc`, this only records which barrier the copies will signal.
            NvOp::CpAsyncArrive { noinc, .. } => privacy.watched && noinc && !privacy.invalidates,
            // One thread executes these for its whole role or program.
            NvOp::MbarrierInit { .. }
            | NvOp::SequenceInit
            | NvOp::SequenceStore
            | NvOp::ArriveExpectTx { .. }
            | NvOp::ExpectTx { .. }
            | NvOp::BulkLoad { .. }
            | NvOp::BulkStore { .. } => !self.is_first(agent),
            // Only the agent's own wait completes the MMA.
            NvOp::Wgmma => privacy.watched,
            NvOp::MbarrierInval
            | NvOp::Arrive { .. }
            | NvOp::ArriveCluster { .. }
            | NvOp::MbarrierWait
            | NvOp::WaitParity
            | NvOp::TryWait
            | NvOp::TestWait
            | NvOp::FenceMbarrierInit
            | NvOp::CpAsync { .. }
            | NvOp::BarrierArrive { .. }
            | NvOp::ClusterArrive
            | NvOp::ClusterWait
            | NvOp::SequenceWait => false,
        }
    }

    fn is_local_tensor(&self, agent: usize, tensor: &Tcgen05Op) -> bool {
        let none_in_flight = |class: Class| self.engine.pending().of(Agent::new(agent), class).is_empty();
        match tensor {
            // Fences concern what the agent itself has observed.
            Tcgen05Op::FenceBefore | Tcgen05Op::FenceAfter => true,
            Tcgen05Op::WaitLoad => none_in_flight(TENSOR_LOAD),
            Tcgen05Op::WaitStore => none_in_flight(TENSOR_STORE),
            Tcgen05Op::Alloc { .. }
            | Tcgen05Op::Dealloc { .. }
            | Tcgen05Op::Relinquish { .. }
            | Tcgen05Op::Mma(_)
            | Tcgen05Op::Load { .. }
            | Tcgen05Op::Store { .. }
            | Tcgen05Op::Copy { .. }
            | Tcgen05Op::Shift { .. }
            | Tcgen05Op::Commit { .. } => false,
        }
    }

    /// The accesses that an agent makes itself in its next operation.
    pub(super) fn about_to(&self, agent: usize) -> Vec<Touching> {
        let Some(id) = self.next_op(agent) else { return Vec::new() };
        let op = self.kernel().op(id);
        let one = |touch, time| vec![Touching { agent, op: id, time, touch, class: None }];
        match &op.kind {
            OpKind::Region(what @ (RegionOp::Read | RegionOp::Write)) => match self.arg(agent, op, 0) {
                Val::Region { lo, len, .. } => {
                    one(shared(self.cta(agent), lo, lo + len, *what == RegionOp::Write), None)
                }
                _ => Vec::new(),
            },
            OpKind::Region(RegionOp::Call(call)) if call.declared() != CallProxy::None => {
                let one = |(i, _): (usize, _)| match self.arg(agent, op, i) {
                    Val::Region { lo, len, .. } => {
                        let touch = shared(self.cta(agent), lo, lo + len, call.touch(i).writes());
                        Some(Touching { agent, op: id, time: None, touch, class: None })
                    }
                    _ => None,
                };
                op.args.iter().enumerate().filter_map(one).collect()
            }
            OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Dealloc { .. })) => match self.arg(agent, op, 0) {
                Val::Columns(columns) => one(columns.touch(self.cta(agent)), None),
                _ => Vec::new(),
            },
            OpKind::Ttg(TtgOp::Read) => match self.arg(agent, op, 0) {
                Val::Smem(smem) => self.stage_bytes((agent, id), (smem.pipe, smem.time), Some(smem.field), false),
                _ => Vec::new(),
            },
            OpKind::Ttg(TtgOp::Write) => match self.arg(agent, op, 0) {
                Val::Token { pipe, time } => self.stage_bytes((agent, id), (pipe as usize, time), None, true),
                _ => Vec::new(),
            },
            OpKind::Mma => op
                .args
                .iter()
                .filter_map(|v| match self.val(agent, *v) {
                    Val::Smem(smem) => {
                        Some(self.stage_bytes((agent, id), (smem.pipe, smem.time), Some(smem.field), false))
                    }
                    _ => None,
                })
                .flatten()
                .collect(),
            kind => match kind.effect() {
                Effect::Read => self.tensor_touch(agent, op, id, false),
                Effect::Write | Effect::Atomic => self.tensor_touch(agent, op, id, true),
                Effect::Pure | Effect::Trap | Effect::Print | Effect::Control | Effect::Pipeline => Vec::new(),
            },
        }
    }

    fn stage_bytes(
        &self,
        (agent, op): (usize, OpId),
        (pipe, time): (usize, u64),
        field: Option<usize>,
        write: bool,
    ) -> Vec<Touching> {
        let Some(ring) = self.plan.rings.get(pipe) else { return Vec::new() };
        let base = ring.base + time % ring.slots * ring.stride;
        let (offset, len) = field.and_then(|f| ring.fields.get(f)).copied().unwrap_or((0, ring.stride));
        let touch = shared(self.cta(agent), base + offset, base + offset + len, write);
        vec![Touching { agent, op, time: Some(time), touch, class: None }]
    }

    /// The memory that a load or store of a tensor accesses; inputs never conflict.
    fn tensor_touch(&self, agent: usize, op: &Op, id: OpId, write: bool) -> Vec<Touching> {
        let Ok(view) = self.view(agent, op, 0) else { return Vec::new() };
        let input = self.store.setup.tensors.get(view.param).and_then(Option::as_ref).is_none_or(|t| t.bytes.is_some());
        if input || matches!(op.kind, OpKind::Ttg(_)) {
            return Vec::new();
        }
        let (unit, shape) = match &op.kind {
            OpKind::Load(unit, shape) => (*unit, Some(*shape)),
            OpKind::Store(unit) => (*unit, op.args.last().and_then(|v| self.kernel().ty(*v).tile_shape())),
            OpKind::AtomicTile(_) => (Unit::Tile, op.args.last().and_then(|v| self.kernel().ty(*v).tile_shape())),
            OpKind::Set | OpKind::Get => (Unit::Elem, None),
            _ => {
                let touch = tensor(&view, None, None, write, write);
                return vec![Touching { agent, op: id, time: None, touch, class: None }];
            }
        };
        let first = self.first(agent, op, (1, view.extents.len()), shape.filter(|_| unit == Unit::Tile));
        let strong = matches!(op.kind, OpKind::AtomicTile(_));
        let touch = tensor(&view, first.as_deref(), shape, write, strong);
        vec![Touching { agent, op: id, time: None, touch, class: None }]
    }
}
