//! A machine that runs barrier-level programs with numbers: threads, copies and groups that complete when they like.
//!
//! It knows nothing of the verifier. Barriers have a phase, a count and signed bytes, as PTX describes them; a wait looks at
//! the parity and at nothing else. An access lasts for a while, so that what is not ordered overlaps in some run.

use crate::tensor::Unit;
use std::collections::{BTreeMap, BTreeSet};
use titan_core::ir::{Block, Class, Kernel, NvOp, Op, OpKind, RegionOp, Tcgen05Op, TtgOp, Value};

/// Numbers that look random.
#[derive(Clone, Debug)]
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// When asynchronous work completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    Early,
    Late,
    Any,
}

#[derive(Clone, Debug)]
pub(crate) enum Frame {
    Block(Block, usize),
    Loop { block: Block, at: usize, index: i64, hi: i64, step: i64, args: Vec<Value>, results: Vec<Value> },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Thread {
    pub(crate) frames: Vec<Frame>,
    pub(crate) env: BTreeMap<Value, i64>,
    /// Accesses that last until the next step.
    pub(crate) during: Vec<usize>,
    /// Barrier and phase that are waited for.
    pub(crate) met: Option<(usize, i64)>,
    pub(crate) open: BTreeMap<Class, Vec<usize>>,
    pub(crate) groups: BTreeMap<Class, Vec<Vec<usize>>>,
    /// Accesses of others to tensor memory that its next access may overlap: those since its last fence.
    pub(crate) around: Vec<Access>,
    pub(crate) done: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Access {
    pub(crate) lo: u64,
    pub(crate) hi: u64,
    pub(crate) write: bool,
    pub(crate) thread: usize,
    pub(crate) class: Option<Class>,
    /// Whether it is a load or store of tensor memory.
    pub(crate) moves: bool,
    /// Its thread has waited for it, but others may still see it: a fence of tensor memory is missing.
    pub(crate) lingers: bool,
    /// A barrier will tell when it is over.
    pub(crate) told: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    pub(crate) phase: i64,
    pub(crate) count: i64,
    pub(crate) pending: i64,
    pub(crate) tx: i64,
    pub(crate) gone: bool,
}

/// What begins an access.
#[derive(Clone, Debug, Default)]
pub(crate) struct By {
    pub(crate) class: Option<Class>,
    pub(crate) moves: bool,
    /// Accesses that come before it in any case.
    pub(crate) earlier: BTreeSet<usize>,
}

/// Operations in flight.
#[derive(Clone, Debug)]
pub(crate) enum Flight {
    /// A copy that brings bytes to a barrier.
    Tx { access: usize, barrier: usize, bytes: i64 },
    /// Arrivals that wait for these accesses.
    Arrivals { of: BTreeSet<usize>, barrier: usize, n: i64 },
    /// Accesses of an operation on tensor memory.
    Tensor { of: BTreeSet<usize>, thread: usize, unit: Unit },
}

pub(crate) struct Run<'k> {
    pub(crate) kernel: &'k Kernel,
    pub(crate) threads: Vec<Thread>,
    pub(crate) accesses: BTreeMap<usize, Access>,
    next: usize,
    pub(crate) barriers: Vec<Barrier>,
    pub(crate) of_alloc: BTreeMap<Value, usize>,
    pub(crate) named: BTreeMap<i64, usize>,
    pub(crate) flights: Vec<Flight>,
    /// Columns that were freed.
    pub(crate) freed: BTreeSet<Value>,
    /// What inputs say: a bit for each index; and how long they are.
    pub(crate) flags: u64,
    pub(crate) extent: i64,
}

pub(crate) type Fault = String;

/// A loop whose step is zero: whether loops end is not the verifier's to show.
pub(crate) const ENDLESS: &str = "it does not end";

impl<'k> Run<'k> {
    /// A run of a kernel whose scalar arguments are `n` and `m`, and whose inputs hold these bits.
    pub(crate) fn new(kernel: &'k Kernel, n: i64, m: i64, flags: u64) -> Result<Self, Fault> {
        let mut run = Run {
            kernel,
            threads: Vec::new(),
            accesses: BTreeMap::new(),
            next: 0,
            barriers: Vec::new(),
            of_alloc: BTreeMap::new(),
            named: BTreeMap::new(),
            flights: Vec::new(),
            freed: BTreeSet::new(),
            flags,
            extent: n,
        };
        let mut env = BTreeMap::new();
        for (i, param) in kernel.sig.params.iter().enumerate() {
            env.insert(kernel.param(i), if param.name == "m" { m } else { n });
        }
        let top = &kernel.block(kernel.body).ops;
        let roles = top.iter().find(|id| kernel.op(**id).kind == OpKind::Ttg(TtgOp::Roles)).copied();
        let Some(roles) = roles else {
            run.threads.push(Thread { frames: vec![Frame::Block(kernel.body, 0)], env, ..Thread::default() });
            return Ok(run);
        };
        run.threads.push(Thread { env, ..Thread::default() });
        for id in top.iter().take_while(|id| **id != roles) {
            run.op(0, kernel.op(*id))?;
        }
        let env = std::mem::take(&mut run.threads[0].env);
        run.threads = kernel
            .op(roles)
            .regions
            .iter()
            .map(|b| Thread { frames: vec![Frame::Block(*b, 0)], env: env.clone(), ..Thread::default() })
            .collect();
        Ok(run)
    }

