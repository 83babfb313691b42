//! Loops with an unknown iteration count: induction over an arbitrary iteration, peeling, and splitting. [`super`] describes when each is
//! applied.

use super::clock::{Back, Deviations, passed};
use super::fault::{Fault, Stop, Wait};
use super::linear::{Condition, Linear};
use super::run::{Run, loop_of};
use super::state::{Frame, Loop, State};
use crate::ir::{Block, Claim, Family, Flow, OpId, OpKind, Pipe, TtgOp, Value};

/// A role at a loop that is executed together with others.
#[derive(Clone, Debug)]
pub(super) struct Partner {
    pub(super) role: usize,
    /// The number of its iterations per round.
    pub(super) each: i64,
    /// Its remaining iterations.
    left: Linear,
}

/// The outcome of an arbitrary iteration.
enum Iteration {
    /// It returns to the same state. The states after all iterations, and after each exit from the loops.
    Returns(Vec<State>),
    /// It leads to another state.
    Changes,
    /// A branch switches at this iteration.
    SplitAt(Linear),
    /// It has a fault, perhaps only because the first iterations differ from the rest.
    Fails(Fault),
    /// It has a fault, perhaps only because more is assumed to be in flight than is.
    MayFail(Fault),
}

/// The maximum number of iterations of one role per round.
const EACH: i64 = 64;

