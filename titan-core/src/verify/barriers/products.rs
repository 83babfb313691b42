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
//! Until an MMA is waited for, no other instruction may access the registers in which it accumulates, or write those of its operand A (PTX ISA,
//! "wgmma.mma_async"). Hence:
//!
//! - A result in flight stays in its registers, its *home*: those in which the first MMA of a chain accumulates. What a loop carries has one
//!   home in all iterations, and so has the result of a branch on all paths. Otherwise registers would be moved while an MMA writes them.
//! - An operation that writes registers which an MMA in flight reads is refused: in a loop, what computes operand A of the next iteration.
//!
//! ```text
//! for .. carry(%x = %d) {                              home of %x: that of %d
//!     %a = cast %s                                     refused: the MMA of the iteration before may still read %a
//!     %y = ttg.nv.wgmma.mma_async %a, %b, %x           home of %y: that of %x; reads %a
//!     ttg.nv.wgmma.commit_group
//!     ttg.nv.wgmma.wait_group {n = 1}                  completes the MMA of the iteration before, and not this one
//!     continue %y                                      right: %y and %x have one home
//! }
//! ```
//!
//! Deliberately absent: the shared memory that MMAs read, which the claims of rings and barriers between warps cover.

use super::wrong;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Block, Def, Family, Flow, Kernel, LocalOp, NvGroup, NvOp, Op, OpId, OpKind, TtgOp, Ty, Value};
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
    let mut run = Run { kernel, loops: Vec::new(), settled: SortedMap::new(), wrong: SortedMap::new() };
    let threads = threads(kernel);
    for (_, block) in &threads {
        run.block(*block, State::default());
    }
    if !kernel.roles.is_empty() {
        run.block(kernel.body, State::default());
    }
    run.wrong.into_iter().map(|(id, title)| wrong(kernel.op(id).loc, title)).collect()
}

/// A result in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InFlight {
    age: Age,
    /// The first result in its registers.
    home: Value,
}

/// What is in flight at a point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    /// The results in flight that nothing has used yet.
    results: SortedMap<Value, InFlight>,
    /// The tiles in registers that MMAs in flight read, with the ages of the last of these. An MMA whose result another MMA has taken still reads.
    reads: SortedMap<Value, Age>,
}

impl State {
    /// Commits the open group.
    fn commit(&mut self) {
        let ages = self.results.values_mut().map(|result| &mut result.age).chain(self.reads.values_mut());
        ages.for_each(|age| *age = Some(age.map_or(0, |n| (n + 1).min(OLDEST))));
    }
}

struct Around {
    /// Whether its results are in the registers of what it carries.
    counted: bool,
    args: Vec<Value>,
    results: Vec<Value>,
    /// The homes of what it carries in flight.
    homes: SortedMap<Value, Value>,
    next: Vec<State>,
    exits: Vec<State>,
}

struct Run<'k> {
    kernel: &'k Kernel,
    loops: Vec<Around>,
    /// The homes of the results of MMAs that were waited for: these stay in their registers.
    settled: SortedMap<Value, Value>,
    wrong: SortedMap<OpId, String>,
}

