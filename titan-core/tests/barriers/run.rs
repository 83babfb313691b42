//! A machine that runs barrier-level programs with numbers: threads, copies and groups that complete when they like.
//!
//! It knows nothing of the verifier. Barriers have a phase, a count and signed bytes, as PTX describes them; a wait looks at
//! the parity and at nothing else. An access lasts for a while, so that what is not ordered overlaps in some run.

use std::collections::{BTreeMap, BTreeSet};
use titan_core::ir::{
    AmdOp, BinOp, Block, Class, Const, Kernel, NvOp, Op, OpKind, Pred, RegionOp, TtgOp, UnOp, Value,
};

/// Numbers that look random.
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// When asynchronous work completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    Early,
    Late,
    Any,
}

#[derive(Clone, Debug)]
enum Frame {
    Block(Block, usize),
    Loop { block: Block, at: usize, index: i64, hi: i64, step: i64, args: Vec<Value>, results: Vec<Value> },
}

#[derive(Clone, Debug, Default)]
struct Thread {
    frames: Vec<Frame>,
    env: BTreeMap<Value, i64>,
    /// Accesses that last until the next step.
    during: Vec<usize>,
    /// Barrier and phase that are waited for.
    met: Option<(usize, i64)>,
    open: BTreeMap<Class, Vec<usize>>,
    groups: BTreeMap<Class, Vec<Vec<usize>>>,
    done: bool,
}

#[derive(Clone, Debug)]
struct Access {
    lo: u64,
    hi: u64,
    write: bool,
    thread: usize,
    class: Option<Class>,
    /// A barrier will tell when it is over.
    told: bool,
}

#[derive(Clone, Debug)]
struct Barrier {
    phase: i64,
    count: i64,
    pending: i64,
    tx: i64,
    gone: bool,
}

/// Work under way.
#[derive(Clone, Debug)]
enum Flight {
    /// A copy that brings bytes to a barrier.
    Tx { access: usize, barrier: usize, bytes: i64 },
    /// Arrivals that wait for these accesses.
    Arrivals { of: BTreeSet<usize>, barrier: usize, n: i64 },
}

pub struct Run<'k> {
    kernel: &'k Kernel,
    threads: Vec<Thread>,
    accesses: BTreeMap<usize, Access>,
    next: usize,
    barriers: Vec<Barrier>,
    of_alloc: BTreeMap<Value, usize>,
    named: BTreeMap<i64, usize>,
    flights: Vec<Flight>,
}

type Fault = String;

/// A loop whose step is zero: whether loops end is not the verifier's to show.
pub const ENDLESS: &str = "it does not end";

