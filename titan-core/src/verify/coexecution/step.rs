//! The effect of one operation, executed by one role.

use super::linear::{Condition, Linear};
use super::run::{Choices, Fault, Run, Step, Wait, defect};
use super::state::{Frame, Index, Loop, State, TokenState};
use super::values::{Known, Open};
use crate::ir::{Family, Flow, ForKind, NvOp, Op, OpId, OpKind, Pipe, RegionOp, TtgOp, Ty, Value};

/// An operation and its number.
type Named<'k> = (OpId, &'k Op);

/// Loops with at most this many iterations are executed iteration by iteration.
const UNROLL: i64 = 64;

impl<'k> Run<'k> {
    /// Executes the next step of a role, if possible.
    pub(in crate::verify) fn step(&mut self, state: &mut State, role: usize) -> Result<Step, Fault> {
        match state.roles[role].frames.last() {
            None => Ok(Step::Ended),
            Some(Frame::Loop(l)) => {
                let left = l.left();
                if l.quota > 0 {
                    self.enter(state, role)?;
                    return Ok(Step::Moved);
                }
                // Barriers compare numbers by their form, and a number that was found by facts may have another form in
                // the next round.
                let number = if self.objects.is_empty() { state.facts.number(&left) } else { left.as_constant() };
                if number.map_or_else(|| state.facts.is_not_negative(&left.times(-1)), |n| n <= 0) {
                    self.exit(state, role)?;
                    return Ok(Step::Moved);
                }
                // An example proves a fault only if everything is executed.
                if number.is_some_and(|n| n <= UNROLL || self.symbols.example.is_some()) {
                    self.enter(state, role)?;
                    return Ok(Step::Moved);
                }
                Ok(Step::AtLoop)
            }
            Some(Frame::Block(block, at)) => match self.kernel.block(*block).ops.get(*at) {
                Some(id) => self.op(state, role, *id),
                None => Ok(Step::Ended),
            },
        }
    }

    /// Moves past the next operation.
    fn advance(state: &mut State, role: usize) -> Step {
        if let Some(Frame::Block(_, at)) = state.roles[role].frames.last_mut() {
            *at += 1;
        }
        Step::Moved
    }

    fn op(&mut self, state: &mut State, role: usize, id: OpId) -> Result<Step, Fault> {
        let kernel = self.kernel;
        let op = kernel.op(id);
        if op.kind.is_terminator() {
            return self.leave(state, role, id, op);
        }
        // It touches no ring, barrier or memory, and nothing in it does: what it computes is found from its definition
        // when it is asked for.
        if !self.events.contains(&id) {
            return Ok(Self::advance(state, role));
        }
        match op.kind.family() {
            Family::Flow(Flow::For(kind)) => self.begin(state, role, (id, op), kind),
            Family::Flow(Flow::Loop) => match self.polled(op) {
                // A loop that polls one barrier until its phase is complete is a wait.
                Some((picks, poll)) => {
                    for pick in picks {
                        self.barrier_event(state, role, pick)?;
                    }
                    Ok(Self::waits(self.barrier_wait(state, role, poll)?, state, role))
                }
                None => Err(Fault::Endless { role, op: id }),
            },
            Family::Flow(Flow::If) => {
                if let Some(wait) = self.peeked(state, role, op) {
                    return Ok(Self::waits(self.barrier_wait(state, role, wait)?, state, role));
                }
                self.symbols.open = Open::default();
                let condition = self.symbols.condition(op.args[0], &state.roles[role].env, &mut state.facts);
                if let Some(open) = self.choice() {
                    return Ok(Step::AtBranch(open));
                }
                Ok(match state.facts.decide(&condition) {
                    Some(first) => {
                        // The branch stays the current operation of the frame below, until a `yield` passes it.
                        let arm = op.regions[usize::from(!first)];
                        state.roles[role].frames.push(Frame::Block(arm, 0));
                        Step::Moved
                    }
                    None => Step::AtBranch(condition),
                })
            }
            Family::Flow(Flow::Yield | Flow::Break(_) | Flow::Continue(_) | Flow::Return) => {
                defect(id, "a terminator in the middle of a block")
            }
            Family::Ttg(TtgOp::Claim(claim, pipe)) => {
                Ok(Self::waits(self.claimed(state, role, (id, op), (*claim, *pipe))?, state, role))
            }
            Family::Ttg(ttg) => Ok(Self::waits(self.event(state, role, (id, op), ttg)?, state, role)),
            Family::Nv(nv) if !self.claims.events.is_empty() => {
                self.touched(state, role, id)?;
                self.grouped(state, role, nv);
                Self::met(kernel, state, role, op);
                Ok(Self::advance(state, role))
            }
            Family::Region(_) if !self.claims.events.is_empty() => {
                self.touched(state, role, id)?;
                Ok(Self::advance(state, role))
            }
            Family::Region(_) | Family::Nv(_) | Family::Amd(_) => {
                Ok(Self::waits(self.barrier_event(state, role, (id, op))?, state, role))
            }
            // Accesses to outputs of bulk stores, and accesses to rings by claims.
            Family::Data(_) | Family::Local(_) => {
                self.output_access(state, role, (id, op))?;
                self.touched(state, role, id)?;
                Self::met(kernel, state, role, op);
                Ok(Self::advance(state, role))
            }
        }
    }

