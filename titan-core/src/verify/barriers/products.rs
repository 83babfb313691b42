//! Rule 69: an MMA in flight is used once, by the next MMA on its accumulator or by a wait that completes its group, and none is in
//! flight at the end.
//!
//! An MMA belongs to the group of its class that is committed next. A wait for all groups but the `n` newest completes it if at least `n`
//! groups were committed after its own. So each result in flight has an *age*: the number of groups committed since its own, or that its
//! group is open. At joins the minimum age is used; loops are iterated to a fixed point.
//!
//! ```text
//! %d = ttg.nv.wgmma.mma_async ..          open
//! ttg.nv.wgmma.commit_group               0
//! %e = ttg.nv.wgmma.mma_async ..          %d: 0, %e: open
//! ttg.nv.wgmma.commit_group               %d: 1, %e: 0
//! ttg.nv.wgmma.wait_group %d {n = 1}      completes %d, and not %e
//! ```
//!
//! Registers that an MMA reads, or in which it accumulates, must be written before a fence (`ttg.nv.wgmma.fence`) that precedes the MMA,
//! unless the previous MMA wrote them.
//!
//! Deliberately absent: the shared memory that MMAs read, which the claims of rings and barriers between warps cover.

use super::wrong;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Block, Family, Flow, Kernel, LocalOp, NvGroup, NvOp, Op, OpId, OpKind, TtgOp, Ty, Value};
use crate::verify::Error;
use crate::verify::roles::threads;

/// The number of groups committed since the group of an MMA; `None` if that group is open.
type Age = Option<u32>;

/// Ages from this one on are not distinguished.
const OLDEST: u32 = 64;

/// Violations of rule 69.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    if !kernel.values.iter().any(|v| matches!(v.ty, Ty::Compute(..))) {
        return Vec::new();
    }
    let mut run = Run { kernel, loops: Vec::new(), wrong: SortedMap::new() };
    let threads = threads(kernel);
    for (_, block) in &threads {
        run.block(*block, State::new());
    }
    if !kernel.roles.is_empty() {
        run.block(kernel.body, State::new());
    }
    run.wrong.into_iter().map(|(id, title)| wrong(kernel.op(id).loc, title)).collect()
}

type State = SortedMap<Value, Age>;

struct Around {
    args: Vec<Value>,
    results: Vec<Value>,
    next: Vec<State>,
    exits: Vec<State>,
}

struct Run<'k> {
    kernel: &'k Kernel,
    loops: Vec<Around>,
    wrong: SortedMap<OpId, String>,
}

/// Whether a fence in the block of an MMA is between it and the operation that writes an operand in registers.
fn is_fenced(kernel: &Kernel, mma: OpId, operand: Value) -> bool {
    let mut from = operand;
    if !matches!(kernel.ty(from), Ty::Tile(..)) {
        return true;
    }
    // A part of a tile is in registers of the tile.
    while let Some(op) = kernel.def_op(from).filter(|op| matches!(op.kind, OpKind::Local(LocalOp::Slice { .. }))) {
        from = op.args[0];
    }
    let Some(block) = kernel.blocks.iter().find(|block| block.ops.contains(&mma)) else { return false };
    let before: Vec<&Op> = block.ops.iter().take_while(|id| **id != mma).map(|id| kernel.op(*id)).collect();
    let fence = before.iter().rposition(|op| op.kind == OpKind::Nv(NvOp::WgmmaFence));
    fence.is_some_and(|at| before[at..].iter().all(|op| !op.results.contains(&from)))
}

fn join(states: Vec<State>) -> Option<State> {
    states.into_iter().reduce(|mut all, other| {
        for (value, age) in other {
            all.entry(value).and_modify(|own| *own = (*own).min(age)).or_insert(age);
        }
        all
    })
}

