//! Programs whose synchronisation is determinate: a few orders stand for all.
//!
//! A barrier program whose every phase is made up of the same arrivals and bytes in every order, and whose every wait returns for the same
//! phase, behaves as a network of queues: what can happen stays possible until it happens, so all orders have the same events. Only
//! unsynchronised accesses to memory can differ between orders. One order shows whether a program is of this kind (the
//! `certificate`), and the sanitizer, which observes the same order, whether all its accesses are ordered. The theorem and its proof are in
//! docs/simulator.md.
//!
//! More than one order is run all the same: each must give a certificate, with the same events and the same end, and they reach the fullest
//! state of each ring. If something does not hold, the answer is that it is not known, and the full search begins.
//!
//! Deliberately absent: kernels that are not laid out, counters and polled barriers, which the full search explores.

use super::certificate::Certificate;
use super::search::{Point, Search, Wrong, joined, meet, ready, signalling, stuck};
use crate::engine::{BarrierId, OpId as Pending, PhaseBarrier, StateHasher};
use crate::sim::finding::Choice;
use crate::sim::machine::index;
use crate::sim::state::Moved;
use crate::sim::tensor::Setup;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use titan_core::ir::{Effect, Kernel, LocalOp, NvGroup, NvOp, Op, OpKind, RegionOp, TtgOp};

/// The largest number of operations of one order.
const STEPS: u64 = 10_000_000;

/// An order: which agent runs next, and when operations that signal complete.
#[derive(Clone, Copy, Debug, Default)]
struct Order {
    /// The agent that runs only if no other one can.
    last: Option<usize>,
    /// Whether the agent with the highest number runs first, instead of that with the lowest.
    backward: bool,
    /// Whether operations complete at their issue, instead of when no agent can run.
    early: bool,
}

/// Whether the theorem covers every operation of a kernel.
pub(super) fn speaks_of(kernel: &Kernel) -> bool {
    let Some(laid) = kernel.laid_out.as_deref() else { return false };
    let mut all = laid.warps > 0;
    // The theorem requires that every use of a named barrier states the same number of threads.
    let mut counts = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    kernel.walk(&mut |_, op| {
        all &= is_of(op);
        if let OpKind::Nv(NvOp::BarrierSync { id, threads } | NvOp::BarrierArrive { id, threads }) = op.kind {
            counts.insert((id, threads));
            numbers.insert(id);
        }
    });
    all && counts.len() == numbers.len() && registers_at_first(kernel)
}

/// Whether each role requests registers (`setmaxnreg`) at most once, as its first operation with an effect: then the requests do not
/// depend on the order, and neither does whether there are enough registers.
fn registers_at_first(kernel: &Kernel) -> bool {
    let asks = |op: &Op| matches!(op.kind, OpKind::Nv(NvOp::SetMaxNReg { .. }));
    let (mut all, mut first) = (0, 0);
    kernel.walk(&mut |_, op| {
        all += usize::from(asks(op));
        if op.kind == OpKind::Ttg(TtgOp::Roles) {
            for role in &op.regions {
                let mut ops = kernel.block(*role).ops.iter().map(|id| kernel.op(*id));
                first += usize::from(ops.find(|op| op.kind.effect() != Effect::Pure).is_some_and(asks));
            }
        }
    });
    all == first
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the other operations are told apart by their effects, of which none is left out"
)]
fn is_of(op: &Op) -> bool {
    match &op.kind {
        OpKind::Ttg(ttg) => match ttg {
            TtgOp::Source(..)
            | TtgOp::SourceRows { .. }
            | TtgOp::Roles
            | TtgOp::Finalize
            | TtgOp::Rematerialize
            | TtgOp::Claim(..)
            | TtgOp::Fence { .. } => true,
            TtgOp::Acquire(_)
            | TtgOp::AsyncProduce { .. }
            | TtgOp::Fill(_)
            | TtgOp::Ready(_)
            | TtgOp::WaitReady
            | TtgOp::Poisoned
            | TtgOp::ReadPerm
            | TtgOp::Split(_)
            | TtgOp::Join
            | TtgOp::View { .. }
            | TtgOp::Read
            | TtgOp::Consumed
            | TtgOp::Release
            | TtgOp::ComputeIssue
            | TtgOp::ComputeWait
            | TtgOp::AccStart(_)
            | TtgOp::AccMma
            | TtgOp::AccFinish
            | TtgOp::Write
            | TtgOp::StoreIssue(_)
            | TtgOp::StoreWait => false,
        },
        OpKind::Local(local) => match local {
            LocalOp::Settle { .. } => false,
            LocalOp::Alloc { .. }
            | LocalOp::Store
            | LocalOp::Load
            | LocalOp::Copy { .. }
            | LocalOp::Fetch { .. }
            | LocalOp::Guard
            | LocalOp::Slice { .. }
            | LocalOp::Reshape(_)
            | LocalOp::Stack
            | LocalOp::Mma
            | LocalOp::Convert
            | LocalOp::Fold { .. } => true,
        },
        OpKind::Region(region) => match region {
            RegionOp::Place { .. } | RegionOp::At | RegionOp::Tile { .. } | RegionOp::Read | RegionOp::Write => true,
            RegionOp::Call(_) | RegionOp::Wait => false,
        },
        OpKind::Nv(nv) => is_of_nv(*nv),
        OpKind::Amd(_) => false,
        // What these return may be different in another order.
        OpKind::Fetch(_) | OpKind::CompareExchange => false,
        kind => match kind.effect() {
            Effect::Pure | Effect::Control | Effect::Read | Effect::Trap | Effect::Write | Effect::Atomic => true,
            Effect::Print => true,
            Effect::Pipeline => false,
        },
    }
}

