//! The effect of one operation of the barrier dialect, executed by one role.
//!
//! `index` determines the element of an array that an index selects, and `parity` the phase that a parity stands for.

use super::super::run::{Fault, On, Run, Wait, defect};
use super::super::state::{Mark, State};
use super::lives::MAX_COUNT;
use super::machine::{Pending, Record, What, bit};
use super::objects::{Kind, Named};
use crate::diag::Code;
use crate::ir::{AmdOp, Class, Family, NvOp, Op, OpId, RegionOp, Ty, Value};
use crate::verify::Error;

/// An operation and the role that executes it.
#[derive(Clone, Copy)]
pub(super) struct At<'k> {
    pub(super) role: usize,
    pub(super) id: OpId,
    pub(super) op: &'k Op,
}

/// The arrivals and bytes that an operation adds to a phase.
#[derive(Clone, Copy, Default)]
struct Brings {
    arrivals: u32,
    expected: u64,
    copied: u64,
}

pub(super) type Waits = Result<Option<Wait>, Fault>;

pub(super) fn refuse<T>(error: Error) -> Result<T, Fault> {
    Err(Fault::Barrier(Box::new(error)))
}

impl<'k> Run<'k> {
    /// The effect of an operation on barriers, groups and memory; or the wait that blocks it.
    pub(in crate::verify) fn barrier_event(
        &mut self,
        state: &mut State,
        role: usize,
        (id, op): (OpId, &'k Op),
    ) -> Waits {
        let at = At { role, id, op };
        match op.kind.family() {
            Family::Region(region) => match region {
                RegionOp::Read => self.access(state, at, op.args[0], false, Pending::Done)?,
                RegionOp::Write => self.access(state, at, op.args[0], true, Pending::Done)?,
                RegionOp::Call(call) => self.call(state, at, call)?,
                RegionOp::Wait => self.wait_token(state, at)?,
                RegionOp::At => self.picked(state, at)?,
                // This only declares a region, and accesses nothing.
                RegionOp::Place { .. } => {}
                RegionOp::Tile { .. } => return defect(id, "a tile of a region in a program that is not laid out"),
            },
            Family::Nv(nv) => return self.nv(state, at, nv),
            Family::Amd(amd) => return self.amd(state, at, amd),
            Family::Data(_) | Family::Flow(_) | Family::Ttg(_) | Family::Local(_) => {
                return defect(id, "an operation of another dialect as an event of barriers");
            }
        }
        Ok(None)
    }

    /// A wait for the phase that a parity stands for.
    pub(in crate::verify) fn barrier_wait(
        &mut self,
        state: &mut State,
        role: usize,
        (id, op): (OpId, &'k Op),
    ) -> Waits {
        self.wait_parity(state, At { role, id, op })
    }

    fn nv(&mut self, state: &mut State, at: At<'k>, nv: NvOp) -> Waits {
        match nv {
            NvOp::Arrive { arrivals } => self.arrive(state, at, Brings { arrivals, ..Brings::default() })?,
            NvOp::ArriveExpectTx { bytes } => {
                self.arrive(state, at, Brings { arrivals: 1, expected: u64::from(bytes), copied: 0 })?;
            }
            NvOp::ExpectTx { bytes } => {
                self.arrive(state, at, Brings { expected: u64::from(bytes), ..Brings::default() })?
            }
            NvOp::ArriveCluster { .. } => {
                // This execution has one program: what another one does to its barriers is not in it.
                let title = "arrivals at the barriers of other programs of the cluster could not be verified";
                return refuse(Error::new(Code::NotShown, at.op.loc, title).help("use `ttg.nv.mbarrier.arrive`"));
            }
            NvOp::CpAsyncArrive { noinc, arrivals } => {
                self.arrive_after(state, at, Class::CpAsync, (noinc, arrivals))?;
            }
            NvOp::Tcgen05(tensor) => self.tensor(state, at, tensor)?,
            NvOp::BulkLoad { bytes, .. } => self.bulk_load(state, at, bytes)?,
            NvOp::MbarrierWait => return self.wait_state(state, at),
            NvOp::WaitParity => return self.wait_parity(state, at),
            NvOp::BulkStore { .. } => {
                self.access(state, at, last(at)?, false, Pending::Group(Class::BulkStore, None))?;
                self.output_access(state, at.role, (at.id, at.op))?;
            }
            NvOp::CpAsync { .. } => self.access(state, at, last(at)?, true, Pending::Group(Class::CpAsync, None))?,
            NvOp::Wgmma => self.group_mma(state, at)?,
            NvOp::Commit { group, .. } => self.commit(state, at, group.class()),
            NvOp::WaitGroup { group, n, read } => self.wait_group(state, at.role, group.class(), (n, read)),
            NvOp::BarrierSync { .. } => return self.sync(state, at),
            NvOp::BarrierArrive { .. } | NvOp::ClusterArrive => self.arrive_apart(state, at, nv)?,
            NvOp::ClusterWait => return self.wait_met(state, at),
            NvOp::MbarrierInval => self.inval(state, at)?,
            NvOp::TryWait | NvOp::TestWait => self.poll(state, at)?,
            NvOp::SequenceStore | NvOp::SequenceWait => {
                let title = "the ordering by a counter in shared memory could not be verified";
                return refuse(Error::new(Code::NotShown, at.op.loc, title).help("use an mbarrier"));
            }
            NvOp::MbarrierAt => self.picked(state, at)?,
            NvOp::MbarrierAlloc { .. }
            | NvOp::MbarrierInit { .. }
            | NvOp::SequenceInit
            | NvOp::FenceMbarrierInit
            | NvOp::WgmmaFence
            | NvOp::ClusterRank
            // The lanes of a warp count as one thread of control here.
            | NvOp::WarpSync
            | NvOp::SetMaxNReg { .. } => {}
        }
        Ok(None)
    }

    fn amd(&mut self, state: &mut State, at: At<'k>, amd: AmdOp) -> Waits {
        match amd {
            AmdOp::Waitcnt { vmcnt, lgkmcnt } => {
                self.wait_group(state, at.role, Class::Vmcnt, (vmcnt, false));
                self.wait_group(state, at.role, Class::Lgkmcnt, (lgkmcnt, false));
            }
            AmdOp::BufferLoadLds { .. } => {
                self.access(state, at, last(at)?, true, Pending::Group(Class::Vmcnt, None))?;
                // A wave counts single operations, so that each is a group of its own.
                self.commit(state, at, Class::Vmcnt);
            }
            AmdOp::DsRead { .. } | AmdOp::DsWrite { .. } => {
                let write = matches!(amd, AmdOp::DsWrite { .. });
                self.access(state, at, last(at)?, write, Pending::Group(Class::Lgkmcnt, None))?;
                self.commit(state, at, Class::Lgkmcnt);
            }
            AmdOp::Barrier => return self.sync(state, at),
            AmdOp::Mfma | AmdOp::SetPrio { .. } => {}
        }
        Ok(None)
    }

    /// Adds arrivals or bytes to the incomplete phase of a barrier.
    fn arrive(&mut self, state: &mut State, at: At<'k>, brings: Brings) -> Result<(), Fault> {
        let Some(named) = at.op.args.first().and_then(|v| self.objects.barrier(*v)) else {
            return refuse(self.several(at));
        };
        let (barrier, time) = self.current(state, at, named, brings)?;
        // An arrival releases everything that its role has observed, with its own complete accesses: a wait for the
        // phase acquires it. An `expect_tx` alone orders nothing.
        if brings.arrivals > 0 {
            state.machine.send((barrier, time), |r| r.known & bit(at.role) != 0);
        }
        self.bring(state, at, (barrier, time), brings)?;
        self.mark(state, at, Mark::Phase(barrier, time));
        Ok(())
    }

    /// The phase of a barrier in which an arrival is counted now: the completion of the previous phase must happen before it.
    fn current(&mut self, state: &mut State, at: At<'_>, named: Named, brings: Brings) -> Result<(usize, i64), Fault> {
        let barrier = named.object;
        let (n, name) = (self.objects.barriers[barrier].n, self.objects.barriers[barrier].name.clone());
        self.alive(state, at, barrier)?;
        let slot = self.slot(state, at, (named, n), (barrier, &name))?;
        // An arrival counts in the first phase that is not complete. If the role has not observed that the phase before
        // it completed, another order of steps could count the arrival in that one (theorem 4), so it is refused.
        let before = state.machine.last(barrier, slot, n);
        if !state.machine.knows(at.role, barrier, before) {
            return refuse(self.unordered(at, &name, brings.copied > 0));
        }
        Ok((barrier, before + n))
    }

    fn bring(
        &mut self,
        state: &mut State,
        at: At<'_>,
        (barrier, time): (usize, i64),
        brings: Brings,
    ) -> Result<(), Fault> {
        let phase = state.machine.open(barrier, time);
        // Saturated sums stay too large and are refused as such.
        phase.arrived = phase.arrived.saturating_add(brings.arrivals);
        phase.expected = phase.expected.saturating_add(brings.expected);
        phase.copied = phase.copied.saturating_add(brings.copied);
        if phase.expected > MAX_COUNT.into() {
            let expected = phase.expected;
            return refuse(self.too_many_bytes(at, barrier, expected));
        }
        if brings.arrivals > 0 {
            phase.last = Some(at.id);
            state.machine.covers(at.role, (barrier, time));
        } else if brings.expected > 0 {
            state.machine.announced(at.role, at.id, (barrier, time));
        }
        if self.objects.barriers[barrier].kind == Kind::Mbarrier {
            // The phase cannot complete without these arrivals and copied bytes; an `expect_tx` alone does not complete it.
            // Whoever observes this phase complete knows that this use is over, and may invalidate the barrier.
            let told = (brings.arrivals > 0 || brings.copied > 0).then_some(time);
            state.machine.touched(at.role, at.id, barrier, told);
        }
        match state.machine.complete(&self.objects, barrier, time) {
            Ok(_) => Ok(()),
            Err(wrong) => refuse(self.wrong(at, barrier, &wrong)),
        }
    }

    /// Arrives when the operations of a class that the role has started before are complete.
    pub(super) fn arrive_after(
        &mut self,
        state: &mut State,
        at: At<'k>,
        class: Class,
        (noinc, arrivals): (bool, u32),
    ) -> Result<(), Fault> {
        let Some(named) = at.op.args.first().and_then(|v| self.objects.barrier(*v)) else {
            return refuse(self.several(at));
        };
        let to = self.current(state, at, named, Brings::default())?;
        let role = at.role;
        let copies = move |r: &Record| {
            matches!(r.what, What::Access { pending: Pending::Group(c, _), .. } if c == class) && r.role == role
        };
        // This arrival publishes only these operations, not the other accesses of the threads. MMAs on tensor memory are started after the
        // accesses of other roles that theirs has observed, and so complete after them.
        let before = |r: &Record| class == Class::Tcgen05 && r.role != role || !matches!(r.what, What::Access { .. });
        let order = |r: &Record| before(r) && r.known & bit(role) != 0;
        // A commit covers also what earlier ones have covered.
        let committed =
            |r: &Record| class == Class::Tcgen05 && r.role == role && self.objects.units.is_tracked(&r.what);
        // The phase will carry the copies themselves, although their role has not observed them: they are complete when
        // it completes.
        state.machine.send(to, |r| order(r) || copies(r) || committed(r));
        state.machine.attach(to, copies);
        // With `noinc` the arrival is one that the barrier counts. Otherwise the count is raised first, by as much as
        // arrives later: the phase neither comes nearer to its end nor may it end before an arrival that has observed
        // this.
        if noinc {
            return self.bring(state, at, to, Brings { arrivals, ..Brings::default() });
        }
        let phase = state.machine.open(to.0, to.1);
        // The arrivals that come later are counted as outstanding until the end of the phase, which is the worst case
        // for the count.
        phase.raised = phase.raised.saturating_add(arrivals);
        let counted = self.objects.barriers[to.0].count.saturating_add(phase.raised);
        if counted > MAX_COUNT {
            return refuse(self.raised_too_far(at, to.0, counted));
        }
        state.machine.announced(role, at.id, to);
        state.machine.touched(role, at.id, to.0, None);
        Ok(())
    }

    fn bulk_load(&mut self, state: &mut State, at: At<'k>, bytes: u32) -> Result<(), Fault> {
        let [.., region, bar] = at.op.args[..] else { return defect(at.id, "a bulk copy without its barrier") };
        let Some(named) = self.objects.barrier(bar) else { return refuse(self.several(at)) };
        let brings = Brings { copied: u64::from(bytes), ..Brings::default() };
        let (barrier, time) = self.current(state, at, named, brings)?;
        // In flight until the phase completes, and observed by no role until it waits for that.
        self.access(state, at, region, true, Pending::Phase(barrier, time))?;
        // The bytes arrive after the copy was issued, and so after every phase that its role had observed by then.
        let role = at.role;
        let seen = |r: &Record| !matches!(r.what, What::Access { .. }) && r.known & bit(role) != 0;
        state.machine.send((barrier, time), seen);
        self.bring(state, at, (barrier, time), brings)
    }

    /// A wait for the phase of an arrival, by its state.
    fn wait_state(&mut self, state: &mut State, at: At<'k>) -> Waits {
        let mark = at.op.args.get(1).and_then(|v| state.roles[at.role].marks.get(v)).copied();
        let here = state.roles[at.role].env.serial;
        match mark {
            Some((Mark::Phase(barrier, time), serial)) if serial == here => self.wait(state, at, barrier, time),
            Some(_) | None => refuse(
                Error::new(
                    Code::NotShown,
                    at.op.loc,
                    "it could not be shown which phase this waits for: the arrival was in another iteration",
                )
                .help("wait in the iteration in which the role arrives, or for a parity"),
            ),
        }
    }

    fn wait(&mut self, state: &mut State, at: At<'k>, barrier: usize, time: i64) -> Waits {
        // Three cases: the phase is not complete, and the role waits; it is the last complete one; or a later one is
        // complete too, so that another order of steps may let this test pass or not.
        let n = self.objects.barriers[barrier].n;
        let last = state.machine.last(barrier, time.rem_euclid(n), n);
        if last < time {
            return Ok(Some(Wait { role: at.role, op: at.id, on: On::Phase(barrier, time) }));
        }
        if last > time {
            return refuse(self.lapped(at, barrier));
        }
        self.pass(state, at, barrier, time);
        Ok(None)
    }

    pub(super) fn pass(&mut self, state: &mut State, at: At<'k>, barrier: usize, time: i64) {
        state.machine.learn(at.role, (barrier, time));
        state.machine.passed(at.role, at.id, (barrier, time));
        if self.objects.barriers[barrier].kind == Kind::Mbarrier {
            state.machine.touched(at.role, at.id, barrier, None);
        }
    }

    /// The number of arrivals of a role at a barrier without an mbarrier word.
    fn threads_of(&self, role: usize, barrier: usize) -> u32 {
        let own = &self.objects.barriers[barrier];
        match (own.kind, self.kernel.roles.get(role)) {
            // All threads of the role arrive, since the role is one thread of control here.
            (Kind::Named, Some(decl)) => decl.warps.saturating_mul(32),
            (Kind::Named, None) => own.count,
            (Kind::Everybody | Kind::Mbarrier, _) => 1,
        }
    }

    /// Arrives at a barrier without an mbarrier word: named, cluster or wave barrier.
    fn arrive_wordless(&mut self, state: &mut State, at: At<'k>, barrier: usize) -> Result<i64, Fault> {
        let brings = Brings { arrivals: self.threads_of(at.role, barrier), ..Brings::default() };
        let to = self.current(state, at, Named::only(barrier), brings)?;
        state.machine.send(to, |r| r.known & bit(at.role) != 0);
        self.bring(state, at, to, brings)?;
        Ok(to.1)
    }

    /// An MMA of warpgroups reads operands in shared memory; operands in registers and accumulators are values.
    fn group_mma(&mut self, state: &mut State, at: At<'k>) -> Result<(), Fault> {
        for operand in &at.op.args {
            if !matches!(self.kernel.ty(*operand), Ty::Tile(..) | Ty::Compute(..)) {
                self.access(state, at, *operand, false, Pending::Group(Class::Wgmma, None))?;
            }
        }
        Ok(())
    }

    /// Arrives at a barrier without an mbarrier word, without waiting.
    fn arrive_apart(&mut self, state: &mut State, at: At<'k>, nv: NvOp) -> Result<(), Fault> {
        let Some(barrier) = self.objects.wordless(&at.op.kind) else {
            return defect(at.id, "an arrival at no barrier");
        };
        let time = self.arrive_wordless(state, at, barrier)?;
        if nv == NvOp::ClusterArrive {
            state.machine.joined.insert(at.role, (at.id, barrier, time));
        }
        Ok(())
    }

    fn sync(&mut self, state: &mut State, at: At<'k>) -> Waits {
        let Some(barrier) = self.objects.wordless(&at.op.kind) else { return defect(at.id, "a wait at no barrier") };
        // The operation is taken up again until all have arrived. Its arrival counts once.
        if !state.machine.joined.contains_key(&at.role) {
            let time = self.arrive_wordless(state, at, barrier)?;
            state.machine.joined.insert(at.role, (at.id, barrier, time));
        }
        self.wait_met(state, at)
    }

    fn wait_met(&mut self, state: &mut State, at: At<'k>) -> Waits {
        let Some((_, barrier, time)) = state.machine.joined.get(&at.role).copied() else {
            let title = "this role waits at the cluster barrier without having arrived there".to_owned();
            return refuse(Error::new(Code::Participants, at.op.loc, title).help("`ttg.nv.cluster.arrive` first"));
        };
        let waits = self.wait(state, at, barrier, time)?;
        if waits.is_none() {
            state.machine.joined.remove(&at.role);
        }
        Ok(waits)
    }

    fn commit(&mut self, state: &mut State, at: At<'_>, class: Class) {
        let n = state.machine.commit(at.role, class);
        self.mark(state, at, Mark::Group(class, n));
    }

    fn mark(&self, state: &mut State, at: At<'_>, mark: Mark) {
        let serial = state.roles[at.role].env.serial;
        if let Some(result) = at.op.results.first() {
            state.roles[at.role].marks.insert(*result, (mark, serial));
        }
    }

    fn wait_group(&mut self, state: &mut State, role: usize, class: Class, (n, read): (u32, bool)) {
        // Groups complete in order: all but the n newest ones (theorem 9).
        let upto = state.machine.issued(role, class) - i64::from(n);
        state.machine.wait_group(&self.objects, role, (class, upto, read));
    }

    fn wait_token(&mut self, state: &mut State, at: At<'_>) -> Result<(), Fault> {
        let here = state.roles[at.role].env.serial;
        let mark = at.op.args.first().and_then(|v| state.roles[at.role].marks.get(v)).copied();
        // A token of another iteration is another group of the same name. Numbers of groups are relative to this
        // iteration only.
        let Some((Mark::Group(class, n), _)) = mark.filter(|(_, serial)| *serial == here) else {
            let title = "it could not be shown which group this waits for: it was committed in another iteration";
            return refuse(
                Error::new(Code::NotShown, at.op.loc, title)
                    .help("wait in the iteration in which it is committed, or by number of groups (`wait_group`)"),
            );
        };
        if state.machine.waited(at.role, class) > n {
            let title =
                format!("this group of `{class}` is older than one that was waited for before: the wait has no effect");
            return refuse(
                Error::new(Code::GroupOrder, at.op.loc, title)
                    .help("wait for groups in the order in which they were committed"),
            );
        }
        // A token of bulk stores shows that they have read shared memory, not that they have written the output.
        state.machine.wait_group(&self.objects, at.role, (class, n, true));
        // Waiting for an older token has no effect: its group is complete with the younger one.
        state.machine.note_waited(at.role, class, n);
        Ok(())
    }
}

/// The last operand, the region of a copy.
fn last(at: At<'_>) -> Result<Value, Fault> {
    at.op.args.last().copied().map_or_else(|| defect(at.id, "a copy without operands"), Ok)
}
