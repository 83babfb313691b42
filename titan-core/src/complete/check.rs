//! The independent checker of completion: executes a kernel with concrete numbers of iterations, with groups as queues.
//!
//! Every loop of unknown length executes a given number of iterations, and branches on loop counters are evaluated. Of other branches, the
//! first arm is executed, so that this is a test of some paths and no proof. Each value that stands
//! for something in flight has a number of its own in each iteration. A wait that leaves `n` groups in flight completes all older ones, and
//! no others. What is read, released or written must be complete:
//!
//! | operation | in no group that may be in flight |
//! |---|---|
//! | a wait for a stage of a ring that copies of the same threads fill | the copies to this stage |
//! | a load from a buffer, or an MMA on it | copies to the buffer |
//! | a store or copy to a buffer | bulk stores from the buffer, and MMAs that read it |
//! | a wait that gives the result of an MMA | the MMA |
//! | the end of the reads of a stage | MMAs that read the stage |
//! | what writes a tile in registers | MMAs that read the tile |
//!
//! Deliberately absent: rings between roles, whose copies do not complete in groups.

use crate::analysis::{sides, whole};
use crate::collections::SortedMap;
use crate::ir::{
    BinOp, Block, Family, Flow, Kernel, LocalOp, NvGroup, NvOp, Op, OpId, OpKind, Pipe, Pred, Token, TtgOp, Ty, Value,
};
use std::collections::VecDeque;

/// The error that an operation uses what may not be complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Early {
    /// The operation.
    pub op: OpId,
    /// The number of iterations of the loops.
    pub trips: i64,
}

/// Checks a kernel whose groups are counted, with loops of every length up to `most`. `copy_async` says whether copies of threads fill
/// the stages of rings asynchronously; `fills_copy`, that fills without a copy are treated as if they copied, although what threads store
/// themselves needs no wait.
///
/// # Errors
/// The first operation that uses what may still be in flight.
pub fn check(kernel: &Kernel, copy_async: bool, fills_copy: bool, most: i64) -> Result<(), Early> {
    let counted =
        (0..kernel.pipes.len()).map(|pipe| copy_async && !sides::joins_roles(kernel, Pipe::new(pipe))).collect();
    let mut run = Run { kernel, counted, fills_copy, trips: 0, now: Threads::default(), early: None };
    // Each number of iterations is a run of its own, from the beginning: what is in flight depends on how many there
    // were.
    for trips in 0..=most {
        run.trips = trips;
        run.now = Threads { clocks: vec![(0, 0); kernel.pipes.len()], ..Threads::default() };
        run.block(kernel.body);
        if let Some(op) = run.early {
            return Err(Early { op, trips });
        }
    }
    Ok(())
}

/// What a group does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Work {
    /// Fills the stage of a time of a ring.
    Fills(usize, i64),
    /// Copies to a buffer, or reads a buffer for a bulk store.
    Uses(Value),
    /// Computes the value with this number, or reads by the permission with this number.
    Of(u64),
    /// Reads the registers of a tile.
    Reads(Value),
}

/// The state of the threads of a role.
#[derive(Clone, Debug, Default)]
struct Threads {
    /// The known integers: counters, and functions of them.
    counters: SortedMap<Value, i64>,
    /// For each class, what is in the open group, and the committed groups that may be in flight, the oldest first.
    open: SortedMap<NvGroup, Vec<Work>>,
    queues: SortedMap<NvGroup, VecDeque<Vec<Work>>>,
    /// For each ring, the next times of its filling side and of its reading side.
    clocks: Vec<(i64, i64)>,
    claims: SortedMap<Value, (usize, i64)>,
    /// The numbers of values.
    numbers: SortedMap<Value, u64>,
    next: u64,
}

impl Threads {
    fn starts(&mut self, class: NvGroup, work: Work) {
        self.open.entry(class).or_default().push(work);
    }

    fn in_flight(&self, class: NvGroup, work: Work) -> bool {
        let open = self.open.get(&class).is_some_and(|open| open.contains(&work));
        open || self.queues.get(&class).is_some_and(|groups| groups.iter().any(|group| group.contains(&work)))
    }

    fn number(&self, value: Value) -> Work {
        Work::Of(self.numbers.get(&value).copied().unwrap_or(0))
    }

    /// Gives values that an operation defines numbers of their own.
    fn define(&mut self, values: &[Value]) {
        for value in values {
            self.next += 1;
            self.numbers.insert(*value, self.next);
        }
    }

