//! Operations of the barrier dialect: regions, mbarriers, copies and groups, named and cluster barriers.
//!
//! Regions have no elements in the IR, so the contents of copies to them are not kept, only that the bytes were written. A role acts
//! as one thread of control, and its operations state how many of its threads arrive.
#![expect(clippy::wildcard_enum_match_arm, reason = "operands that are not what an operation takes are refused alike")]

use super::access::{shared, tensor};
use super::finding::{Found, Kind};
use super::machine::{Machine, Obs, index};
use super::plan::{BULK_LOAD, BULK_STORE, BULK_WRITE, CP_ASYNC, LGKMCNT, VMCNT, WGMMA};
use super::state::Moved;
use super::value::{Num, Val};
use super::work::{Effect, Res, Work};
use crate::engine::{self, Agent, Class, Place, Proxy, Scope, Signal};
use titan_core::ir::{AmdOp, Call, CallProxy, NvGroup, NvOp, Op, OpId, RegionOp};

/// The reason for which an agent waits on a counter.
const COUNTER: u32 = 2;

/// A region, by its first byte and the byte after its last.
pub(super) type Bytes = (u64, u64);

impl Machine<'_> {
    /// Executes an operation on regions.
    pub(super) fn region(&mut self, agent: usize, id: OpId, op: &Op, what: &RegionOp, obs: Obs<'_, '_>) -> Res<Moved> {
        match what {
            RegionOp::Place { offset, bytes, parts } => {
                let region = Val::Region { lo: (*offset).into(), len: (*bytes).into(), parts: (*parts).into() };
                self.set(agent, &op.results, [region])?;
            }
            RegionOp::At => {
                let Val::Region { lo, len, parts } = self.arg(agent, op, 0) else { return Err(unknown("a region")) };
                let i = self.int(agent, op, 1)?;
                let part = len / parts.max(1);
                match u64::try_from(i).ok().filter(|i| *i < parts) {
                    Some(i) => {
                        self.set(agent, &op.results, [Val::Region { lo: lo + i * part, len: part, parts: 1 }])?
                    }
                    None => return Err(Found::new(Kind::Bounds, format!("part {i} of a region of {parts}"))),
                }
            }
            RegionOp::Read | RegionOp::Write => {
                let (lo, hi) = self.bytes(agent, op, 0)?;
                let cta = self.cta(agent);
                let write = *what == RegionOp::Write;
                self.touch(agent, id, None, shared(cta, lo, hi, write), obs)?;
                let Machine { engine, store, .. } = self;
                if write {
                    store.define(engine, cta, lo, hi)?;
                } else {
                    store.read_shared(&*engine, cta, lo, hi - lo)?;
                }
            }
            RegionOp::Tile { .. } => self.tile_in_region(agent, op, what)?,
            RegionOp::Call(call) => self.call(agent, id, op, call, obs)?,
            RegionOp::Wait => {
                let Val::Group(class, group) = self.arg(agent, op, 0) else { return Err(unknown("a group")) };
                self.wait_for(agent, class, group, obs)?;
            }
        }
        Ok(Moved::On)
    }

    /// The declared effects of an opaque call; its results are unknown.
    fn call(&mut self, agent: usize, id: OpId, op: &Op, call: &Call, obs: Obs<'_, '_>) -> Res<()> {
        let proxy = match call.declared() {
            CallProxy::Generic => Proxy::Generic,
            CallProxy::Async => Proxy::Async,
            CallProxy::None => return Ok(()),
        };
        if call.access.is_none() {
            return Err(Found::not_modelled(format_args!(
                "`{}` does not declare its effects on its regions",
                call.name
            )));
        }
        for i in 0..op.args.len() {
            let ((lo, hi), cta) = (self.bytes(agent, op, i)?, self.cta(agent));
            let touch = call.touch(i);
            for write in [touch.reads().then_some(false), touch.writes().then_some(true)].into_iter().flatten() {
                self.touch_through(proxy, (agent, id, None), shared(cta, lo, hi, write), obs)?;
                let Machine { engine, store, .. } = self;
                // An opaque call may read these bytes or not, so they need not be defined.
                if write {
                    store.define(engine, cta, lo, hi)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn bytes(&self, agent: usize, op: &Op, i: usize) -> Res<Bytes> {
        match self.arg(agent, op, i) {
            Val::Region { lo, len, .. } => Ok((lo, lo + len)),
            _ => Err(unknown("a region")),
        }
    }

    /// Executes an operation of the NVIDIA dialect.
    pub(super) fn nv(&mut self, agent: usize, id: OpId, op: &Op, what: NvOp, obs: Obs<'_, '_>) -> Res<Moved> {
        match what {
            NvOp::MbarrierAlloc { n, .. } => {
                let made = op.results.first().map_or(0, |v| index(v.index()));
                self.set(agent, &op.results, [Val::Barriers { made, first: 0, n }])?;
            }
            NvOp::MbarrierAt => {
                let Val::Barriers { made, first, n } = self.arg(agent, op, 0) else { return Err(unknown("a barrier")) };
                let i = self.int(agent, op, 1)?;
                match u32::try_from(i).ok().filter(|i| *i < n) {
                    Some(i) => self.set(agent, &op.results, [Val::Barriers { made, first: first + i, n: 1 }])?,
                    None => return Err(Found::new(Kind::Bounds, format!("barrier {i} of {n}"))),
                }
            }
            NvOp::MbarrierInit { count } => self.init(agent, id, op, count, obs)?,
            NvOp::MbarrierInval => self.invalidate(agent, id, op, obs)?,
            NvOp::Arrive { arrivals } => self.arrive(agent, id, op, (arrivals, 0), obs)?,
            NvOp::ArriveCluster { arrivals } => self.arrive_everywhere(agent, id, op, arrivals, obs)?,
            NvOp::ClusterRank => {
                let rank = i64::try_from(self.cta(agent)).unwrap_or(0);
                self.set(agent, &op.results, [Val::Num(Num::Int(rank))])?;
            }
            NvOp::ArriveExpectTx { bytes } => self.arrive(agent, id, op, (1, bytes), obs)?,
            NvOp::ExpectTx { bytes } => self.arrive(agent, id, op, (0, bytes), obs)?,
            NvOp::MbarrierWait | NvOp::WaitParity => return self.wait(agent, id, op, obs),
            NvOp::TryWait | NvOp::TestWait => {
                let (barrier, parity) = (self.one_barrier(agent, op, 0)?, self.parity(agent, op)?);
                let passed = self
                    .engine
                    .test(Agent::new(agent), barrier, parity, &mut &mut *obs)
                    .map_err(|h| self.fault(agent, Some(id), h))?;
                self.set(agent, &op.results, [Val::Num(Num::Int(passed.into()))])?;
                return Ok(if passed { Moved::On } else { Moved::Polled });
            }
            NvOp::FenceMbarrierInit => {
                if let Some(cta) = self.cta_mut(agent) {
                    cta.unfenced.retain(|_, who| *who != agent);
                }
                let place = Place::new(id.index());
                let (from, to, scope, space) =
                    (Proxy::Generic, Proxy::Async, Scope::Cluster, engine::FenceSpace::Inits);
                self.tell(obs, &engine::Event::Fence { agent: Agent::new(agent), from, to, scope, space, place })?;
            }
            NvOp::BulkLoad { bytes, multicast, .. } if matches!(self.arg(agent, op, 0), Val::Source(_)) => {
                self.copy_tile(agent, id, op, (bytes, multicast), obs)?
            }
            NvOp::BulkLoad { bytes, multicast, .. } => self.bulk_load(agent, id, op, (bytes, multicast), obs)?,
            NvOp::BulkStore { bytes, .. } if matches!(self.arg(agent, op, 0), Val::Source(_)) => {
                self.store_copy(agent, id, op, bytes, obs)?
            }
            NvOp::BulkStore { bytes, tensor } => self.bulk_store(agent, id, op, (bytes, tensor), obs)?,
            NvOp::CpAsync { bytes } => self.copy(agent, id, op, (CP_ASYNC, bytes), obs)?,
            NvOp::CpAsyncArrive { noinc, arrivals } => self.copies_arrive(agent, id, op, (noinc, arrivals), obs)?,
            NvOp::Wgmma if !op.results.is_empty() => self.start_step(agent, id, op, obs)?,
            NvOp::Wgmma => self.wgmma(agent, id, op, obs)?,
            NvOp::Tcgen05(tensor) => return self.tcgen05(agent, id, op, tensor, obs),
            NvOp::Commit { .. }
            | NvOp::WaitGroup { .. }
            | NvOp::BarrierSync { .. }
            | NvOp::BarrierArrive { .. }
            | NvOp::ClusterArrive
            | NvOp::ClusterWait
            | NvOp::SetMaxNReg { .. }
            | NvOp::WgmmaFence
            | NvOp::WarpSync
            | NvOp::SequenceInit
            | NvOp::SequenceStore
            | NvOp::SequenceWait => return self.orders(agent, id, op, what, obs),
        }
        Ok(Moved::On)
    }

    /// Executes operations on commit groups, barriers without a word in memory, and counters.
    fn orders(&mut self, agent: usize, id: OpId, op: &Op, what: NvOp, obs: Obs<'_, '_>) -> Res<Moved> {
        match what {
            NvOp::Commit { group, .. } => {
                let class = class_of(group);
                let n = self.commit(agent, class, obs)?;
                if class == BULK_STORE {
                    self.commit(agent, BULK_WRITE, obs)?;
                }
                self.set(agent, &op.results, [Val::Group(class, n)])?;
            }
            NvOp::WaitGroup { group, n, read } => {
                let class = class_of(group);
                self.wait_groups(agent, class, n, obs)?;
                if class == BULK_STORE && !read {
                    self.wait_groups(agent, BULK_WRITE, n, obs)?;
                }
                self.take_sums(agent, op, n)?;
            }
            NvOp::BarrierSync { id: named, threads } => {
                return self.named_barrier(agent, id, (named, threads, true), obs);
            }
            NvOp::BarrierArrive { id: named, threads } => {
                return self.named_barrier(agent, id, (named, threads, false), obs);
            }
            NvOp::ClusterArrive | NvOp::ClusterWait => {
                return self.cluster(agent, id, what == NvOp::ClusterArrive, obs);
            }
            NvOp::SetMaxNReg { registers } => return self.registers(agent, registers),
            NvOp::WgmmaFence => self.thread(agent)?.written_to.clear(),
            // The lanes of a warp are modelled as one thread of control.
            NvOp::WarpSync => {}
            NvOp::SequenceInit => self.init_counters(agent, id, op, obs)?,
            NvOp::SequenceStore => self.store_counter(agent, op, obs)?,
            NvOp::SequenceWait => return self.wait_counter(agent, op, obs),
            _ => return Err(Found::not_modelled(titan_core::ir::op_table::mnemonic(&op.kind))),
        }
        Ok(Moved::On)
    }

    /// The program whose memory contains a counter, and the address of its word.
    fn counter(&self, agent: usize, op: &Op) -> Res<(usize, u64)> {
        let (lo, hi) = self.bytes(agent, op, 0)?;
        if hi - lo != 4 || lo % 4 != 0 {
            return Err(Found::new(Kind::Bounds, format!("a counter of {} bytes at byte {lo}", hi - lo)));
        }
        Ok((self.cta(agent), lo))
    }

    /// Sets all counters of a region to 0, by one thread.
    fn init_counters(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<()> {
        if !self.is_first(agent) {
            return Ok(());
        }
        let ((lo, hi), cta) = (self.bytes(agent, op, 0)?, self.cta(agent));
        self.touch(agent, id, None, shared(cta, lo, hi, true), obs)?;
        let Some(state) = self.cta_mut(agent) else { return Ok(()) };
        state.counters.extend((lo..hi).step_by(4).map(|at| (at, 0)));
        Ok(())
    }

    /// One thread publishes its effects, and those that it has observed, through a counter that waiting threads compare.
    fn store_counter(&mut self, agent: usize, op: &Op, obs: Obs<'_, '_>) -> Res<()> {
        if !self.is_first(agent) {
            return Ok(());
        }
        let ((cta, address), n) = (self.counter(agent, op)?, self.int(agent, op, 1)?);
        let space = self.store.shared.get(cta).copied().ok_or_else(|| unknown("shared memory"))?;
        match self.ctas.get_mut(cta).and_then(|c| c.counters.get_mut(&address)) {
            Some(word) if *word <= n => *word = n,
            Some(word) => {
                let message = format!("a counter goes from {word} back to {n}");
                return Err(Found::new(Kind::Barrier, message));
            }
            None => return Err(Found::new(Kind::Barrier, "a counter that was not initialised")),
        }
        self.tell(obs, &engine::Event::Overwrite { space, address })?;
        self.tell(obs, &engine::Event::Release { agent: Agent::new(agent), space, address })?;
        self.engine.agents_mut().wake(|w| w == engine::Wait::Other(COUNTER));
        Ok(())
    }

    /// Waits until a counter is at least a number.
    fn wait_counter(&mut self, agent: usize, op: &Op, obs: Obs<'_, '_>) -> Res<Moved> {
        let ((cta, address), n) = (self.counter(agent, op)?, self.int(agent, op, 1)?);
        let Some(word) = self.ctas.get(cta).and_then(|c| c.counters.get(&address)) else {
            return Err(Found::new(Kind::Barrier, "a counter that was not initialised"));
        };
        if *word < n {
            self.engine.agents_mut().set(Agent::new(agent), engine::State::Blocked(engine::Wait::Other(COUNTER)));
            return Ok(Moved::Blocked);
        }
        let space = self.store.shared.get(cta).copied().ok_or_else(|| unknown("shared memory"))?;
        self.tell(obs, &engine::Event::Acquire { agent: Agent::new(agent), space, address })?;
        Ok(Moved::On)
    }

    pub(super) fn cta_mut(&mut self, agent: usize) -> Option<&mut super::state::Cta> {
        let cta = self.cta(agent);
        self.ctas.get_mut(cta)
    }

    /// The bytes of a region that a copy touches.
    fn copied(&self, agent: usize, op: &Op, (at, bytes): (usize, u32)) -> Res<Bytes> {
        let (lo, hi) = self.bytes(agent, op, at)?;
        if u64::from(bytes) > hi - lo {
            return Err(Found::new(Kind::Bounds, format!("{bytes} bytes are copied, and the region has {}", hi - lo)));
        }
        Ok((lo, lo + u64::from(bytes)))
    }

    /// The layout in the tensor of the bytes of a copy without a tile is unspecified: kernels that depend on it are not modelled.
    fn tensor_is_said(&self, agent: usize, op: &Op, stores: bool) -> Res<()> {
        let param = self.view(agent, op, 0)?.param;
        let Some(t) = self.store.setup.tensors.get(param).and_then(Option::as_ref).filter(|t| t.bytes.is_none()) else {
            return Ok(());
        };
        if !stores {
            return Err(Found::not_modelled(format_args!(
                "a raw copy from `{}`, which the kernel may write: which bytes it reads is unspecified",
                t.name
            )));
        }
        if self.plan.stored_by_several.get(param) == Some(&true) {
            return Err(Found::not_modelled(format_args!(
                "raw stores of several roles to `{}`: which bytes they write is unspecified",
                t.name
            )));
        }
        Ok(())
    }

    fn bulk_load(
        &mut self,
        agent: usize,
        id: OpId,
        op: &Op,
        (bytes, multicast): (u32, u16),
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let n = op.args.len();
        self.tensor_is_said(agent, op, false)?;
        let (lo, hi) = self.copied(agent, op, (n.saturating_sub(2), bytes))?;
        for cta in self.receivers(agent, multicast)? {
            let (barrier, _) = self.barriers_of(agent, cta, op, n.saturating_sub(1))?;
            self.check_fenced(cta, barrier)?;
            let work = Work {
                op: id,
                time: None,
                touches: vec![shared(cta, lo, hi, true)],
                effect: Effect::Define { cta, lo, hi },
            };
            self.start(agent, BULK_LOAD, (Vec::new(), vec![Signal::Bytes { barrier, bytes }]), work, obs)?;
        }
        Ok(())
    }

    /// The programs of the cluster that receive a copy.
    pub(super) fn receivers(&self, agent: usize, multicast: u16) -> Res<Vec<usize>> {
        if multicast == 0 {
            return Ok(vec![self.cta(agent)]);
        }
        let all: Vec<usize> = (0..16).filter(|i| multicast >> i & 1 == 1).collect();
        all.iter().try_for_each(|cta| self.is_there(*cta, "a copy to"))?;
        Ok(all)
    }

    /// Checks that a program of the cluster can be accessed.
    pub(super) fn is_there(&self, cta: usize, what: &str) -> Res<()> {
        if cta >= self.ctas.len() {
            return Err(Found::new(Kind::Bounds, format!("{what} program {cta} of a cluster of {}", self.ctas.len())));
        }
        let over = self.engine.agents().state(Agent::new(cta * self.plan.agents())) == engine::State::Done;
        if over {
            return Err(Found::new(Kind::InFlight, format!("{what} program {cta} of the cluster, which has ended")));
        }
        Ok(())
    }

    /// Arrives at a barrier of each program of the cluster.
    fn arrive_everywhere(&mut self, agent: usize, id: OpId, op: &Op, arrivals: u32, obs: Obs<'_, '_>) -> Res<()> {
        let warps = self.warp_set(agent).map_or(1, |warp_set| warp_set.warps);
        if arrivals == 0 || !arrivals.is_multiple_of(warps) {
            let message = format!("{arrivals} arrivals cannot be divided equally among {warps} warps");
            return Err(Found::new(Kind::Participants, message));
        }
        for cta in 0..self.ctas.len() {
            self.is_there(cta, "an arrival at")?;
            let (barrier, n) = self.barriers_of(agent, cta, op, 0)?;
            if n != 1 {
                return Err(Found::new(Kind::Barrier, format!("{n} barriers, where one is required")));
            }
            self.check_fenced(cta, barrier)?;
            self.engine
                .arrive(Agent::new(agent), barrier, arrivals / warps, 0, &mut &mut *obs)
                .map_err(|h| self.fault(agent, Some(id), h))?;
        }
        Ok(())
    }

    /// Checks that a barrier's initialisation was fenced, without which bulk copies and other programs do not see it.
    pub(super) fn check_fenced(&self, cta: usize, barrier: engine::BarrierId) -> Res<()> {
        if !self.ctas.get(cta).is_some_and(|c| c.unfenced.contains_key(&barrier)) {
            return Ok(());
        }
        let name = self.barrier_name(barrier);
        Err(Found::new(
            Kind::Fence,
            format!(
                "a bulk copy or another program arrives at `{name}`, which was initialised without a fence after it"
            ),
        ))
    }

    fn bulk_store(
        &mut self,
        agent: usize,
        id: OpId,
        op: &Op,
        (bytes, boxed): (u32, bool),
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let (cta, at) = (self.cta(agent), op.args.len().saturating_sub(1));
        self.tensor_is_said(agent, op, true)?;
        let (lo, hi) = self.copied(agent, op, (at, bytes))?;
        let read = Work {
            op: id,
            time: None,
            touches: vec![shared(cta, lo, hi, false)],
            effect: Effect::Expect { cta, lo, hi },
        };
        let read = self.start(agent, BULK_STORE, (Vec::new(), Vec::new()), read, obs)?;
        let view = self.view(agent, op, 0)?;
        // The layout of a box in the tensor is unspecified: its bytes may be anywhere in it, and it begins at the first one.
        let rank = view.extents.len();
        let mut touches = vec![tensor(&view, None, None, true, true)];
        let first = self.first(agent, op, (1, rank), None);
        let written = first.map_or_else(Vec::new, |first| self.written_in_bulk(&view, &first, (bytes, boxed)));
        touches.extend(written.iter().cloned());
        let write = Work { op: id, time: None, touches, effect: Effect::None };
        let write = self.start(agent, BULK_WRITE, (vec![read], Vec::new()), write, obs)?;
        self.tell_written_in_bulk((agent, id), &written, Self::helper(BULK_WRITE, write), obs)
    }

    /// Starts a copy to shared memory that is counted by its class.
    fn copy(&mut self, agent: usize, id: OpId, op: &Op, (class, bytes): (Class, u32), obs: Obs<'_, '_>) -> Res<()> {
        let (cta, at) = (self.cta(agent), op.args.len().saturating_sub(1));
        self.tensor_is_said(agent, op, false)?;
        let (lo, hi) = self.copied(agent, op, (at, bytes))?;
        let work = Work {
            op: id,
            time: None,
            touches: vec![shared(cta, lo, hi, true)],
            effect: Effect::Define { cta, lo, hi },
        };
        self.start(agent, class, (Vec::new(), Vec::new()), work, obs).map(drop)
    }

    fn wgmma(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<()> {
        let cta = self.cta(agent);
        for i in 0..op.args.len() {
            let (lo, hi) = self.bytes(agent, op, i)?;
            let before = self.engine.pending().of(Agent::new(agent), WGMMA).last().copied();
            let work = Work {
                op: id,
                time: None,
                touches: vec![shared(cta, lo, hi, false)],
                effect: Effect::Expect { cta, lo, hi },
            };
            self.start(agent, WGMMA, (before.into_iter().collect(), Vec::new()), work, obs)?;
        }
        Ok(())
    }

    /// Executes an operation of the AMD dialect.
    pub(super) fn amd(&mut self, agent: usize, id: OpId, op: &Op, what: AmdOp, obs: Obs<'_, '_>) -> Res<Moved> {
        match what {
            AmdOp::Waitcnt { vmcnt, lgkmcnt } => {
                self.wait_groups(agent, VMCNT, vmcnt, obs)?;
                self.wait_groups(agent, LGKMCNT, lgkmcnt, obs)?;
            }
            AmdOp::BufferLoadLds { bytes, .. } => {
                self.copy(agent, id, op, (VMCNT, bytes), obs)?;
                let group = self.commit(agent, VMCNT, obs)?;
                self.set(agent, &op.results, [Val::Group(VMCNT, group)])?;
            }
            AmdOp::DsRead { .. } | AmdOp::DsWrite { .. } => {
                let ((lo, hi), cta) = (self.bytes(agent, op, 0)?, self.cta(agent));
                let write = matches!(what, AmdOp::DsWrite { .. });
                let effect = if write { Effect::Define { cta, lo, hi } } else { Effect::Expect { cta, lo, hi } };
                let before = self.engine.pending().of(Agent::new(agent), LGKMCNT).last().copied();
                let work = Work { op: id, time: None, touches: vec![shared(cta, lo, hi, write)], effect };
                self.start(agent, LGKMCNT, (before.into_iter().collect(), Vec::new()), work, obs)?;
                let group = self.commit(agent, LGKMCNT, obs)?;
                self.set(agent, &op.results, [Val::Group(LGKMCNT, group)])?;
            }
            AmdOp::Barrier => return self.s_barrier(agent, id, obs),
            AmdOp::Mfma | AmdOp::SetPrio { .. } => {}
        }
        Ok(Moved::On)
    }
}

const fn class_of(group: NvGroup) -> Class {
    match group {
        NvGroup::CpAsync => CP_ASYNC,
        NvGroup::Wgmma => WGMMA,
        NvGroup::BulkStore => BULK_STORE,
    }
}

pub(super) fn unknown(what: &str) -> Box<Found> {
    Found::not_modelled(format!("{what} that is not modelled"))
}
