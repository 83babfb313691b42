//! Finds the commits and waits of a kernel: walks all paths with the state of [`super::state`].

use super::registers;
use super::state::State;
use crate::analysis::{same_registers, whole};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Block, Family, Flow, Kernel, LocalOp, NvGroup, NvOp, Op, OpId, OpKind, Pipe, Token, TtgOp, Ty, Value};

/// Loops with at most this many iterations are walked iteration by iteration.
const WALK: i64 = 64;

/// The number of iterations of a kernel that are walked in this way. Nested loops would otherwise be walked as often as they are executed.
const BUDGET: i64 = 4096;

/// What precedes an operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Before {
    /// Whether the open group of copies is committed.
    pub(super) commit: bool,
    /// The waits, each with the number of groups that may be in flight after it.
    pub(super) waits: SortedMap<NvGroup, Wait>,
}

/// A wait for groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    /// The number of groups that may be in flight after it.
    pub(super) n: u32,
    /// Whether bulk stores need only have read their buffers.
    pub(super) read: bool,
}

/// The commits and waits of a kernel.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) before: SortedMap<OpId, Before>,
    /// The operations after which a group is committed.
    pub(super) commits: SortedMap<OpId, NvGroup>,
    /// For each wait that gives the result of an MMA, the number of groups that may be in flight after it.
    pub(super) products: SortedMap<OpId, u32>,
    /// The operations that write registers which MMAs read, and wait for these.
    pub(super) for_registers: SortedSet<OpId>,
}

/// Finds the commits and waits of a kernel. `counted` selects the rings that are filled by groups of copies.
pub(super) fn find(kernel: &Kernel, counted: &dyn Fn(Pipe) -> bool) -> Found {
    let deepest = kernel.pipes.iter().map(|p| p.slots as usize).max().unwrap_or(1);
    let counted = (0..kernel.pipes.len()).map(|pipe| counted(Pipe::new(pipe))).collect();
    let mut walk = Walk { kernel, deepest, budget: BUDGET, counted, loops: Vec::new(), found: Found::default() };
    walk.block(kernel.body, State::new(kernel.pipes.len()));
    walk.found
}

/// A loop that is being walked, with the states at its back edges and at its exits.
struct Around {
    id: OpId,
    next: Option<State>,
    exit: Option<State>,
}

/// Joins the state of another path, if that path is reachable.
fn join(to: &mut Option<State>, from: Option<State>) {
    match (to, from) {
        (Some(to), Some(from)) => to.join(&from),
        (to, from) => *to = to.take().or(from),
    }
}

struct Walk<'k> {
    kernel: &'k Kernel,
    deepest: usize,
    /// The number of iterations that may still be walked one by one.
    budget: i64,
    /// For each ring, whether it is filled by groups of copies.
    counted: Vec<bool>,
    loops: Vec<Around>,
    found: Found,
}