    fn bind(&mut self, from: &[Value], to: &[Value]) {
        let numbers: Vec<_> = from.iter().map(|v| self.numbers.get(v).copied()).collect();
        let claims: Vec<_> = from.iter().map(|v| self.claims.get(v).copied()).collect();
        for ((to, number), claim) in to.iter().zip(numbers).zip(claims) {
            self.numbers.extend(number.map(|number| (*to, number)));
            self.claims.extend(claim.map(|claim| (*to, claim)));
        }
    }
}

struct Run<'k> {
    kernel: &'k Kernel,
    /// For each ring, whether it is filled by groups of copies.
    counted: Vec<bool>,
    /// Whether fills without a copy are treated as copies.
    fills_copy: bool,
    /// The number of iterations of loops of unknown length.
    trips: i64,
    now: Threads,
    early: Option<OpId>,
}

/// Where a block continues if not behind its last operation.
enum Jump {
    /// In the next iteration of the enclosing loop with this number, with the carried values.
    Again(u32, Vec<Value>),
    /// After the enclosing loop with this number, with its results.
    Leave(u32, Vec<Value>),
    /// At the end of the program.
    End,
}

impl Run<'_> {
    fn block(&mut self, block: Block) -> Option<Jump> {
        for id in &self.kernel.block(block).ops {
            let jump = self.op(*id);
            if jump.is_some() || self.early.is_some() {
                return jump;
            }
        }
        None
    }

    /// The value of an integer: constants, counters, sums; unknown bounds are `trips`.
    fn int(&self, value: Value) -> i64 {
        if let Some(known) = self.now.counters.get(&value) {
            return *known;
        }
        if let Some(c) = self.kernel.int_constant(value) {
            return c;
        }
        let Some(op) = self.kernel.def_op(value) else { return self.trips };
        match (&op.kind, &op.args[..]) {
            (OpKind::Binary(BinOp::Add), [a, b]) => self.int(*a) + self.int(*b),
            (OpKind::Binary(BinOp::Sub), [a, b]) => self.int(*a) - self.int(*b),
            (_, _) => self.trips,
        }
    }

    fn holds(&self, value: Value) -> bool {
        let Some(op) = self.kernel.def_op(value) else { return true };
        let (OpKind::Cmp(pred), [a, b]) = (&op.kind, &op.args[..]) else { return true };
        let (a, b) = (self.int(*a), self.int(*b));
        match pred {
            Pred::Eq => a == b,
            Pred::Ne => a != b,
            Pred::Lt => a < b,
            Pred::Le => a <= b,
            Pred::Gt => a > b,
            Pred::Ge => a >= b,
        }
    }

    fn looped(&mut self, id: OpId, op: &Op) -> Option<Jump> {
        let body = *op.regions.first()?;
        let args = &self.kernel.block(body).args;
        let is_for = op.kind != OpKind::Loop;
        let (bounds, initial) = op.args.split_at(if is_for { 3 } else { 0 });
        let carried = &args[usize::from(is_for)..];
        self.written(id, initial, carried);
        self.now.bind(initial, carried);
        let (mut at, hi, step) = match bounds {
            [lo, hi, step] => (self.int(*lo), self.int(*hi), self.int(*step).max(1)),
            _ => (0, self.trips, 1),
        };
        // The step is at least 1, and the bounds are numbers here: this ends.
        while at < hi && self.early.is_none() {
            if let (true, Some(counter)) = (is_for, args.first()) {
                self.now.counters.insert(*counter, at);
            }
            match self.block(body) {
                None => {}
                Some(Jump::Again(0, next)) => {
                    self.written(id, &next, carried);
                    self.now.bind(&next, carried);
                }
                Some(Jump::Leave(0, results)) => {
                    // The results of a loop with a count are in the registers of what it carries.
                    self.written(id, &results, if is_for { carried } else { &[] });
                    self.now.bind(&results, &op.results);
                    return None;
                }
                Some(Jump::Again(n, next)) => return Some(Jump::Again(n - 1, next)),
                Some(Jump::Leave(n, results)) => return Some(Jump::Leave(n - 1, results)),
                Some(Jump::End) => return Some(Jump::End),
            }
            at += step;
        }
        if is_for {
            self.now.bind(carried, &op.results);
        }
        None
    }

    fn op(&mut self, id: OpId) -> Option<Jump> {
        let kernel = self.kernel;
        let op = kernel.op(id);
        op.results.iter().for_each(|v| self.need(id, NvGroup::Wgmma, Work::Reads(*v)));
        self.now.define(&op.results);
        match op.kind.family() {
            Family::Flow(Flow::For(_) | Flow::Loop) => return self.looped(id, op),
            Family::Flow(Flow::If) => {
                let arm = *op.regions.get(usize::from(!self.holds(op.args[0])))?;
                let jump = self.block(arm);
                let last = kernel.block(arm).ops.last().map(|id| kernel.op(*id));
                if let Some(last) = last.filter(|last| last.kind == OpKind::Yield) {
                    self.now.bind(&last.args, &op.results);
                }
                return jump;
            }
            Family::Flow(Flow::Break(n)) => return Some(Jump::Leave(n, op.args.clone())),
            Family::Flow(Flow::Continue(n)) => return Some(Jump::Again(n, op.args.clone())),
            Family::Flow(Flow::Return) => return Some(Jump::End),
            Family::Ttg(ttg) => self.event(id, op, ttg),
            Family::Local(local) => self.local(id, op, local),
            Family::Nv(nv) => self.grouped(id, op, &nv),
            Family::Flow(Flow::Yield) | Family::Data(_) | Family::Region(_) | Family::Amd(_) => {}
        }
        None
    }

    fn need(&mut self, id: OpId, class: NvGroup, work: Work) {
        if self.now.in_flight(class, work) {
            self.early.get_or_insert(id);
        }
    }

    /// Values that are passed to others are written to the registers of these.
    fn written(&mut self, id: OpId, from: &[Value], to: &[Value]) {
        for (_, to) in from.iter().zip(to).filter(|(from, to)| from != to) {
            self.need(id, NvGroup::Wgmma, Work::Reads(*to));
        }
    }

    /// Starts the reads of an operand in registers: of the tile, and of those that it may be a part or another arrangement of.
    fn reads(&mut self, operand: Value) {
        if !matches!(self.kernel.ty(operand), Ty::Tile(..)) {
            return;
        }
        self.now.starts(NvGroup::Wgmma, Work::Reads(operand));
        let kernel = self.kernel;
        let Some(op) = kernel.def_op(operand) else { return };
        let local = matches!(&op.kind, OpKind::Local(LocalOp::Slice { .. } | LocalOp::Convert | LocalOp::Stack));
        if local || matches!(op.kind, OpKind::Reshape(_) | OpKind::Permute(_) | OpKind::Broadcast { .. }) {
            // This ends: operands are defined before what uses them.
            op.args.iter().for_each(|v| self.reads(*v));
        }
    }

    fn local(&mut self, id: OpId, op: &Op, local: &LocalOp) {
        let buffer = |at: usize| op.args.get(at).map(|tile| Work::Uses(whole::of(self.kernel, *tile)));
        match local {
            LocalOp::Copy { asynchronous: true } => {
                buffer(1).into_iter().for_each(|work| self.need(id, NvGroup::Wgmma, work));
                buffer(1).into_iter().for_each(|work| self.now.starts(NvGroup::CpAsync, work));
            }
            LocalOp::Load => buffer(0).into_iter().for_each(|work| self.need(id, NvGroup::CpAsync, work)),
            LocalOp::Store | LocalOp::Copy { asynchronous: false } => {
                if let Some(work) = buffer(1) {
                    self.need(id, NvGroup::BulkStore, work);
                    self.need(id, NvGroup::Wgmma, work);
                }
            }
            LocalOp::Settle { .. } => drop(self.early.get_or_insert(id)),
            LocalOp::Alloc { .. }
            | LocalOp::Fetch { .. }
            | LocalOp::Guard
            | LocalOp::Slice { .. }
            | LocalOp::Reshape(_)
            | LocalOp::Stack
            | LocalOp::Mma
            | LocalOp::Convert
            | LocalOp::Fold { .. } => {}
        }
    }

    fn grouped(&mut self, id: OpId, op: &Op, nv: &NvOp) {
        match nv {
            NvOp::Wgmma => {
                for operand in op.args.iter().take(2).filter(|v| matches!(self.kernel.ty(**v), Ty::Smem(..))) {
                    let whole = whole::of(self.kernel, *operand);
                    self.need(id, NvGroup::CpAsync, Work::Uses(whole));
                    self.now.starts(NvGroup::Wgmma, Work::Uses(whole));
                    let view =
                        self.kernel.def_op(whole).filter(|op| matches!(op.kind, OpKind::Ttg(TtgOp::View { .. })));
                    if let Some(permission) = view.and_then(|view| view.args.first()) {
                        self.now.starts(NvGroup::Wgmma, self.now.number(*permission));
                    }
                }
                op.results.iter().for_each(|v| self.now.starts(NvGroup::Wgmma, self.now.number(*v)));
                op.args.iter().take(2).for_each(|v| self.reads(*v));
            }
            NvOp::BulkStore { .. } => {
                let buffer = op.args.last().map(|tile| Work::Uses(whole::of(self.kernel, *tile)));
                buffer.into_iter().for_each(|work| self.now.starts(NvGroup::BulkStore, work));
            }
            NvOp::Commit { group, .. } => {
                let open = std::mem::take(self.now.open.entry(*group).or_default());
                self.now.queues.entry(*group).or_default().push_back(open);
            }
            NvOp::WaitGroup { group, n, .. } => {
                let groups = self.now.queues.entry(*group).or_default();
                // Groups leave the queue in the order of their commits, the oldest first, as the hardware completes
                // them.
                while groups.len() > *n as usize {
                    groups.pop_front();
                }
                for value in &op.args {
                    self.need(id, NvGroup::Wgmma, self.now.number(*value));
                }
            }
            // Barriers and copies in bulk to a region do not complete in groups; copies of threads to regions are in programs written by hand.
            NvOp::MbarrierAlloc { .. }
            | NvOp::MbarrierAt
            | NvOp::MbarrierInit { .. }
            | NvOp::MbarrierInval
            | NvOp::Arrive { .. }
            | NvOp::ArriveCluster { .. }
            | NvOp::ArriveExpectTx { .. }
            | NvOp::ExpectTx { .. }
            | NvOp::MbarrierWait
            | NvOp::WaitParity
            | NvOp::TryWait
            | NvOp::TestWait
            | NvOp::FenceMbarrierInit
            | NvOp::BulkLoad { .. }
            | NvOp::CpAsync { .. }
            | NvOp::CpAsyncArrive { .. }
            | NvOp::WgmmaFence
            | NvOp::BarrierSync { .. }
            | NvOp::BarrierArrive { .. }
            | NvOp::ClusterRank
            | NvOp::ClusterArrive
            | NvOp::ClusterWait
            | NvOp::WarpSync
            | NvOp::SequenceInit
            | NvOp::SequenceStore
            | NvOp::SequenceWait
            | NvOp::SetMaxNReg { .. }
            | NvOp::Tcgen05(_) => {}
        }
    }

    fn event(&mut self, id: OpId, op: &Op, ttg: &TtgOp) {
        let ring =
            |v: Option<&Value>| if let Ty::Token(Token::Slot, pipe) = self.kernel.ty(*v?) { Some(pipe) } else { None };
        match ttg {
            TtgOp::AsyncProduce { .. } | TtgOp::Fill(_) => {
                let Some(pipe) = ring(op.args.first()).map(Pipe::index) else { return };
                let clock = &mut self.now.clocks[pipe];
                let work = Work::Fills(pipe, clock.0);
                clock.0 += 1;
                if self.counted[pipe] && (self.fills_copy || matches!(ttg, TtgOp::AsyncProduce { .. })) {
                    self.now.starts(NvGroup::CpAsync, work);
                }
            }
            TtgOp::Ready(pipe) => {
                let clock = &mut self.now.clocks[pipe.index()];
                self.now.claims.extend(op.results.first().map(|claim| (*claim, (pipe.index(), clock.1))));
                clock.1 += 1;
            }
            TtgOp::WaitReady => {
                let Some((pipe, time)) = op.args.first().and_then(|v| self.now.claims.get(v)).copied() else {
                    return;
                };
                if self.counted[pipe] {
                    self.need(id, NvGroup::CpAsync, Work::Fills(pipe, time));
                }
            }
            TtgOp::Consumed => {
                op.args.iter().for_each(|permission| self.need(id, NvGroup::Wgmma, self.now.number(*permission)));
            }
            TtgOp::Split(_) | TtgOp::Join => {
                // Parts of a permission, and the whole of parts, are the same stage.
                if let Some(number) = op.args.first().and_then(|v| self.now.numbers.get(v)).copied() {
                    self.now.numbers.extend(op.results.iter().map(|v| (*v, number)));
                }
            }
            TtgOp::Roles => {
                for role in &op.regions {
                    let before = self.now.clone();
                    self.block(*role);
                    self.now = before;
                }
            }
            // These neither start what completes in groups nor need it.
            TtgOp::Source(..)
            | TtgOp::SourceRows { .. }
            | TtgOp::Acquire(_)
            | TtgOp::Poisoned
            | TtgOp::ReadPerm
            | TtgOp::View { .. }
            | TtgOp::Read
            | TtgOp::Release
            | TtgOp::ComputeIssue
            | TtgOp::ComputeWait
            | TtgOp::AccStart(_)
            | TtgOp::AccMma
            | TtgOp::AccFinish
            | TtgOp::Write
            | TtgOp::StoreIssue(_)
            | TtgOp::StoreWait
            | TtgOp::Finalize
            | TtgOp::Rematerialize
            | TtgOp::Claim(..)
            | TtgOp::Fence { .. } => {}
        }
    }
}