const fn is_of_nv(nv: NvOp) -> bool {
    match nv {
        NvOp::MbarrierAlloc { .. }
        | NvOp::MbarrierAt
        | NvOp::MbarrierInit { .. }
        | NvOp::Arrive { .. }
        | NvOp::ArriveCluster { .. }
        | NvOp::ArriveExpectTx { .. }
        | NvOp::ExpectTx { .. }
        | NvOp::MbarrierWait
        | NvOp::WaitParity
        | NvOp::FenceMbarrierInit
        | NvOp::BulkLoad { .. }
        | NvOp::BulkStore { .. }
        | NvOp::CpAsync { .. }
        | NvOp::CpAsyncArrive { noinc: true, .. }
        | NvOp::WgmmaFence
        | NvOp::Wgmma
        | NvOp::Commit { .. }
        | NvOp::WaitGroup { group: NvGroup::CpAsync | NvGroup::Wgmma | NvGroup::BulkStore, .. }
        | NvOp::BarrierSync { .. }
        | NvOp::BarrierArrive { .. }
        | NvOp::ClusterRank
        | NvOp::ClusterArrive
        | NvOp::ClusterWait
        | NvOp::WarpSync
        | NvOp::SetMaxNReg { .. } => true,
        // The result of a poll may be either in another order.
        NvOp::TryWait | NvOp::TestWait => false,
        // Without `.noinc`, the arrival count of a phase changes during the phase.
        NvOp::CpAsyncArrive { noinc: false, .. } => false,
        NvOp::MbarrierInval | NvOp::SequenceInit | NvOp::SequenceStore | NvOp::SequenceWait | NvOp::Tcgen05(_) => false,
    }
}

/// One order while it is run.
struct Run<'k> {
    at: Point<'k>,
    choices: Vec<Choice>,
    steps: u64,
}

impl<'k> Run<'k> {
    /// Whether this order may not stand for all, as far as is known.
    fn doubt(&self) -> bool {
        self.at.watch.certificate().is_none_or(|c| c.why().is_some()) || self.steps > STEPS
    }

    fn next(&self, order: Order) -> Option<usize> {
        let mut others = ready(&self.at.machine).filter(|a| Some(*a) != order.last);
        let one = if order.backward { others.last() } else { others.next() };
        one.or_else(|| order.last.filter(|a| self.at.machine.is_ready(*a)))
    }

    fn told(&self) -> Option<Pending> {
        signalling(&self.at.machine).next()
    }

    /// A hash of the end that every order reaches: the events, and the state of each agent.
    fn end(&self) -> Option<u128> {
        let machine = &self.at.machine;
        let half = |b: &PhaseBarrier| b.is_live() && b.pending() == 0 && b.bytes() != 0;
        let barriers = (0..).map_while(|i| machine.engine.barrier(BarrierId::new(i)));
        if barriers.into_iter().any(half) || self.doubt() {
            return None;
        }
        let events = self.at.watch.certificate()?.identity();
        let threads: Vec<u128> = machine.threads.iter().map(StateHasher::of).collect();
        Some(StateHasher::of(&(events, threads)))
    }
}