/// The tiles of which the registers may be those of an operand in registers; none if it is in shared memory.
fn in_registers(kernel: &Kernel, operand: Value) -> Vec<Value> {
    let (mut found, mut open) = (Vec::new(), vec![operand]);
    // This ends: operands are defined before what uses them.
    while let Some(value) = open.pop() {
        if !matches!(kernel.ty(value), Ty::Tile(..)) {
            continue;
        }
        found.push(value);
        let Def::Result(id, _) = kernel.value(value).def else { continue };
        let op = kernel.op(id);
        // The other operations compute their results in registers of their own.
        let rearranges = matches!(
            op.kind,
            OpKind::Local(LocalOp::Slice { .. } | LocalOp::Convert | LocalOp::Stack)
                | OpKind::Reshape(_)
                | OpKind::Permute(_)
                | OpKind::Broadcast { .. }
                | OpKind::Interleave
                | OpKind::Split
        );
        if rearranges {
            open.extend(&op.args);
        }
    }
    found
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

impl Run<'_> {
    fn say(&mut self, id: OpId, title: impl Into<String>) {
        self.wrong.entry(id).or_insert_with(|| title.into());
    }

    fn is_in_flight(&self, value: Value) -> bool {
        matches!(self.kernel.ty(value), Ty::Compute(..))
    }

    /// The state where paths meet before an operation. A result has one home on all of them.
    fn join(&mut self, id: OpId, states: Vec<State>) -> Option<State> {
        let mut states = states.into_iter();
        let mut all = states.next()?;
        for other in states {
            for (value, result) in other.results {
                let own = all.results.entry(value).or_insert(result);
                own.age = own.age.min(result.age);
                if own.home != result.home {
                    self.say(id, self.moved(value));
                }
            }
            for (tile, age) in other.reads {
                all.reads.entry(tile).and_modify(|own| *own = (*own).min(age)).or_insert(age);
            }
        }
        Some(all)
    }

    fn moved(&self, value: Value) -> String {
        let name = self.kernel.display_name(value);
        format!("`{name}` is in flight, and its registers would have to be moved while an MMA writes them")
    }

    /// Removes a result in flight from a state, because it is used here.
    fn take(&mut self, id: OpId, value: Value, state: &mut State) -> InFlight {
        state.results.remove(&value).unwrap_or_else(|| {
            let name = self.kernel.display_name(value);
            self.say(id, format!("`{name}` is not in flight here: it was used before"));
            InFlight { age: Some(OLDEST), home: value }
        })
    }

    /// Passes results in flight to other values.
    fn hand(&mut self, id: OpId, (from, to): (&[Value], &[Value]), state: &mut State) {
        let own: Vec<(Value, Value)> =
            from.iter().copied().zip(to.iter().copied()).filter(|(from, _)| self.is_in_flight(*from)).collect();
        let taken: Vec<InFlight> = own.iter().map(|(from, _)| self.take(id, *from, state)).collect();
        let homes: SortedSet<Value> = taken.iter().map(|result| result.home).collect();
        if homes.len() < taken.len() {
            self.say(id, "two results in flight have the same registers");
        }
        state.results.extend(own.into_iter().map(|(_, to)| to).zip(taken));
    }

    /// Refuses to write registers that an MMA in flight reads.
    fn write(&mut self, id: OpId, values: impl IntoIterator<Item = Value>, state: &mut State) {
        if let Some(value) = values.into_iter().find(|value| state.reads.contains_key(value)) {
            // The parts of an operand are written one after the other: that is one mistake.
            state.reads.clear();
            let name = self.kernel.display_name(value);
            self.say(id, format!("this writes the registers of `{name}`, which an MMA in flight may still read"));
        }
    }

    /// Writes what is passed to other values, unless it is passed to itself.
    fn pass(&mut self, id: OpId, (from, to): (&[Value], &[Value]), state: &mut State) {
        self.write(id, from.iter().zip(to).filter(|(from, to)| from != to).map(|(_, to)| *to), state);
    }

    fn ends(&mut self, id: OpId, state: &State) {
        if let Some(value) = state.results.keys().next() {
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
        self.write(id, op.results.iter().copied(), &mut state);
        match op.kind.family() {
            Family::Nv(NvOp::Wgmma) => self.mma(id, op, &mut state),
            Family::Nv(NvOp::Commit { group: NvGroup::Wgmma, .. }) => state.commit(),
            Family::Nv(NvOp::WaitGroup { group: NvGroup::Wgmma, n, .. }) => {
                state.reads.retain(|_, age| age.is_none_or(|age| age < n));
                for (value, tile) in op.args.iter().zip(&op.results) {
                    let InFlight { age, home } = self.take(id, *value, &mut state);
                    self.settled.insert(*tile, home);
                    if age.is_none_or(|age| age < n) {
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
            Family::Flow(Flow::Break(n)) => return self.leave(id, op, n, state),
            Family::Flow(Flow::Continue(n)) => return self.again(id, op, n, state),
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

    fn mma(&mut self, id: OpId, op: &Op, state: &mut State) {
        if let Some(value) = op.args.iter().find(|v| !is_fenced(self.kernel, id, **v)) {
            let name = self.kernel.display_name(*value);
            self.say(id, format!("no `ttg.nv.wgmma.fence` orders this MMA behind what writes `{name}`"));
        }
        // The sum of an MMA is in the registers of the result that it adds to, if that is in flight, and in its own ones otherwise.
        let mut home = None;
        for value in op.args.iter().filter(|v| self.is_in_flight(**v)).copied().collect::<Vec<_>>() {
            home = Some(self.take(id, value, state).home);
        }
        for value in &op.results {
            let home = home.unwrap_or(*value);
            self.write(id, [home], state);
            state.results.insert(*value, InFlight { age: None, home });
        }
        let read: Vec<Value> = op.args.iter().take(2).flat_map(|v| in_registers(self.kernel, *v)).collect();
        let homes = read.iter().filter_map(|tile| self.settled.get(tile).copied()).collect::<Vec<_>>();
        state.reads.extend(read.into_iter().chain(homes).map(|value| (value, None)));
    }

    fn leave(&mut self, id: OpId, op: &Op, n: u32, mut state: State) -> Option<State> {
        let at = self.loops.len().checked_sub(1 + n as usize)?;
        let Around { counted, args, results, homes, .. } = &self.loops[at];
        let (counted, args, results, homes) = (*counted, args.clone(), results.clone(), homes.clone());
        self.hand(id, (&op.args, &results), &mut state);
        self.pass(id, (&op.args, &results), &mut state);
        if counted {
            self.pass(id, (&op.args, &args), &mut state);
            let at_home = |(arg, result): (&Value, &Value)| {
                state.results.get(result).is_none_or(|result| homes.get(arg) == Some(&result.home))
            };
            if let Some((_, moved)) = args.iter().zip(&results).find(|pair| !at_home(*pair)) {
                self.say(id, self.moved(*moved));
            }
        }
        self.loops[at].exits.push(state);
        None
    }

    fn again(&mut self, id: OpId, op: &Op, n: u32, mut state: State) -> Option<State> {
        let at = self.loops.len().checked_sub(1 + n as usize)?;
        let (args, homes) = (self.loops[at].args.clone(), self.loops[at].homes.clone());
        self.hand(id, (&op.args, &args), &mut state);
        self.pass(id, (&op.args, &args), &mut state);
        for (place, arg) in args.iter().enumerate() {
            let Some(result) = state.results.get_mut(arg) else { continue };
            let home = homes.get(arg).copied().unwrap_or(*arg);
            if result.home != home {
                result.home = home;
                self.say(id, self.moved(op.args.get(place).copied().unwrap_or(*arg)));
            }
        }
        self.loops[at].next.push(state);
        None
    }

    fn branch(&mut self, id: OpId, op: &Op, state: State) -> Option<State> {
        let mut ends = Vec::new();
        for arm in &op.regions {
            if let Some(mut end) = self.block(*arm, state.clone()) {
                let last = self.kernel.block(*arm).ops.last().copied();
                let given = last.map_or(&[][..], |last| &self.kernel.op(last).args).to_vec();
                self.hand(last.unwrap_or(id), (&given, &op.results), &mut end);
                self.write(last.unwrap_or(id), op.results.iter().copied(), &mut end);
                ends.push(end);
            }
        }
        if op.regions.len() < 2 {
            ends.push(state);
        }
        let same: SortedSet<Vec<Value>> = ends.iter().map(|end| end.results.keys().copied().collect()).collect();
        if same.len() > 1 {
            self.say(id, "an MMA is in flight after this branch on one path only");
        }
        self.join(id, ends)
    }

    fn repeat(&mut self, id: OpId, op: &Op, mut state: State) -> Option<State> {
        let counted = matches!(op.kind, OpKind::For(_));
        let body = *op.regions.first()?;
        let args = self.kernel.block(body).args.get(usize::from(counted)..).unwrap_or_default().to_vec();
        let init = op.args.get(if counted { 3 } else { 0 }..).unwrap_or_default().to_vec();
        self.hand(id, (&init, &args), &mut state);
        self.write(id, args.iter().copied(), &mut state);
        let mut head = state;
        // What the loop carries has these homes in every iteration: anything else is refused where an iteration ends, and then has them too.
        let homes: SortedMap<Value, Value> =
            args.iter().filter_map(|arg| Some((*arg, head.results.get(arg)?.home))).collect();
        // This ends: ages only fall and are bounded, results at the head are always the same, and reads are of values of the kernel.
        loop {
            self.loops.push(Around {
                counted,
                args: args.clone(),
                results: op.results.clone(),
                homes: homes.clone(),
                next: Vec::new(),
                exits: Vec::new(),
            });
            self.block(body, head.clone());
            let Around { next, mut exits, .. } = self.loops.pop()?;
            let mut all = next;
            all.push(head.clone());
            let joined = self.join(id, all)?;
            if joined != head {
                if !joined.results.keys().eq(head.results.keys()) {
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
            return self.join(id, exits);
        }
    }
}