    /// The undecided condition of a select, minimum or maximum in a bound or condition, if such cases are distinguished.
    fn choice(&mut self) -> Option<Condition> {
        let Open { extreme, other } = std::mem::take(&mut self.symbols.open);
        let met = match (&extreme, &other) {
            (_, Some(_)) => Choices::All,
            (Some(_), None) => Choices::Extremes,
            (None, None) => Choices::None,
        };
        self.undecided = self.undecided.max(met);
        match self.choices {
            Choices::None => None,
            Choices::Extremes => extreme,
            Choices::All => other.or(extreme),
        }
    }

    /// Moves past the next operation, unless it waits.
    fn waits(wait: Option<Wait>, state: &mut State, role: usize) -> Step {
        wait.map_or_else(|| Self::advance(state, role), Step::Blocked)
    }

    /// The poll of a loop that does nothing else and exits when the phase is complete.
    fn polled(&self, op: &Op) -> Option<(Vec<Named<'k>>, Named<'k>)> {
        let kernel = self.kernel;
        let [body] = op.regions[..] else { return None };
        let own = kernel.block(body);
        let (picks, matters): (Vec<Named<'k>>, Vec<Named<'k>>) = own
            .ops
            .iter()
            .filter(|o| self.events.contains(*o))
            .map(|o| (*o, kernel.op(*o)))
            .partition(|(_, op)| matches!(op.kind, OpKind::Nv(NvOp::MbarrierAt) | OpKind::Region(RegionOp::At)));
        let [(id, poll), (_, branch)] = matters[..] else { return None };
        let arms: Vec<Vec<&OpKind>> =
            branch.regions.iter().map(|b| kernel.block(*b).ops.iter().map(|o| &kernel.op(*o).kind).collect()).collect();
        let [first, second] = &arms[..] else { return None };
        // The only loop whose number of iterations depends on other roles that is accepted. How often it polls shows
        // nowhere: it carries nothing, and does nothing else, so that it equals a wait that blocks.
        let ends = own.args.is_empty() && own.ops.last().is_some_and(|o| kernel.op(*o).kind == OpKind::Continue(0));
        let asks = matches!(poll.kind, OpKind::Nv(NvOp::TryWait | NvOp::TestWait));
        let told = branch.kind == OpKind::If && branch.args == poll.results;
        let leaves = first[..] == [&OpKind::Break(0)] && matches!(second[..], [OpKind::Yield | OpKind::Continue(0)]);
        (ends && asks && told && leaves).then_some((picks, (id, poll)))
    }

    /// Enters a loop with an iteration count.
    fn begin(&mut self, state: &mut State, role: usize, (id, op): (OpId, &Op), kind: ForKind) -> Result<Step, Fault> {
        self.symbols.open = Open::default();
        let [lo, hi, step] = [0, 1, 2].map(|i| self.bound(state, role, op.args[i]));
        if let Some(open) = self.choice() {
            return Ok(Step::AtBranch(open));
        }
        let found = [(op.args[0], &lo), (op.args[1], &hi), (op.args[2], &step)];
        for (value, l) in found.into_iter().filter(|(_, l)| l.as_constant().is_none()) {
            // What is found first stays, so that a later loop of the same iteration with this bound has the same number
            // of iterations (see `Bounds`).
            state.roles[role].bounds().entry(value).or_insert_with(|| l.clone());
        }
        let span = hi.minus(&lo);
        let (total, index) = match (kind, step.as_constant()) {
            (ForKind::Sequential | ForKind::Pipelined, Some(step)) if step > 0 => {
                let some = Condition::NotNegative(span.clone(), true);
                let total = match state.facts.decide(&some) {
                    // Whether the loop executes at all is a case of its own: with `hi - lo` iterations for both cases,
                    // a negative number of them would be subtracted.
                    None => return Ok(Step::AtBranch(some)),
                    Some(false) => Linear::default(),
                    Some(true) => self.symbols.trips(&span, step, &mut state.facts),
                };
                (total, Index::Steps { lo, step })
            }
            (_, _) => {
                (self.symbols.dealt(kind, [&lo, &hi, &step], &mut state.facts), Index::Dealt(kind, [lo, hi, step]))
            }
        };
        let args = self.carried(op);
        let known: Vec<Option<Known>> = op.args[3..].iter().map(|v| self.value(*v, state, role)).collect();
        self.hand_pairs_on(state, role, id, (&op.args[3..], &args), true);
        let here = &mut state.roles[role];
        for ((from, to), known) in op.args[3..].iter().zip(&args).zip(known) {
            bind(here, *from, *to, known);
        }
        here.frames.push(Frame::Loop(Loop {
            op: id,
            index,
            done: Linear::default(),
            total,
            quota: 0,
            peeled: 0,
            bounds: Box::default(),
        }));
        Ok(Step::Moved)
    }