impl Run<'_> {
    /// Handles roles at loops when no role can step otherwise.
    pub(super) fn loops(
        &mut self,
        state: State,
        goal: &[usize],
        at: &[usize],
        waits: &[Wait],
    ) -> Result<Vec<State>, Stop> {
        // In an example, every loop has a known count; this one depends on data.
        if self.symbols.example.is_some() {
            return Err(Fault::Lost.into());
        }
        // A role for which another one waits is executed ahead.
        // Another role waits for one at a loop: no common round has begun, so the loop's next iteration is executed by
        // itself, if it has one.
        if let Some(ahead) = waits.iter().find_map(|w| self.provider(&state, w).filter(|r| at.contains(r))) {
            return self.ahead(state, goal, &[ahead]);
        }
        // A loop that neither waits nor is waited for is treated alone; the other roles stay where they are.
        let alone = at.iter().position(|r| self.is_independent(&state, *r));
        let at = alone.map_or(at, |i| &at[i..=i]);
        let mut fault = None;
        // Loops of different groups touch different rings. Treating one group alone changes nothing that the others
        // see.
        let groups = self.partners(&state, at);
        self.uneven |= groups.iter().flatten().any(|partner| partner.each != 1);
        for partners in groups {
            // The partner with the fewest rounds bounds the number of common rounds.
            let first = match self.shortest(&state, &partners) {
                Ok(first) => first,
                // Barriers are not counted like rings: loops of different lengths are not split for them.
                Err(_) if !self.objects.is_empty() => continue,
                Err(open) => return self.try_both(&state, &open, goal),
            };
            // Whether a whole round remains must be decided, and not assumed: with `each = 2` and 2 n + 1 iterations, n
            // rounds leave one iteration.
            let whole = Condition::NotNegative(first.left.plus_const(-first.each), true);
            let some = Condition::NotNegative(first.left.clone(), true);
            // Cases: the number of rounds is the number of iterations; undecided, so that both cases are tried and
            // decided here the next time; less than a round, which is executed iteration by iteration; and the
            // quotient.
            let times = match (first.each, state.facts.decide(&some), state.facts.decide(&whole)) {
                (1, Some(true), _) => first.left.clone(),
                (1, _, _) => return self.try_both(&state, &some, goal),
                (_, _, None) => return self.try_both(&state, &whole, goal),
                // Less than a round remains.
                (_, _, Some(false)) => return self.ahead(state, goal, &[first.role]),
                (each, _, Some(true)) => {
                    let mut facts = state.facts.clone();
                    let Some(times) = self.symbols.quotient(&first.left, each, &mut facts) else { continue };
                    let mut state = state.clone();
                    state.facts = facts;
                    return self.rounds(&state, goal, &partners, &times).map_err(|e| e.1);
                }
            };
            match self.rounds(&state, goal, &partners, &times) {
                Ok(ends) => return Ok(ends),
                Err((false, stop)) => return Err(stop),
                Err((true, Stop::Fault(stuck))) => drop(fault.get_or_insert(stuck)),
                Err((true, other)) => return Err(other),
            }
        }
        let apart = at.iter().filter_map(|r| loop_of(&state, *r).map(|l| (*r, l.op, l.left()))).collect::<Vec<_>>();
        Err(fault.unwrap_or(Fault::Apart { loops: apart }).into())
    }

    /// Executes this many rounds of these loops. If that fails, the result says whether something else may be tried.
    fn rounds(
        &mut self,
        state: &State,
        goal: &[usize],
        partners: &[Partner],
        times: &Linear,
    ) -> Result<Vec<State>, (bool, Stop)> {
        let no = |stop| (false, stop);
        let some = Self::at_least_once(times);
        if self.cases && state.facts.decide(&some).is_none() {
            return self.try_both(state, &some, goal).map_err(no);
        }
        let roles: Vec<usize> = partners.iter().map(|p| p.role).collect();
        match self.together(state, partners, times).map_err(no)? {
            Iteration::Returns(next) => self.go_on(next, goal).map_err(no),
            // The state has changed, as when the first rounds use slots that were never used. One round is peeled,
            // which brings the state nearer to the one that repeats; `peeled` counts this and is limited by the number
            // of slots (`may_run_ahead`).
            Iteration::Changes => self.ahead(state.clone(), goal, &roles).map_err(no),
            Iteration::SplitAt(at) => self.split(state, goal, partners, (&at, times)).map_err(no),
            Iteration::Fails(fault @ Fault::Barrier(_)) | Iteration::MayFail(fault) => {
                self.later(state, goal, &roles, fault).map_err(no)
            }
            Iteration::Fails(Fault::Stuck { waits, ended }) => {
                let ahead = waits
                    .iter()
                    .find_map(|w| self.provider(state, &w.wait).filter(|r| roles.contains(r) && roles.len() > 1));
                // The first round may get stuck only because a role must be ahead of another one, as one that fills
                // before a reader which takes two stages at once. One iteration of the role that is waited for is a
                // legal beginning, from which everything is tried again.
                if let Some(ahead) = ahead.filter(|r| self.may_run_ahead(state, *r)) {
                    return self.ahead(state.clone(), goal, &[ahead]).map_err(|stop| {
                        no(if let Stop::Open(_) = stop { stop } else { Fault::Stuck { waits, ended }.into() })
                    });
                }
                let stuck = Fault::Stuck { waits, ended };
                if !self.objects.is_empty() {
                    return self.later(state, goal, &roles, stuck).map_err(no);
                }
                Err((true, stuck.into()))
            }
            Iteration::Fails(other) => Err(no(other.into())),
        }
    }

    /// Executes an iteration that represents others.
    pub(super) fn run_inside(&mut self, state: State, goal: &[usize]) -> Result<Vec<State>, Stop> {
        self.inside += 1;
        let ends = self.run(state, goal);
        self.inside -= 1;
        ends
    }

    fn go_on(&mut self, states: Vec<State>, goal: &[usize]) -> Result<Vec<State>, Stop> {
        let mut ends = Vec::new();
        for state in states {
            ends.extend(self.run(state, goal)?);
        }
        Ok(ends)
    }

    /// The roles at loops, grouped by common rings or barriers.
    fn partners(&self, state: &State, at: &[usize]) -> Vec<Vec<Partner>> {
        let left = |r: usize| loop_of(state, r).map_or_else(Linear::default, Loop::left);
        let alike = |a: usize, b: usize| left(a).minus(&left(b)).as_constant().is_some();
        let joined = |a: usize, b: usize| self.share_a_ring(state, a, b) || (!self.objects.is_empty() && alike(a, b));
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for role in at {
            // Groups that the new role joins become one: sharing a ring is not transitive by itself, the groups are.
            // Each role is looked at once.
            let (with, mut rest): (Vec<_>, Vec<_>) =
                groups.into_iter().partition(|group| group.iter().any(|other| joined(*other, *role)));
            let mut group = with.concat();
            group.push(*role);
            group.sort_unstable();
            rest.push(group);
            groups = rest;
        }
        groups.sort();
        groups
            .into_iter()
            .map(|roles| {
                let each = self.rates(state, &roles);
                roles.into_iter().zip(each).map(|(role, each)| Partner { role, each, left: left(role) }).collect()
            })
            .collect()
    }

    /// The number of iterations of each role per round, so that rings are filled as often as they are read: one each if unknown.
    fn rates(&self, state: &State, roles: &[usize]) -> Vec<i64> {
        let ones = vec![1; roles.len()];
        if !self.objects.is_empty() || self.single {
            return ones;
        }
        let body = |r: usize| loop_of(state, r).and_then(|l| self.kernel.op(l.op).regions.first().copied());
        // Each rate as a fraction of the first one's.
        let mut rates: Vec<Option<(i64, i64)>> = vec![None; roles.len()];
        if let Some(first) = rates.first_mut() {
            *first = Some((1, 1));
        }
        // A rate is known once that of a role with a common ring is: fills of one per iteration against reads of two
        // give 1 and 1/2, so the first role has two iterations in a round. Each round of the loop finds at least one
        // more rate if there is one to be found.
        for _ in 0..roles.len() {
            for (a, b) in (0..roles.len()).flat_map(|a| (0..roles.len()).map(move |b| (a, b))) {
                let (Some((n, d)), None, Some(x), Some(y)) = (rates[a], rates[b], body(roles[a]), body(roles[b]))
                else {
                    continue;
                };
                let uses = |block, pipe| self.uses(block, pipe, true).or_else(|| self.uses(block, pipe, false));
                let shared = (0..self.kernel.pipes.len()).map(Pipe::new);
                rates[b] = shared
                    .filter_map(|p| Some((uses(x, p)?, uses(y, p)?)))
                    .next()
                    .map(|(own, other)| (n.saturating_mul(own), d.saturating_mul(other)));
            }
        }
        let common = rates.iter().flatten().fold(1i64, |all, (_, d)| least_multiple(all, *d));
        let each: Option<Vec<i64>> = rates
            .iter()
            .map(|r| r.and_then(|(n, d)| n.checked_mul(common)?.checked_div(d)).filter(|n| *n > 0))
            .collect();
        let Some(each) = each else { return ones };
        // The shortest round: a longer one would demand more iterations to remain than necessary.
        let divisor = each.iter().fold(0, |a, b| divisor(a, *b)).max(1);
        let each: Vec<i64> = each.iter().map(|n| n / divisor).collect();
        if each.iter().all(|n| *n <= EACH) { each } else { ones }
    }

    /// The number of times that a block fills or reads a ring, if that is a positive constant; branches count as taken, and of two arms the
    /// one with more. This is a guess: rounds are executed, and other numbers are tried ([`Run::single`]) if they leave the rings changed.
    fn uses(&self, block: Block, pipe: Pipe, fills: bool) -> Option<i64> {
        let mut sum = 0i64;
        for id in &self.kernel.block(block).ops {
            let op = self.kernel.op(*id);
            let filled =
                matches!(op.kind, OpKind::Ttg(TtgOp::Acquire(p) | TtgOp::Claim(Claim::Acquired, p)) if p == pipe);
            let read = matches!(op.kind, OpKind::Ttg(TtgOp::Ready(p) | TtgOp::Claim(Claim::Next, p)) if p == pipe);
            let own = if fills { filled } else { read };
            let regions = op.regions.iter().filter_map(|r| self.uses(*r, pipe, fills));
            let inside: i64 = if op.kind == OpKind::If { regions.max().unwrap_or(0) } else { regions.sum() };
            let times = match op.kind.family() {
                Family::Flow(Flow::For(_)) if inside > 0 => {
                    let [lo, hi, step] = [0, 1, 2].map(|i| self.kernel.int_constant(op.args[i]));
                    let (lo, hi, step) = (lo?, hi?, step.filter(|s| *s > 0)?);
                    (hi - lo + step - 1).div_euclid(step).max(0)
                }
                Family::Flow(Flow::Loop) if inside > 0 => return None,
                // These have no regions, or regions that are executed once.
                Family::Flow(_)
                | Family::Data(_)
                | Family::Ttg(_)
                | Family::Local(_)
                | Family::Region(_)
                | Family::Nv(_)
                | Family::Amd(_) => 1,
            };
            sum = sum.checked_add(inside.checked_mul(times)?.checked_add(i64::from(own))?)?;
        }
        Some(sum).filter(|n| *n > 0)
    }

    /// The partner with the fewest remaining rounds; or an undecided condition that determines it.
    fn shortest<'p>(&self, state: &State, partners: &'p [Partner]) -> Result<&'p Partner, Condition> {
        let (first, others) = partners.split_first().ok_or(Condition::Known(true))?;
        others.iter().try_fold(first, |least, other| {
            // The one with fewer rounds, left / each, without dividing: left(a) · each(b) ≥ left(b) · each(a) says that
            // b has no more rounds than a.
            let room = least.left.times(other.each).plus(-least.each, &other.left);
            let open = Condition::NotNegative(room, true);
            match state.facts.decide(&open) {
                Some(true) => Ok(other),
                Some(false) => Ok(least),
                None => Err(open),
            }
        })
    }

    /// Whether the loop at which a role is uses no rings and barriers.
    fn is_independent(&self, state: &State, role: usize) -> bool {
        let body = loop_of(state, role).and_then(|l| self.kernel.op(l.op).regions.first().copied());
        body.is_some_and(|body| {
            let mut alone = true;
            self.kernel.walk_block(body, &mut |_, op| {
                let tokens = op.args.iter().chain(&op.results).any(|v| self.kernel.ty(*v).is_linear());
                alone &=
                    !tokens && !matches!(op.kind, OpKind::Ttg(TtgOp::Claim(..))) && self.objects.names(op).is_empty();
            });
            alone
        })
    }

    /// After a fault in an arbitrary iteration, tries again after peeling one: the first iterations may differ from the rest.
    fn later(&mut self, state: &State, goal: &[usize], roles: &[usize], fault: Fault) -> Result<Vec<State>, Stop> {
        if !roles.iter().all(|r| self.may_run_ahead(state, *r)) {
            return Err(fault.into());
        }
        self.ahead(state.clone(), goal, roles)
            .map_err(|other| if let Stop::Fault(Fault::Apart { .. }) = other { fault.into() } else { other })
    }

    /// Executes one iteration of the loops of these roles, if they have one left.
    fn ahead(&mut self, state: State, goal: &[usize], roles: &[usize]) -> Result<Vec<State>, Stop> {
        for role in roles {
            if !self.may_run_ahead(&state, *role) {
                let of = |r: &usize| loop_of(&state, *r).map(|l| (*r, l.op, l.left()));
                return Err(Fault::Apart {
                    loops: roles.iter().filter_map(of).collect::<Vec<(usize, OpId, Linear)>>(),
                }
                .into());
            }
            // Whether there is an iteration must be decided before it is executed: an iteration that is not there would
            // fill a ring that stays full.
            let left = loop_of(&state, *role).map_or_else(Linear::default, Loop::left);
            let some = Condition::NotNegative(left.plus_const(-1), true);
            if state.facts.decide(&some).is_none() {
                return self.try_both(&state, &some, goal);
            }
        }
        let mut state = state;
        for role in roles {
            if let Some(Frame::Loop(l)) = state.roles[*role].frames.last_mut() {
                l.peeled += 1;
            }
            self.enter(&mut state, *role)?;
        }
        self.run(state, goal)
    }

    /// Executes one arbitrary iteration of all these loops for `times` rounds.
    fn together(&mut self, state: &State, partners: &[Partner], times: &Linear) -> Result<Iteration, Stop> {
        let mut deviations = Deviations::default();
        loop {
            // Each round of this loop has weakened the hypothesis: `arbitrary` returns `None` only if it has added
            // something to `deviations`, which has finitely many values, objects and accesses to add. So it ends.
            let asked = self.symbols.required.clone();
            let mut done = self.arbitrary(state, partners, times, &mut deviations);
            if deviations.has_more_in_flight() {
                done = match done {
                    Err(Stop::Fault(fault)) | Ok(Some(Iteration::Fails(fault))) => Ok(Some(Iteration::MayFail(fault))),
                    other => other,
                };
            }
            // The conditions on the launch from an attempt that was given up are not needed.
            if !matches!(done, Ok(Some(Iteration::Returns(_)))) {
                self.symbols.required = asked;
            }
            if let Some(done) = done? {
                return Ok(done);
            }
        }
    }

    /// As [`Run::together`]; `None` if an iteration deviated from the hypothesis, which is recorded.
    fn arbitrary(
        &mut self,
        state: &State,
        partners: &[Partner],
        times: &Linear,
        deviations: &mut Deviations,
    ) -> Result<Option<Iteration>, Stop> {
        // A weaker state knows less, or has more in flight. Whatever is shown for it holds for the state itself.
        let state = &deviations.weakened(state);
        let plan = match self.plan(state, partners, times, deviations) {
            Err(Stop::Fault(fault @ Fault::Stuck { .. })) => return Ok(Some(Iteration::Fails(fault))),
            other => other?,
        };
        // About the number i of the round, nothing is assumed but 0 ≤ i < times. What is shown for it holds for every
        // round therefore.
        let counter = (self.symbols.counter(), self.serial);
        let i = Linear::atom(counter.0);
        let mut once = state.clone();
        once.facts.assume(&Condition::NotNegative(i.clone(), true), true);
        once.facts.assume(&Condition::NotNegative(times.minus(&i).plus_const(-1), true), true);
        let mut goal = vec![usize::MAX; state.roles.len()];
        for p in partners {
            goal[p.role] = once.roles[p.role].frames.len();
            // The loops are in round i: i rounds are done, values that they carry are unknown, and clocks have the
            // values of the hypothesis.
            self.skip(&mut once, p, &i);
        }
        self.shift(&mut once, &plan, deviations, &i);
        for p in partners {
            if let Some(Frame::Loop(l)) = once.roles[p.role].frames.last_mut() {
                l.quota = p.each;
            }
        }
        // How far clocks have advanced until round i is known only when this round is known to return to the same
        // state. Stated times are checked then.
        let timed = std::mem::replace(&mut self.timed, false);
        self.counters.push(counter);
        let ends = self.run_inside(once.clone(), &goal);
        self.counters.pop();
        self.timed = timed;
        let ends = match ends {
            Ok(ends) => ends,
            Err(Stop::SplitAt { counter: of, at }) if of == counter.0 => return Ok(Some(Iteration::SplitAt(at))),
            Err(Stop::Fault(fault @ (Fault::Barrier(_) | Fault::Stuck { .. }))) => {
                return Ok(Some(Iteration::Fails(fault)));
            }
            Err(other) => return Err(other),
        };
        // An end with fewer frames has left a loop: it goes on behind the loop, for an arbitrary i, and is no state at
        // the head.
        let inside = |end: &State| partners.iter().all(|p| end.roles[p.role].frames.len() >= goal[p.role]);
        let (stays, mut leaves): (Vec<State>, Vec<State>) = ends.into_iter().partition(inside);
        if self.check_induction(&plan, &once, &stays, &i, deviations) {
            return Ok(None);
        }
        let roles: Vec<usize> = partners.iter().map(|p| p.role).collect();
        if deviations.fewer_clocks(state, &stays, &roles) {
            return Ok(None);
        }
        // This is the step of the induction. The base is `state` itself: before round 0 no round is done, and nothing
        // is shifted.
        match deviations.back(state, &stays, &roles) {
            Back::Same => {}
            Back::More => return Ok(None),
            Back::Other => return Ok(Some(Iteration::Changes)),
        }
        let passed = passed(&stays, state, |by| !self.symbols.depends(by, counter));
        if self.timed && self.writes_times() {
            self.tick(&mut once, &passed, &i);
            self.counters.push(counter);
            let checked = self.run_inside(once, &goal);
            self.counters.pop();
            leaves = checked?.into_iter().filter(|end| !inside(end)).collect();
        } else {
            leaves.iter_mut().for_each(|end| self.tick(end, &passed, &i));
        }
        // After all rounds: the state from before, shifted by what `times` rounds advance the clocks. It stands beside
        // the cases that left a loop in some round, so that whatever happens is one of the states returned.
        let mut next = state.clone();
        partners.iter().for_each(|p| self.skip(&mut next, p, times));
        self.tick(&mut next, &passed, times);
        self.shift(&mut next, &plan, deviations, times);
        Self::hand_written_on(&mut next, &stays, times);
        leaves.insert(0, next);
        Ok(Some(Iteration::Returns(leaves)))
    }

    /// Moves past this many rounds of a loop. Carried values other than tokens are unknown afterwards.
    fn skip(&self, state: &mut State, partner: &Partner, rounds: &Linear) {
        let Some(l) = loop_of(state, partner.role) else { return };
        let args: Vec<Value> = self.carried(self.kernel.op(l.op));
        for arg in args {
            state.roles[partner.role].env.known.remove(&arg);
        }
        if let Some(Frame::Loop(l)) = state.roles[partner.role].frames.last_mut() {
            l.done = l.done.plus(partner.each, rounds);
            l.peeled = 0;
        }
    }

    /// Splits the loops at the iteration at which a branch in them switches.
    fn split(
        &mut self,
        state: &State,
        goal: &[usize],
        partners: &[Partner],
        (at, times): (&Linear, &Linear),
    ) -> Result<Vec<State>, Stop> {
        // Cases: before the first iteration, after the last one, in between.
        let before = Condition::NotNegative(at.times(-1), true);
        let after = Condition::NotNegative(at.minus(times), true);
        for open in [&before, &after] {
            if state.facts.decide(open).is_none() {
                return self.try_both(state, open, goal);
            }
        }
        if state.facts.decide(&before) == Some(true) || state.facts.decide(&after) == Some(true) {
            return Err(Fault::Lost.into());
        }
        let roles: Vec<usize> = partners.iter().map(|p| p.role).collect();
        match self.together(state, partners, at)? {
            Iteration::Returns(next) => self.go_on(next, goal),
            Iteration::Changes => self.ahead(state.clone(), goal, &roles),
            Iteration::SplitAt(other) => self.split(state, goal, partners, (&other, at)),
            Iteration::Fails(fault @ Fault::Barrier(_)) | Iteration::MayFail(fault) => {
                self.later(state, goal, &roles, fault)
            }
            Iteration::Fails(fault) => Err(fault.into()),
        }
    }
}

fn divisor(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

fn least_multiple(a: i64, b: i64) -> i64 {
    (a / divisor(a, b).max(1)).saturating_mul(b)
}