impl<'k> Run<'k> {
    /// A run of a kernel whose scalar arguments are `n` and `m`.
    pub fn new(kernel: &'k Kernel, n: i64, m: i64) -> Result<Self, Fault> {
        let mut run = Run {
            kernel, threads: Vec::new(), accesses: BTreeMap::new(), next: 0, barriers: Vec::new(), of_alloc: BTreeMap::new(),
            named: BTreeMap::new(), flights: Vec::new(),
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
        run.threads = kernel.op(roles).regions.iter()
            .map(|b| Thread { frames: vec![Frame::Block(*b, 0)], env: env.clone(), ..Thread::default() }).collect();
        Ok(run)
    }

    /// Runs to the end.
    pub fn all(&mut self, rng: &mut Rng, pace: Pace) -> Result<(), Fault> {
        for _ in 0..40_000 {
            if self.threads.iter().all(|t| t.done) {
                return match (self.flights.is_empty(), self.accesses.is_empty()) {
                    (true, true) => Ok(()),
                    _ => Err("something is under way at the end".to_owned()),
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
                    return Err("nobody can go on".to_owned());
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
            Flight::Arrivals { of, .. } => of.iter().all(|a| !self.accesses.contains_key(a)).then_some(Ready::Flight(i)),
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
            },
            Ready::Group(thread, class) => {
                let group = self.threads[thread].groups.get_mut(&class).and_then(|gs| gs.iter_mut().find(|g| !g.is_empty()));
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

    fn arrive(&mut self, barrier: usize, n: i64) -> Result<(), Fault> {
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

    fn complete(&mut self, barrier: usize) -> Result<(), Fault> {
        let b = &mut self.barriers[barrier];
        if b.pending == 0 && b.tx == 0 {
            b.phase += 1;
            b.pending = b.count;
        }
        Ok(())
    }

    fn begin(&mut self, thread: usize, region: Value, write: bool, class: Option<Class>) -> Result<usize, Fault> {
        let (lo, hi) = self.span(thread, region)?;
        let new = Access { lo, hi, write, thread, class, told: false };
        let local = |a: &Access| a.thread == thread && a.class == Some(Class::Lgkmcnt) && class == a.class;
        if self.accesses.values().any(|a| a.lo < hi && lo < a.hi && (a.write || write) && !local(a)) {
            return Err("a race".to_owned());
        }
        self.accesses.insert(self.next, new);
        self.next += 1;
        Ok(self.next - 1)
    }

    fn span(&self, thread: usize, region: Value) -> Result<(u64, u64), Fault> {
        let op = self.kernel.def_op(region).ok_or("a region")?;
        match op.kind {
            OpKind::Region(RegionOp::Place { offset, bytes, .. }) => Ok((u64::from(offset), u64::from(offset) + u64::from(bytes))),
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

    fn get(&self, thread: usize, value: Value) -> Result<i64, Fault> {
        self.threads[thread].env.get(&value).copied().ok_or_else(|| "a value that is not known".to_owned())
    }

    /// The barrier that a value names: its number, or that of the first of several.
    fn barrier(&self, thread: usize, value: Value) -> Result<usize, Fault> {
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
            over.iter().for_each(|a| drop(self.accesses.remove(a)));
            return Ok(true);
        }
        let Some(frame) = self.threads[thread].frames.last().cloned() else {
            self.threads[thread].done = true;
            let mine = |a: &Access| a.thread == thread && a.class.is_some() && !a.told;
            if self.accesses.values().any(mine) {
                return Err("a thread ends with work under way".to_owned());
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
        let Some(Frame::Loop { index, hi, args, results, .. }) = self.threads[thread].frames.last().cloned() else { return };
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
    fn op(&mut self, thread: usize, op: &Op) -> Result<bool, Fault> {
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
                    titan_core::ir::Ty::Raw(titan_core::ir::Raw::Vtok(class, _)) => class,
                    _ => return Err("a token".to_owned()),
                };
                let groups = self.threads[thread].groups.entry(class).or_default();
                return Ok(groups.iter().take(usize::try_from(id).unwrap_or(0) + 1).all(Vec::is_empty));
            }
            _ => self.scalar(thread, op)?,
        }
        Ok(true)
    }

    fn scalar(&mut self, thread: usize, op: &Op) -> Result<(), Fault> {
        let get = |i: usize| self.get(thread, op.args[i]);
        let value = match &op.kind {
            OpKind::Const(Const::Int(_, v)) => *v,
            OpKind::Binary(bin) => {
                let (a, b) = (get(0)?, get(1)?);
                match bin {
                    BinOp::Add => a + b,
                    BinOp::Sub => a - b,
                    BinOp::Mul => a * b,
                    BinOp::Div => a.checked_div(b).unwrap_or(0),
                    BinOp::Rem => a.checked_rem(b).unwrap_or(a),
                    BinOp::Xor => a ^ b,
                    BinOp::And => a & b,
                    _ => return Err("an operation that this machine lacks".to_owned()),
                }
            }
            OpKind::Cmp(pred) => {
                let (a, b) = (get(0)?, get(1)?);
                i64::from(match pred {
                    Pred::Eq => a == b,
                    Pred::Ne => a != b,
                    Pred::Lt => a < b,
                    Pred::Le => a <= b,
                    Pred::Gt => a > b,
                    Pred::Ge => a >= b,
                })
            }
            OpKind::Select => if get(0)? != 0 { get(1)? } else { get(2)? },
            OpKind::Cast(_) => get(0)?,
            OpKind::Unary(UnOp::Not) => 1 - get(0)?,
            _ => return Ok(()),
        };
        if let Some(result) = op.results.first() {
            self.threads[thread].env.insert(*result, value);
        }
        Ok(())
    }

    fn nv(&mut self, thread: usize, op: &Op, nv: NvOp) -> Result<bool, Fault> {
        match nv {
            NvOp::MbarrierAlloc { n, .. } => {
                self.of_alloc.insert(op.results[0], self.barriers.len());
                let new = Barrier { phase: 0, count: 0, pending: 0, tx: 0, gone: true };
                self.barriers.extend((0..n).map(|_| new.clone()));
            }
            NvOp::MbarrierInit { count } => {
                for b in self.all_of(op.args[0])? {
                    self.barriers[b] = Barrier { phase: 0, count: count.into(), pending: count.into(), tx: 0, gone: false };
                }
            }
            NvOp::MbarrierInval => {
                for b in self.all_of(op.args[0])? {
                    let brings = |f: &Flight| matches!(f, Flight::Tx { barrier, .. } | Flight::Arrivals { barrier, .. } if *barrier == b);
                    if self.barriers[b].gone || self.flights.iter().any(brings) {
                        return Err("a barrier that is invalidated in use".to_owned());
                    }
                    self.barriers[b].gone = true;
                }
            }
            NvOp::Arrive { arrivals } => self.counted(thread, op, i64::from(arrivals), 0)?,
            NvOp::ArriveExpectTx { bytes } => self.counted(thread, op, 1, i64::from(bytes))?,
            NvOp::ExpectTx { bytes } => self.counted(thread, op, 0, i64::from(bytes))?,
            NvOp::MbarrierWait | NvOp::WaitParity => {
                let b = self.barrier(thread, op.args[0])?;
                let parity = self.get(thread, op.args[1])?;
                if self.barriers[b].gone || !(0..=1).contains(&(parity & 1)) {
                    return Err("a wait for a barrier that is gone".to_owned());
                }
                return Ok((self.barriers[b].phase & 1) != (parity & 1));
            }
            NvOp::TryWait | NvOp::TestWait => drop(self.threads[thread].env.insert(op.results[0], 0)),
            NvOp::BulkLoad { bytes, .. } => {
                let n = op.args.len();
                let barrier = self.barrier(thread, op.args[n - 1])?;
                let access = self.begin(thread, op.args[n - 2], true, None)?;
                self.flights.push(Flight::Tx { access, barrier, bytes: bytes.into() });
            }
            NvOp::BulkStore { .. } => self.start(thread, op, false, Class::BulkStore)?,
            NvOp::CpAsync { .. } => self.start(thread, op, true, Class::CpAsync)?,
            NvOp::Wgmma => {
                for region in &op.args {
                    let access = self.begin(thread, *region, false, Some(Class::Wgmma))?;
                    self.threads[thread].open.entry(Class::Wgmma).or_default().push(access);
                }
            }
            NvOp::CpAsyncArrive { noinc, arrivals } => {
                let barrier = self.barrier(thread, op.args[0])?;
                let mine = |(id, a): (&usize, &Access)| (a.thread == thread && a.class == Some(Class::CpAsync)).then_some(*id);
                let of: BTreeSet<usize> = self.accesses.iter().filter_map(mine).collect();
                self.accesses.iter_mut().filter(|(id, _)| of.contains(id)).for_each(|(_, a)| a.told = true);
                if !noinc {
                    self.barriers[barrier].pending += i64::from(arrivals);
                }
                self.flights.push(Flight::Arrivals { of, barrier, n: arrivals.into() });
            }
            NvOp::Commit { group, .. } => self.commit(thread, op, group.class()),
            NvOp::WaitGroup { group, n, .. } => return Ok(self.under_way(thread, group.class()) <= n as usize),
            NvOp::BarrierSync { id, threads } => return self.sync(thread, i64::from(id), i64::from(threads), true),
            NvOp::BarrierArrive { id, threads } => return self.sync(thread, i64::from(id), i64::from(threads), false),
            NvOp::ClusterArrive => return self.sync(thread, 100, 0, false),
            NvOp::ClusterWait => {
                let Some((b, phase)) = self.threads[thread].met else { return Err("a wait without an arrival".to_owned()) };
                return Ok(self.pass(thread, b, phase));
            }
            NvOp::MbarrierAt | NvOp::FenceMbarrierInit | NvOp::WgmmaFence | NvOp::SetMaxNReg { .. } => {}
        }
        Ok(true)
    }

    fn all_of(&self, alloc: Value) -> Result<std::ops::Range<usize>, Fault> {
        let first = *self.of_alloc.get(&alloc).ok_or("a barrier")?;
        let Some(OpKind::Nv(NvOp::MbarrierAlloc { n, .. })) = self.kernel.def_op(alloc).map(|o| o.kind.clone()) else {
            return Err("a barrier".to_owned());
        };
        Ok(first..first + n as usize)
    }

    fn counted(&mut self, thread: usize, op: &Op, n: i64, bytes: i64) -> Result<(), Fault> {
        let b = self.barrier(thread, op.args[0])?;
        if let Some(result) = op.results.first() {
            let phase = self.barriers[b].phase;
            self.threads[thread].env.insert(*result, phase);
        }
        self.barriers[b].tx += bytes;
        if n > 0 { self.arrive(b, n) } else { Ok(()) }
    }

    fn start(&mut self, thread: usize, op: &Op, write: bool, class: Class) -> Result<(), Fault> {
        let access = self.begin(thread, op.args[op.args.len() - 1], write, Some(class))?;
        self.threads[thread].open.entry(class).or_default().push(access);
        Ok(())
    }

    fn commit(&mut self, thread: usize, op: &Op, class: Class) {
        let t = &mut self.threads[thread];
        let mut group = t.open.remove(&class).unwrap_or_default();
        group.retain(|a| self.accesses.contains_key(a));
        let groups = t.groups.entry(class).or_default();
        groups.push(group);
        let id = groups.len() - 1;
        t.env.insert(op.results[0], id as i64);
    }

    fn under_way(&self, thread: usize, class: Class) -> usize {
        let groups = self.threads[thread].groups.get(&class);
        groups.map_or(0, |g| g.iter().position(|g| !g.is_empty()).map_or(0, |first| g.len() - first))
    }

    /// Comes to a barrier without a word, and waits there if it should.
    fn sync(&mut self, thread: usize, id: i64, threads: i64, wait: bool) -> Result<bool, Fault> {
        if let (Some((b, phase)), true) = (self.threads[thread].met, wait) {
            return Ok(self.pass(thread, b, phase));
        }
        let everybody = self.threads.len() as i64;
        let count = if id >= 100 { everybody } else { threads };
        let b = *self.named.entry(id).or_insert_with(|| {
            self.barriers.push(Barrier { phase: 0, count, pending: count, tx: 0, gone: false });
            self.barriers.len() - 1
        });
        let own = self.kernel.roles.get(thread).map_or(count, |r| i64::from(r.warps) * 32);
        let phase = self.barriers[b].phase;
        self.arrive(b, if id >= 100 { 1 } else { own })?;
        if wait {
            self.threads[thread].met = Some((b, phase));
            return Ok(self.pass(thread, b, phase));
        }
        if id == 100 {
            self.threads[thread].met = Some((b, phase));
        }
        Ok(true)
    }

    fn pass(&mut self, thread: usize, barrier: usize, phase: i64) -> bool {
        let passed = self.barriers[barrier].phase > phase;
        if passed {
            self.threads[thread].met = None;
        }
        passed
    }

    fn amd(&mut self, thread: usize, op: &Op, amd: AmdOp) -> Result<bool, Fault> {
        match amd {
            AmdOp::Waitcnt { vmcnt, lgkmcnt } => {
                let low = |class, n: u32| self.under_way(thread, class) <= n as usize;
                return Ok(low(Class::Vmcnt, vmcnt) && low(Class::Lgkmcnt, lgkmcnt));
            }
            AmdOp::BufferLoadLds { .. } => {
                self.start(thread, op, true, Class::Vmcnt)?;
                self.commit(thread, op, Class::Vmcnt);
            }
            AmdOp::DsRead { .. } | AmdOp::DsWrite { .. } => {
                self.start(thread, op, matches!(amd, AmdOp::DsWrite { .. }), Class::Lgkmcnt)?;
                self.commit(thread, op, Class::Lgkmcnt);
            }
            AmdOp::Barrier => return self.sync(thread, 101, 0, true),
            AmdOp::Mfma | AmdOp::SetPrio { .. } => {}
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