impl Run<'_> {
    fn say(&mut self, id: OpId, title: impl Into<String>) {
        self.wrong.entry(id).or_insert_with(|| title.into());
    }

    fn is_in_flight(&self, value: Value) -> bool {
        matches!(self.kernel.ty(value), Ty::Compute(..))
    }

    /// Removes a result in flight from a state, because it is used here.
    fn take(&mut self, id: OpId, value: Value, state: &mut State) -> Age {
        state.remove(&value).unwrap_or_else(|| {
            let name = self.kernel.display_name(value);
            self.say(id, format!("`{name}` is not in flight here: it was used before"));
            Some(OLDEST)
        })
    }

    /// Passes results in flight to other values.
    fn hand(&mut self, id: OpId, (from, to): (&[Value], &[Value]), state: &mut State) {
        let own: Vec<(Value, Value)> =
            from.iter().copied().zip(to.iter().copied()).filter(|(from, _)| self.is_in_flight(*from)).collect();
        let ages: Vec<Age> = own.iter().map(|(from, _)| self.take(id, *from, state)).collect();
        state.extend(own.into_iter().map(|(_, to)| to).zip(ages));
    }

    fn ends(&mut self, id: OpId, state: &State) {
        if let Some(value) = state.keys().next() {
            let name = self.kernel.display_name(*value);
            self.say(id, format!("`{name}` is in flight at the end: nothing waits for it"));
        }
    }

    fn block(&mut self, block: Block, mut state: State) -> Option<State> {
        for id in self.kernel.block(block).ops.clone() {
            state = self.op(id, state)?;
        }
        Some(state)
    }

    fn op(&mut self, id: OpId, mut state: State) -> Option<State> {
        let op = self.kernel.op(id);
        match op.kind.family() {
            Family::Nv(NvOp::Wgmma) => {
                if let Some(value) = op.args.iter().find(|v| !is_fenced(self.kernel, id, **v)) {
                    let name = self.kernel.display_name(*value);
                    self.say(id, format!("no `ttg.nv.wgmma.fence` orders this MMA behind what writes `{name}`"));
                }
                for value in op.args.iter().filter(|v| self.is_in_flight(**v)).copied().collect::<Vec<_>>() {
                    self.take(id, value, &mut state);
                }
                state.extend(op.results.iter().map(|v| (*v, None)));
            }
            Family::Nv(NvOp::Commit { group: NvGroup::Wgmma, .. }) => {
                state.values_mut().for_each(|age| *age = Some(age.map_or(0, |n| (n + 1).min(OLDEST))));
            }
            Family::Nv(NvOp::WaitGroup { group: NvGroup::Wgmma, n, .. }) => {
                for value in &op.args {
                    if self.take(id, *value, &mut state).is_none_or(|age| age < n) {
                        let name = self.kernel.display_name(*value);
                        self.say(id, format!("`{name}` may still be in flight after this wait"));
                    }
                }
            }
            Family::Flow(Flow::For(_) | Flow::Loop) => return self.repeat(id, op, state),
            Family::Flow(Flow::If) => return self.branch(id, op, state),
            Family::Ttg(TtgOp::Roles) | Family::Flow(Flow::Return) => {
                self.ends(id, &state);
                return if op.kind == OpKind::Return { None } else { Some(state) };
            }
            Family::Ttg(TtgOp::Finalize) => self.ends(id, &state),
            Family::Flow(Flow::Break(n) | Flow::Continue(n)) => {
                let leaves = matches!(op.kind, OpKind::Break(_));
                let at = self.loops.len().checked_sub(1 + n as usize)?;
                let to = if leaves { self.loops[at].results.clone() } else { self.loops[at].args.clone() };
                self.hand(id, (&op.args, &to), &mut state);
                if leaves {
                    self.loops[at].exits.push(state)
                } else {
                    self.loops[at].next.push(state)
                }
                return None;
            }
            // The operation around it handles its values.
            Family::Flow(Flow::Yield) => {}
            // No other operation may use results in flight.
            Family::Data(_)
            | Family::Ttg(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => {
                if let Some(value) = op.args.iter().find(|v| self.is_in_flight(**v)) {
                    let name = self.kernel.display_name(*value);
                    self.say(id, format!("`{name}` is in flight here"));
                }
            }
        }
        Some(state)
    }

    fn branch(&mut self, id: OpId, op: &Op, state: State) -> Option<State> {
        let mut ends = Vec::new();
        for arm in &op.regions {
            if let Some(mut end) = self.block(*arm, state.clone()) {
                let last = self.kernel.block(*arm).ops.last().copied();
                let given = last.map_or(&[][..], |last| &self.kernel.op(last).args).to_vec();
                self.hand(last.unwrap_or(id), (&given, &op.results), &mut end);
                ends.push(end);
            }
        }
        if op.regions.len() < 2 {
            ends.push(state);
        }
        let same: SortedSet<Vec<Value>> = ends.iter().map(|end| end.keys().copied().collect()).collect();
        if same.len() > 1 {
            self.say(id, "an MMA is in flight after this branch on one path only");
        }
        join(ends)
    }

    fn repeat(&mut self, id: OpId, op: &Op, mut state: State) -> Option<State> {
        let counted = matches!(op.kind, OpKind::For(_));
        let body = *op.regions.first()?;
        let args = self.kernel.block(body).args.get(usize::from(counted)..).unwrap_or_default().to_vec();
        let init = op.args.get(if counted { 3 } else { 0 }..).unwrap_or_default().to_vec();
        self.hand(id, (&init, &args), &mut state);
        let mut head = state;
        loop {
            self.loops.push(Around {
                args: args.clone(),
                results: op.results.clone(),
                next: Vec::new(),
                exits: Vec::new(),
            });
            self.block(body, head.clone());
            let Around { next, mut exits, .. } = self.loops.pop()?;
            let mut all = next;
            all.push(head.clone());
            let joined = join(all)?;
            if joined != head {
                if !joined.keys().eq(head.keys()) {
                    self.say(id, "this loop does not carry an MMA that is in flight");
                    return None;
                }
                head = joined;
                continue;
            }
            if counted {
                let mut end = head;
                self.hand(id, (&args, &op.results), &mut end);
                exits.push(end);
            }
            return join(exits);
        }
    }
}