    /// Runs to the end.
    pub(crate) fn all(&mut self, rng: &mut Rng, pace: Pace) -> Result<(), Fault> {
        for _ in 0..40_000 {
            if self.threads.iter().all(|t| t.done) {
                // An arrival that waits for nothing any more has no effect.
                let waits = |f: &Flight| match f {
                    Flight::Arrivals { of, .. } => of.iter().any(|a| self.accesses.contains_key(a)),
                    Flight::Tx { .. } | Flight::Tensor { .. } => true,
                };
                return match (!self.flights.iter().any(waits), self.accesses.values().all(|a| a.lingers)) {
                    (true, true) => Ok(()),
                    _ => Err("something is in flight at the end".to_owned()),
                };
            }
            let asynchronous = self.ready();
            let order = rng.below(self.threads.len());
            let first = match pace {
                Pace::Early => true,
                Pace::Late => false,
                Pace::Any => rng.below(3) == 0,
            };
            if first && !asynchronous.is_empty() {
                self.finish(asynchronous[rng.below(asynchronous.len())])?;
                continue;
            }
            let mut moved = false;
            for i in 0..self.threads.len() {
                let thread = (order + i) % self.threads.len();
                if self.step(thread)? {
                    moved = true;
                    break;
                }
            }
            if !moved {
                let Some(any) = asynchronous.get(rng.below(asynchronous.len().max(1))).copied() else {
                    return Err("deadlock".to_owned());
                };
                self.finish(any)?;
            }
        }
        Err(ENDLESS.to_owned())
    }

    /// Work that may complete now: a flight, or the oldest access of a class.
    fn ready(&self) -> Vec<Ready> {
        let flight = |(i, f): (usize, &Flight)| match f {
            Flight::Tx { .. } => Some(Ready::Flight(i)),
            Flight::Arrivals { of, .. } => {
                of.iter().all(|a| !self.accesses.contains_key(a)).then_some(Ready::Flight(i))
            }
            Flight::Tensor { thread, unit, .. } => self.is_first(i, *thread, *unit).then_some(Ready::Flight(i)),
        };
        let mut ready: Vec<Ready> = self.flights.iter().enumerate().filter_map(flight).collect();
        for (i, thread) in self.threads.iter().enumerate() {
            for (class, groups) in &thread.groups {
                ready.extend(groups.iter().find(|g| !g.is_empty()).map(|_| Ready::Group(i, *class)));
            }
            for accesses in thread.open.values() {
                ready.extend(accesses.iter().filter(|a| self.accesses.contains_key(a)).map(|a| Ready::Open(*a)));
            }
        }
        ready
    }

    fn finish(&mut self, what: Ready) -> Result<(), Fault> {
        match what {
            Ready::Flight(i) => match self.flights.remove(i) {
                Flight::Tx { access, barrier, bytes } => {
                    self.accesses.remove(&access);
                    self.barriers[barrier].tx -= bytes;
                    self.complete(barrier)
                }
                Flight::Arrivals { barrier, n, .. } => self.arrive(barrier, n),
                Flight::Tensor { of, .. } => {
                    self.accesses.retain(|id, _| !of.contains(id));
                    Ok(())
                }
            },
            Ready::Group(thread, class) => {
                let group =
                    self.threads[thread].groups.get_mut(&class).and_then(|gs| gs.iter_mut().find(|g| !g.is_empty()));
                for access in group.map(std::mem::take).unwrap_or_default() {
                    self.accesses.remove(&access);
                }
                Ok(())
            }
            Ready::Open(access) => {
                self.accesses.remove(&access);
                Ok(())
            }
        }
    }