impl Walk<'_> {
    /// The state after a block; `None` if its end is unreachable.
    fn block(&mut self, block: Block, entry: State) -> Option<State> {
        let mut state = entry;
        let ops = &self.kernel.block(block).ops;
        for (at, id) in ops.iter().enumerate() {
            // A value that is defined again, in the next iteration, no longer names what it stood for: that stays in
            // flight, but under the names that were passed on.
            self.settle_registers(*id, &mut state);
            state.define(&self.kernel.op(*id).results);
            self.settle_where_needed(*id, &mut state);
            let is_step = |id: &&OpId| self.kernel.op(**id).kind == OpKind::Nv(NvOp::Wgmma);
            if is_step(&id) {
                // Steps that follow each other are one group: all of them are committed behind the last one, and a wait
                // is for all.
                if ops.get(at + 1).as_ref().is_none_or(|next| !is_step(next)) {
                    let steps: Vec<OpId> = ops[..=at].iter().rev().take_while(is_step).copied().collect();
                    self.product(&steps, &mut state);
                }
                continue;
            }
            state = self.op(*id, state)?;
        }
        Some(state)
    }

    /// Completes the MMAs that read registers which an operation writes. MMAs read operands in registers until they are waited for (PTX ISA,
    /// "wgmma.mma_async").
    fn settle_registers(&mut self, id: OpId, state: &mut State) {
        let looped = |n: u32| self.loops.len().checked_sub(1 + n as usize).and_then(|at| self.loops.get(at));
        let written = registers::written(self.kernel, id, &|n| looped(n).map(|around| around.id));
        if let Some(n) = state.younger_than_reads(&written) {
            self.found.for_registers.insert(id);
            self.wait_until(id, NvGroup::Wgmma, Wait { n, read: true }, state);
        }
    }

    /// Completes all copies to buffers before control flow diverges, so that none is in flight when the buffers are used again, and
    /// before memory is written, which may be what they read.
    fn settle_where_needed(&mut self, id: OpId, state: &mut State) {
        use crate::ir::Effect::{Atomic, Write};
        let op = self.kernel.op(id);
        let writes = matches!(op.kind.effect(), Write | Atomic);
        if writes || op.kind.is_loop() || op.kind == OpKind::If || op.kind.is_terminator() {
            self.settle_copies(id, &[], state);
        }
    }

    /// Completes the copies to some buffers, or to all if there are none, before an operation.
    fn settle_copies(&mut self, id: OpId, buffers: &[Value], state: &mut State) {
        if state.is_open(buffers) {
            state.commit(NvGroup::CpAsync);
            self.found.before.entry(id).or_default().commit = true;
        }
        self.wait(id, NvGroup::CpAsync, buffers, true, state);
    }

    /// Waits before an operation until the accesses of a class to some values, or to all if there are none, are complete.
    fn wait(&mut self, id: OpId, class: NvGroup, values: &[Value], read: bool, state: &mut State) {
        if let Some(n) = state.younger(class, values) {
            self.wait_until(id, class, Wait { n, read }, state);
        }
    }

    /// Waits before an operation until so many groups of a class are in flight.
    fn wait_until(&mut self, id: OpId, class: NvGroup, Wait { n, read }: Wait, state: &mut State) {
        // An operation is walked several times, and gets the strongest of its waits.
        let waits = &mut self.found.before.entry(id).or_default().waits;
        let own = waits.entry(class).or_insert(Wait { n, read });
        // Waiting for more than one path needs is slower there, and never wrong: fewer groups are in flight behind it.
        *own = Wait { n: own.n.min(n), read: own.read && read };
        state.waited(class, n);
    }

    /// The state after an operation; `None` if no path leads there.
    fn op(&mut self, id: OpId, mut state: State) -> Option<State> {
        let kernel = self.kernel;
        let op = kernel.op(id);
        match op.kind.family() {
            Family::Flow(Flow::If) => return self.branch(id, state),
            Family::Flow(Flow::For(_)) => return self.counted_loop(id, state),
            Family::Flow(Flow::Loop) => return self.around(id, state, false),
            Family::Flow(Flow::Break(n) | Flow::Continue(n)) => {
                let around = self.loops.len().checked_sub(1 + n as usize).and_then(|at| self.loops.get_mut(at))?;
                let looped = kernel.op(around.id);
                if matches!(op.kind, OpKind::Break(_)) {
                    state.bind(&op.args, &looped.results);
                    join(&mut around.exit, Some(state));
                } else {
                    state.bind(&op.args, carried(kernel, looped));
                    join(&mut around.next, Some(state));
                }
                // What follows a jump is reached on no path from here. The state is kept where the jump leads to.
                return None;
            }
            Family::Flow(Flow::Return) => return None,
            Family::Ttg(ttg) => self.event(id, ttg, &mut state),
            Family::Local(LocalOp::Copy { asynchronous: true }) => {
                let Some(to) = op.args.get(1).map(|to| whole::of(kernel, *to)) else { return Some(state) };
                self.wait(id, NvGroup::Wgmma, &[to], true, &mut state);
                state.copies(to);
            }
            // What an MMA reads is not overwritten before it is complete.
            Family::Local(LocalOp::Store | LocalOp::Copy { asynchronous: false }) => {
                let buffer: Vec<Value> = op.args.get(1).into_iter().map(|to| whole::of(kernel, *to)).collect();
                if !buffer.is_empty() {
                    self.wait(id, NvGroup::Wgmma, &buffer, true, &mut state);
                }
            }
            Family::Local(LocalOp::Settle { read }) => {
                if !op.args.is_empty() {
                    self.settle_copies(id, &op.args, &mut state);
                }
                self.wait(id, NvGroup::BulkStore, &op.args, *read, &mut state);
            }
            Family::Nv(NvOp::BulkStore { .. }) => {
                self.found.commits.insert(id, NvGroup::BulkStore);
                state.commit(NvGroup::BulkStore);
                op.args.last().into_iter().for_each(|buffer| state.starts(NvGroup::BulkStore, *buffer));
            }
            // These neither start what is counted in groups nor wait for it. The steps of MMAs are grouped where their block is walked.
            Family::Flow(Flow::Yield)
            | Family::Data(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => {}
        }
        Some(state)
    }

    /// The last step of an MMA of warpgroups: its steps, which follow each other, are one group.
    fn product(&mut self, steps: &[OpId], state: &mut State) {
        let Some(last) = steps.first() else { return };
        self.found.commits.insert(*last, NvGroup::Wgmma);
        state.commit(NvGroup::Wgmma);
        for step in steps {
            let op = self.kernel.op(*step);
            let read = op.args.iter().filter_map(|operand| self.shared(*operand));
            read.chain(op.results.iter().copied()).for_each(|value| state.starts(NvGroup::Wgmma, value));
            op.args
                .iter()
                .take(2)
                .for_each(|v| same_registers::of(self.kernel, *v).into_iter().for_each(|v| state.reads(v)));
        }
    }

    /// What an operand of an MMA in shared memory is a part of: the permission to read a stage, or a buffer.
    fn shared(&self, operand: Value) -> Option<Value> {
        if !matches!(self.kernel.ty(operand), Ty::Smem(..)) {
            return None;
        }
        let whole = whole::of(self.kernel, operand);
        let view = self.kernel.def_op(whole).filter(|op| matches!(op.kind, OpKind::Ttg(TtgOp::View { .. })));
        view.map_or(Some(whole), |view| view.args.first().copied())
    }

    fn event(&mut self, id: OpId, ttg: &TtgOp, state: &mut State) {
        let kernel = self.kernel;
        let op = kernel.op(id);
        match ttg {
            TtgOp::AsyncProduce { .. } | TtgOp::Fill(_) => {
                let filled: Vec<Pipe> = filled(kernel, id).into_iter().filter(|p| self.is_counted(*p)).collect();
                if !filled.is_empty() {
                    self.found.commits.insert(id, NvGroup::CpAsync);
                    // A fill without copies commits an empty group: then the group of each stage has the same age on
                    // every path.
                    state.commit_stages(&filled, self.deepest);
                }
            }
            TtgOp::Ready(pipe) => op.results.iter().for_each(|claim| state.claim(*pipe, *claim)),
            TtgOp::WaitReady => {
                let Some(claim) = op.args.first() else { return };
                if !ring_of(kernel, *claim).is_some_and(|pipe| self.is_counted(pipe)) {
                    return;
                }
                // Example, a ring whose stages are filled two iterations ahead, one group in each: behind the fill for
                // iteration i + 2, the groups of i + 1 and i + 2 are younger than that of i. The wait for stage i
                // leaves 2 groups in flight.
                let n = state.younger_than_stage(*claim);
                self.wait_until(id, NvGroup::CpAsync, Wait { n, read: true }, state);
            }
            TtgOp::Consumed => self.wait(id, NvGroup::Wgmma, &op.args, true, state),
            TtgOp::Split(_) => {
                if let Some(younger) = state.younger(NvGroup::Wgmma, &op.args) {
                    op.results.iter().for_each(|part| state.joined(*part, younger));
                }
            }
            TtgOp::Join => {
                if let (Some(younger), Some(whole)) = (state.younger(NvGroup::Wgmma, &op.args), op.results.first()) {
                    state.joined(*whole, younger);
                }
            }
            TtgOp::ComputeWait => {
                if !op.args.first().is_some_and(|arg| matches!(kernel.ty(*arg), Ty::Compute(..))) {
                    return;
                }
                // If the MMA is complete already, the wait leaves all groups in flight that there are, and waits for
                // nothing.
                let n = state.younger(NvGroup::Wgmma, &op.args).unwrap_or_else(|| state.all(NvGroup::Wgmma));
                let own = self.found.products.entry(id).or_insert(n);
                *own = (*own).min(n);
                state.waited(NvGroup::Wgmma, n);
            }
            // Groups belong to threads: each role begins with those of the threads before it, and none of another role.
            TtgOp::Roles => op.regions.iter().for_each(|role| drop(self.block(*role, state.clone()))),
            // These neither start what is counted in groups nor wait for it.
            TtgOp::Source(..)
            | TtgOp::SourceRows { .. }
            | TtgOp::Acquire(_)
            | TtgOp::Poisoned
            | TtgOp::ReadPerm
            | TtgOp::View { .. }
            | TtgOp::Read
            | TtgOp::Release
            | TtgOp::ComputeIssue
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

    fn is_counted(&self, pipe: Pipe) -> bool {
        self.counted.get(pipe.index()) == Some(&true)
    }

    fn branch(&mut self, id: OpId, mut state: State) -> Option<State> {
        let op = self.kernel.op(id);
        // A branch that fills a stage or does not: its commit is put behind it, so that both paths commit one group.
        let filled = only_fills(self.kernel, id).filter(|filled| filled.iter().all(|p| self.is_counted(*p)));
        if let Some(filled) = filled {
            self.found.commits.insert(id, NvGroup::CpAsync);
            state.commit_stages(&filled, self.deepest);
            return Some(state);
        }
        let mut after = None;
        for region in &op.regions {
            let mut arm = self.block(*region, state.clone());
            let yielded = self.kernel.block(*region).ops.last().map(|last| self.kernel.op(*last));
            if let (Some(arm), Some(yielded)) = (&mut arm, yielded.filter(|last| last.kind == OpKind::Yield)) {
                arm.bind(&yielded.args, &op.results);
            }
            join(&mut after, arm);
        }
        if op.regions.len() < 2 {
            join(&mut after, Some(state));
        }
        after
    }

    fn counted_loop(&mut self, id: OpId, state: State) -> Option<State> {
        let op = self.kernel.op(id);
        let bound = |i: usize| op.args.get(i).and_then(|v| self.kernel.int_constant(*v));
        if let (Some(lo), Some(hi), Some(step @ 1..)) = (bound(0), bound(1), bound(2)) {
            let trips = (hi - lo).max(0).div_euclid(step) + i64::from((hi - lo).max(0) % step > 0);
            // In the first iterations fewer stages are in flight than later. Where all iterations are walked, each wait
            // gets the number of its own iterations; the budget bounds the time for loops in loops. One that is never entered is walked as one of
            // any length: its waits are verified all the same.
            if (1..=WALK.min(self.budget)).contains(&trips) {
                self.budget -= trips;
                let (mut now, mut left) = (Some(self.entered(id, state)), None);
                for _ in 0..trips {
                    let Some(state) = now else { break };
                    let Around { next, exit, .. } = self.iteration(id, state);
                    join(&mut left, exit);
                    now = next;
                }
                if let Some(now) = &mut now {
                    now.bind(carried(self.kernel, op), &op.results);
                }
                join(&mut now, left);
                return now;
            }
        }
        self.around(id, state, true)
    }

    /// The state at the head of a loop when it is entered.
    fn entered(&self, id: OpId, mut state: State) -> State {
        let op = self.kernel.op(id);
        let initial = op.args.get(if op.kind == OpKind::Loop { 0 } else { 3 }..).unwrap_or_default();
        state.bind(initial, carried(self.kernel, op));
        state
    }

    /// Walks the body of a loop once.
    fn iteration(&mut self, id: OpId, state: State) -> Around {
        self.loops.push(Around { id, next: None, exit: None });
        if let Some(body) = self.kernel.op(id).regions.first() {
            self.block(*body, state);
        }
        self.loops.pop().unwrap_or(Around { id, next: None, exit: None })
    }

    /// Walks a loop of any length: the state at its head holds in every iteration, and after a loop with a count.
    fn around(&mut self, id: OpId, state: State, counted: bool) -> Option<State> {
        let op = self.kernel.op(id);
        let mut head = self.entered(id, state);
        loop {
            let Around { next, mut exit, .. } = self.iteration(id, head.clone());
            let before = head.clone();
            if let Some(next) = next {
                head.join(&next);
            }
            // Numbers of younger groups only fall at a join and are not negative, things in flight are values of the
            // kernel, and claims only get fewer: the state at the head changes finitely often. In the end it includes
            // what comes from the back edge, so that it holds in every iteration.
            if head == before {
                if counted {
                    head.bind(carried(self.kernel, op), &op.results);
                    join(&mut exit, Some(head));
                }
                return exit;
            }
        }
    }
}

/// The arguments of a loop's body that its iterations pass on.
fn carried<'k>(kernel: &'k Kernel, looped: &Op) -> &'k [Value] {
    let args = looped.regions.first().map_or(&[][..], |body| &kernel.block(*body).args);
    args.get(usize::from(looped.kind != OpKind::Loop)..).unwrap_or_default()
}