    /// A bound of a loop: as it was found before, if a loop of this iteration has had the same.
    fn bound(&mut self, state: &mut State, role: usize, value: Value) -> Linear {
        match state.roles[role].bounds().get(&value).cloned() {
            Some(found) => state.facts.number(&found).map_or(found, Linear::constant),
            None => self.symbols.int(value, &state.roles[role].env, &mut state.facts),
        }
    }

    /// The carried arguments of a loop.
    pub(in crate::verify) fn carried(&self, op: &Op) -> Vec<Value> {
        let body = op.regions.first().map_or(&[][..], |b| &self.kernel.block(*b).args);
        body.get(1..).unwrap_or_default().to_vec()
    }

    /// The symbolic value of an operand that is passed on. Unless it is relevant, no conditions are imposed on the launch for it.
    fn value(&mut self, value: Value, state: &mut State, role: usize) -> Option<Known> {
        let speculative = !self.deciding.contains(&value);
        let before = std::mem::replace(&mut self.symbols.speculative, speculative);
        let known = self.handed_on(value, state, role);
        self.symbols.speculative = before;
        known
    }

    fn handed_on(&mut self, value: Value, state: &mut State, role: usize) -> Option<Known> {
        match self.kernel.ty(value) {
            Ty::I32 => Some(Known::Int(self.symbols.int(value, &state.roles[role].env, &mut state.facts))),
            Ty::BOOL => Some(Known::Condition(self.symbols.condition(value, &state.roles[role].env, &mut state.facts))),
            Ty::Scalar(_)
            | Ty::Tile(..)
            | Ty::Tensor(..)
            | Ty::Source(..)
            | Ty::Smem(..)
            | Ty::Compute(..)
            | Ty::Acc(..)
            | Ty::Token(..)
            | Ty::Barrier(_) => None,
        }
    }

    /// Starts the next iteration.
    pub(in crate::verify) fn enter(&mut self, state: &mut State, role: usize) -> Result<(), Fault> {
        let here = &mut state.roles[role];
        // The counter is that of the iteration that begins: `done` is increased after it was used. `quota` falls with
        // each iteration that was asked for.
        let Some(Frame::Loop(l)) = here.frames.last_mut() else { return Err(Fault::Lost) };
        let occupied = state.rings.iter().enumerate().filter(|(_, ring)| !ring.is_empty());
        self.occupied.extend(occupied.map(|(i, _)| (l.op, Pipe::new(i))));
        let op = self.kernel.op(l.op);
        let index = match &l.index {
            Index::Steps { lo, step } => lo.plus(*step, &l.done),
            Index::Dealt(kind, range) => self.symbols.dealt_index(*kind, range, &l.done),
        };
        l.done = l.done.plus_const(1);
        l.bounds.clear();
        l.quota = (l.quota - 1).max(0);
        let Some(body) = op.regions.first().copied() else { return defect(l.op, "a loop without a body") };
        if let Some(arg) = self.kernel.block(body).args.first() {
            here.env.known.insert(*arg, Known::Int(index));
        }
        // From here on, what is loaded is another unknown than in any iteration before, although it is the same value
        // of the program.
        here.env.serial = self.next_serial();
        here.frames.push(Frame::Block(body, 0));
        Ok(())
    }