    pub(crate) fn arrive(&mut self, barrier: usize, n: i64) -> Result<(), Fault> {
        let b = &mut self.barriers[barrier];
        if b.gone {
            return Err("an arrival at a barrier that is gone".to_owned());
        }
        b.pending -= n;
        if b.pending < 0 {
            return Err("more arrivals than a barrier counts".to_owned());
        }
        self.complete(barrier)
    }

    pub(crate) fn complete(&mut self, barrier: usize) -> Result<(), Fault> {
        let b = &mut self.barriers[barrier];
        if b.pending == 0 && b.tx == 0 {
            b.phase += 1;
            b.pending = b.count;
        }
        Ok(())
    }

    pub(crate) fn begin(
        &mut self,
        thread: usize,
        region: Value,
        write: bool,
        class: Option<Class>,
    ) -> Result<usize, Fault> {
        self.begin_by(thread, region, write, &By { class, ..By::default() })
    }

    pub(crate) fn begin_by(&mut self, thread: usize, region: Value, write: bool, by: &By) -> Result<usize, Fault> {
        let (lo, hi) = self.span(thread, region)?;
        let By { class, moves, .. } = *by;
        let new = Access { lo, hi, write, thread, class, moves, lingers: false, told: false };
        let own = |a: &Access| a.class == Some(Class::Lgkmcnt) && class == a.class || a.lingers;
        let local = |id: &usize, a: &Access| a.thread == thread && own(a) || by.earlier.contains(id);
        if self.is_columns(region) {
            self.overlaps_others(thread, region, &new)?;
        }
        if self.accesses.iter().any(|(id, a)| a.lo < hi && lo < a.hi && (a.write || write) && !local(id, a)) {
            return Err("a race".to_owned());
        }
        self.accesses.insert(self.next, new);
        self.next += 1;
        Ok(self.next - 1)
    }