/// The ring of a token.
fn ring_of(kernel: &Kernel, token: Value) -> Option<Pipe> {
    kernel.ty(token).ring()
}

/// The ring of the slot that an operation fills.
fn filled(kernel: &Kernel, id: OpId) -> Option<Pipe> {
    let slot = kernel.op(id).args.first()?;
    if let Ty::Token(Token::Slot, pipe) = kernel.ty(*slot) { Some(pipe) } else { None }
}

/// The rings that a branch fills, in order, if it contains no other operations on rings, has one empty arm, and fills without loops or
/// nested branches.
fn only_fills(kernel: &Kernel, id: OpId) -> Option<Vec<Pipe>> {
    let op = kernel.op(id);
    let mut found = Vec::new();
    let mut arms = 0;
    for region in &op.regions {
        let before = found.len();
        for inner in &kernel.block(*region).ops {
            let op = kernel.op(*inner);
            match op.kind.family() {
                Family::Ttg(TtgOp::AsyncProduce { .. } | TtgOp::Fill(_)) => found.extend(filled(kernel, *inner)),
                Family::Ttg(TtgOp::Acquire(_) | TtgOp::Source(..) | TtgOp::SourceRows { .. }) => {}
                Family::Ttg(_) => return None,
                Family::Local(LocalOp::Copy { asynchronous: true } | LocalOp::Settle { .. }) => return None,
                Family::Data(_) | Family::Local(_) if op.regions.is_empty() => {}
                Family::Flow(Flow::Yield) => {}
                Family::Data(_)
                | Family::Flow(
                    Flow::For(_) | Flow::Loop | Flow::If | Flow::Break(_) | Flow::Continue(_) | Flow::Return,
                )
                | Family::Local(_)
                | Family::Region(_)
                | Family::Nv(_)
                | Family::Amd(_) => return None,
            }
        }
        // If both arms filled, the stages of the second one would come behind those of the first, which are not filled
        // then.
        arms += usize::from(found.len() > before);
    }
    (arms == 1).then_some(found)
}