    /// Leaves a loop at its end: its results are the carried values.
    fn exit(&mut self, state: &mut State, role: usize) -> Result<(), Fault> {
        let Some(Frame::Loop(l)) = state.roles[role].frames.pop() else { return Err(Fault::Lost) };
        let op = self.kernel.op(l.op);
        let args = self.carried(op);
        self.hand_pairs_on(state, role, l.op, (&args, &op.results), false);
        let known: Vec<Option<Known>> = args.iter().map(|v| state.roles[role].env.known.get(v).cloned()).collect();
        for ((from, to), known) in args.iter().zip(&op.results).zip(known) {
            bind(&mut state.roles[role], *from, *to, known);
        }
        Self::advance(state, role);
        Ok(())
    }

    /// Leaves all frames nested in a loop: the innermost one, or one that contains `inner` open loops.
    fn to_loop(state: &mut State, role: usize, inner: u32) {
        let frames = &mut state.roles[role].frames;
        // Each round takes one frame off, and the bottom frame is no loop: this ends.
        let mut more = inner;
        while let Some(frame) = frames.last() {
            match frame {
                Frame::Loop(_) if more == 0 => return,
                Frame::Loop(_) => more -= 1,
                Frame::Block(..) => {}
            }
            frames.pop();
        }
    }

    fn leave(&mut self, state: &mut State, role: usize, id: OpId, op: &Op) -> Result<Step, Fault> {
        match op.kind.family() {
            Family::Flow(Flow::Yield) => {
                state.roles[role].frames.pop();
                let (block, at) = match state.roles[role].frames.last() {
                    // The end of the role.
                    None => return Ok(Step::Moved),
                    Some(Frame::Block(block, at)) => (*block, *at),
                    Some(Frame::Loop(_)) => return defect(id, "a `yield` in the body of a loop"),
                };
                let Some(branch) = self.kernel.block(block).ops.get(at) else {
                    return defect(id, "a `yield` in a region of no operation");
                };
                let results = self.kernel.op(*branch).results.clone();
                self.hand_pairs_on(state, role, *branch, (&op.args, &results), false);
                self.hand_on(state, role, &op.args, &results);
                Ok(Self::advance(state, role))
            }
            // The rules of barriers relate phases to iterations only in loops that run to their end.
            Family::Flow(Flow::Break(_) | Flow::Continue(1..)) if !self.objects.is_empty() => {
                Err(Fault::Early { role, op: id })
            }
            Family::Flow(Flow::Continue(n)) => {
                Self::to_loop(state, role, n);
                let Some(Frame::Loop(l)) = state.roles[role].frames.last() else {
                    return defect(id, "a `continue` outside of the loops that it counts");
                };
                let (around, args) = (l.op, self.carried(self.kernel.op(l.op)));
                self.hand_pairs_on(state, role, around, (&op.args, &args), false);
                self.hand_on(state, role, &op.args, &args);
                Ok(Step::Moved)
            }
            Family::Flow(Flow::Break(n)) => {
                Self::to_loop(state, role, n);
                let Some(Frame::Loop(l)) = state.roles[role].frames.pop() else {
                    return defect(id, "a `break` outside of the loops that it counts");
                };
                let results = self.kernel.op(l.op).results.clone();
                self.hand_pairs_on(state, role, l.op, (&op.args, &results), false);
                self.hand_on(state, role, &op.args, &results);
                Ok(Self::advance(state, role))
            }
            Family::Flow(Flow::Return) => {
                state.roles[role].frames.clear();
                Ok(Step::Moved)
            }
            Family::Flow(Flow::For(_) | Flow::Loop | Flow::If)
            | Family::Data(_)
            | Family::Ttg(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => defect(id, "a block without a terminator"),
        }
    }

    fn hand_on(&mut self, state: &mut State, role: usize, from: &[Value], to: &[Value]) {
        let known: Vec<Option<Known>> = from.iter().map(|v| self.value(*v, state, role)).collect();
        // All are read before any is written: `continue %b, %a` of `carry(%a, %b)` exchanges them.
        let held: Vec<Option<TokenState>> = from.iter().map(|v| state.roles[role].tokens.remove(v)).collect();
        let here = &mut state.roles[role];
        for ((to, known), held) in to.iter().zip(known).zip(held) {
            match known {
                Some(known) => drop(here.env.known.insert(*to, known)),
                None => drop(here.env.known.remove(to)),
            }
            if let Some(held) = held {
                here.tokens.insert(*to, held);
            }
        }
    }
}

/// Passes a value, with its token state, to another.
fn bind(role: &mut super::state::Role, from: Value, to: Value, known: Option<Known>) {
    match known {
        Some(known) => drop(role.env.known.insert(to, known)),
        None => drop(role.env.known.remove(&to)),
    }
    if let Some(held) = role.tokens.remove(&from) {
        role.tokens.insert(to, held);
    }
}