    fn span(&self, thread: usize, region: Value) -> Result<(u64, u64), Fault> {
        let op = self.kernel.def_op(region).ok_or("a region")?;
        match op.kind {
            OpKind::Region(RegionOp::Place { offset, bytes, .. }) => {
                Ok((u64::from(offset), u64::from(offset) + u64::from(bytes)))
            }
            // Far from shared memory.
            OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Alloc { .. })) => {
                let at = (1 << 40) + region.index() as u64;
                Ok((at, at + 1))
            }
            _ => {
                let (lo, hi) = self.span(thread, op.args[0])?;
                let parts = match self.kernel.def_op(op.args[0]).map(|o| o.kind.clone()) {
                    Some(OpKind::Region(RegionOp::Place { parts, .. })) => u64::from(parts),
                    _ => 1,
                };
                let i = u64::try_from(self.get(thread, op.args[1])?).map_err(|_| "an index below 0")?;
                if i >= parts {
                    return Err("an index beyond the parts".to_owned());
                }
                let part = (hi - lo) / parts;
                Ok((lo + i * part, lo + (i + 1) * part))
            }
        }
    }

    pub(crate) fn get(&self, thread: usize, value: Value) -> Result<i64, Fault> {
        self.threads[thread].env.get(&value).copied().ok_or_else(|| "a value that is not known".to_owned())
    }

    /// The barrier that a value names: its number, or that of the first of several.
    pub(crate) fn barrier(&self, thread: usize, value: Value) -> Result<usize, Fault> {
        if let Some(first) = self.of_alloc.get(&value) {
            return Ok(*first);
        }
        let op = self.kernel.def_op(value).ok_or("a barrier")?;
        let first = *self.of_alloc.get(&op.args[0]).ok_or("a barrier that is made")?;
        let index = usize::try_from(self.get(thread, op.args[1])?).map_err(|_| "an index below 0")?;
        if first + index >= self.all_of(op.args[0])?.end {
            return Err("an index beyond the barriers".to_owned());
        }
        Ok(first + index)
    }

    /// One step of a thread; whether it could be taken.
    fn step(&mut self, thread: usize) -> Result<bool, Fault> {
        if self.threads[thread].done {
            return Ok(false);
        }
        let over = std::mem::take(&mut self.threads[thread].during);
        if !over.is_empty() {
            self.accesses.retain(|id, _| !over.contains(id));
            return Ok(true);
        }
        let Some(frame) = self.threads[thread].frames.last().cloned() else {
            self.threads[thread].done = true;
            let mine = |a: &Access| a.thread == thread && a.class.is_some() && !a.told;
            if self.accesses.values().any(mine) {
                return Err("a thread ends with work in flight".to_owned());
            }
            return Ok(true);
        };
        let (Frame::Block(block, at) | Frame::Loop { block, at, .. }) = frame;
        let op = self.kernel.op(self.kernel.block(block).ops[at]);
        match &op.kind {
            OpKind::For(_) => self.enter(thread, op)?,
            OpKind::If => {
                let arm = op.regions[usize::from(self.get(thread, op.args[0])? == 0)];
                self.threads[thread].frames.push(Frame::Block(arm, 0));
            }
            OpKind::Yield => {
                self.threads[thread].frames.pop();
                self.advance(thread);
            }
            OpKind::Continue(0) => self.again(thread, op)?,
            OpKind::Return => self.threads[thread].frames.clear(),
            _ => {
                if !self.op(thread, op)? {
                    return Ok(false);
                }
                self.advance(thread);
            }
        }
        Ok(true)
    }

    fn advance(&mut self, thread: usize) {
        if let Some(Frame::Block(_, at) | Frame::Loop { at, .. }) = self.threads[thread].frames.last_mut() {
            *at += 1;
        }
    }

    fn enter(&mut self, thread: usize, op: &Op) -> Result<(), Fault> {
        let [lo, hi, step] = [0, 1, 2].map(|i| self.get(thread, op.args[i]));
        let (lo, hi, step) = (lo?, hi?, step?);
        let body = op.regions[0];
        let args = self.kernel.block(body).args.clone();
        for (arg, init) in args.iter().skip(1).zip(op.args.iter().skip(3)) {
            let value = self.get(thread, *init)?;
            self.threads[thread].env.insert(*arg, value);
        }
        let frame = Frame::Loop { block: body, at: 0, index: lo, hi, step, args, results: op.results.clone() };
        self.threads[thread].frames.push(frame);
        self.head(thread);
        Ok(())
    }

    /// At the head of a loop: an iteration, or its end.
    fn head(&mut self, thread: usize) {
        let Some(Frame::Loop { index, hi, args, results, .. }) = self.threads[thread].frames.last().cloned() else {
            return;
        };
        if index < hi {
            self.threads[thread].env.insert(args[0], index);
            return;
        }
        self.threads[thread].frames.pop();
        for (arg, result) in args.iter().skip(1).zip(&results) {
            let value = self.threads[thread].env.get(arg).copied().unwrap_or(0);
            self.threads[thread].env.insert(*result, value);
        }
        self.advance(thread);
    }

    fn again(&mut self, thread: usize, op: &Op) -> Result<(), Fault> {
        let next: Vec<i64> = op.args.iter().map(|v| self.get(thread, *v)).collect::<Result<_, _>>()?;
        if let Some(Frame::Loop { at, index, step, args, .. }) = self.threads[thread].frames.last_mut() {
            (*at, *index) = (0, *index + *step);
            let args = args.clone();
            for (arg, value) in args.iter().skip(1).zip(next) {
                self.threads[thread].env.insert(*arg, value);
            }
        }
        self.head(thread);
        Ok(())
    }

    /// An operation without blocks; whether it could be done.
    pub(crate) fn op(&mut self, thread: usize, op: &Op) -> Result<bool, Fault> {
        match &op.kind {
            OpKind::Nv(nv) => return self.nv(thread, op, *nv),
            OpKind::Amd(amd) => return self.amd(thread, op, *amd),
            OpKind::Region(RegionOp::Read | RegionOp::Write) => {
                let access = self.begin(thread, op.args[0], op.kind == OpKind::Region(RegionOp::Write), None)?;
                self.threads[thread].during.push(access);
            }
            OpKind::Region(RegionOp::Wait) => {
                let id = self.get(thread, op.args[0])?;
                let class = match self.kernel.ty(op.args[0]) {
                    titan_core::ir::Ty::Barrier(titan_core::ir::BarrierTy::Vtok(class, _)) => class,
                    _ => return Err("a token".to_owned()),
                };
                let groups = self.threads[thread].groups.entry(class).or_default();
                return Ok(groups.iter().take(usize::try_from(id).unwrap_or(0) + 1).all(Vec::is_empty));
            }
            _ => self.scalar(thread, op)?,
        }
        Ok(true)
    }
}

#[derive(Clone, Copy, Debug)]
enum Ready {
    Flight(usize),
    Group(usize, Class),
    Open(usize),
}