impl<'k> Search<'k, '_> {
    /// Whether a few orders show that all orders are safe; `false` means that nothing is known.
    ///
    /// # Errors
    /// The finding of one of these orders, with its choices.
    pub(super) fn determinate(&mut self, setup: &Rc<Setup>, programs: &[[u32; 3]]) -> Result<bool, Wrong> {
        let before = self.explored;
        let mut orders = vec![
            Order::default(),
            Order { backward: true, ..Order::default() },
            Order { early: true, ..Order::default() },
        ];
        let per = self.plan.agents();
        // All warps of a role behave alike, so one of each is enough.
        let mut readers: BTreeMap<Option<usize>, usize> = BTreeMap::new();
        for reader in self.plan.rings.iter().flat_map(|ring| &ring.readers) {
            readers.entry(self.plan.role_of(*reader)).or_insert(*reader);
        }
        let lasts = (0..programs.len()).flat_map(|cta| readers.values().map(move |reader| cta * per + reader));
        orders.extend(lasts.map(|last| Order { last: Some(last), ..Order::default() }));
        let mut end = None;
        for order in orders {
            let this = self.one_order(setup, programs, order)?;
            if this.is_none() || end.is_some_and(|end| Some(end) != this) {
                self.explored = before;
                return Ok(false);
            }
            end = this;
        }
        self.explored.ends += 1;
        self.explored.determinate += 1;
        Ok(true)
    }

    /// Runs one order to its end; returns a hash of its events, or `None` if it may not stand for all.
    fn one_order(&mut self, setup: &Rc<Setup>, programs: &[[u32; 3]], order: Order) -> Result<Option<u128>, Wrong> {
        let agents = programs.len() * self.plan.agents();
        let certificate = Certificate::new(agents, self.plan.agents());
        let at = self.start(setup, programs, Some(certificate)).map_err(|e| (*e, Vec::new()))?;
        let mut run = Run { at, choices: Vec::new(), steps: 0 };
        let mut depth = 0;
        loop {
            if let Some(op) = run.told().filter(|_| order.early) {
                self.completes(&mut run, op)?;
            } else if let Some(agent) = run.next(order) {
                self.runs(&mut run, agent)?;
            } else if let Some(op) = run.told() {
                self.completes(&mut run, op)?;
            } else {
                break;
            }
            run.at.machine.settle();
            self.seen(&run, &mut depth)?;
            if run.doubt() || self.explored.states >= self.limits.max_states {
                return Ok(None);
            }
        }
        if let Some(found) = stuck(&run.at.machine) {
            return Err((*found, joined(run.choices)));
        }
        Ok(run.end())
    }

    fn completes(&self, run: &mut Run<'k>, op: Pending) -> Result<(), Wrong> {
        run.choices.push(Choice::Complete(op));
        let done = run.at.machine.complete(op, &mut run.at.watch);
        done.map_err(|e| (*run.at.watch.told(&run.at.machine, e), joined(run.choices.clone())))
    }

    /// Executes an agent's step: one operation, and the local ones after it.
    fn runs(&self, run: &mut Run<'k>, agent: usize) -> Result<(), Wrong> {
        loop {
            run.choices.push(Choice::Run { agent: index(agent), ops: 1 });
            run.steps += 1;
            let machine = &mut run.at.machine;
            match machine.step(agent, &mut run.at.watch) {
                Err(e) => return Err((*run.at.watch.told(machine, e), joined(std::mem::take(&mut run.choices)))),
                Ok(Moved::On) if machine.is_ready(agent) && machine.is_local(agent, &self.privacy) => {}
                Ok(_) => return Ok(()),
            }
            if run.steps > STEPS {
                return Ok(());
            }
        }
    }

    /// Counts a state, and reports two next accesses that conflict.
    fn seen(&mut self, run: &Run<'k>, depth: &mut usize) -> Result<(), Wrong> {
        let machine = &run.at.machine;
        *depth += 1;
        self.explored.transitions += 1;
        self.explored.visit(machine, *depth);
        match meet(machine) {
            Some((found, pair)) => {
                let then = pair.map(|agent| Choice::Run { agent: index(agent), ops: 1 });
                Err((*found, joined(run.choices.iter().copied().chain(then))))
            }
            None => Ok(()),
        }
    }
}
