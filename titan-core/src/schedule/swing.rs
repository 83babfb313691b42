//! Swing modulo scheduling: for each interval from the bounds upward, operations are placed one by one, on both sides of those that
//! are placed already, until an interval has room for all.
//!
//! For an interval there are five tries in three groups, from the shortest schedules to the ones that are most easily found:
//!
//! 1. In swing order. Each operation is placed once, in the free cycle nearest to its neighbours; in a second try, where it leaves the
//!    free cycles of its unit in the fewest pieces, which matters when a unit is nearly always held.
//! 2. Every recurrence for itself, most critical first, and operations that are in the way are placed again; also in both ways.
//!    Dependences between recurrences do not matter here: a later stage satisfies each of them, and does not change which cycle of
//!    the interval is used.
//! 3. The same, with the operations first that hold their units for the longest time.
//!
//! If several tries of a group succeed, the one with the smallest live weight is taken, then the one with the fewest stages.
//!
//! **Why it ends.** Each interval has five tries, each of which places a bounded number of times; intervals end below that of the
//! sequential schedule. The work is counted in steps: one step compares two reservations or follows one edge. When the limit is
//! reached, the search stops and says so. Time plays no role, so the result depends on the arguments alone.
//!
//! Deliberately absent: an exact search. The greatest interval for which this one finds nothing is not proved to have no schedule.

use super::bounds::bounds;
use super::graph::{Graph, Op};
use super::order::{Depths, Problem, swing};
use super::placed::Schedule;
use super::sequence::{placed, sequential};
use super::steps::{Exhausted, Steps};
use super::units::{Search, Table};
use std::cmp::Reverse;
use std::collections::VecDeque;

/// How far the search may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The greatest number of steps.
    pub steps: u64,
    /// The greatest live weight that a schedule may have, if there is a limit.
    pub live: Option<i64>,
    /// The greatest number of stages that a schedule may have, if there is a limit.
    pub stages: Option<i64>,
}

impl Default for Options {
    fn default() -> Self {
        // Some tens of milliseconds. Graphs of inner loops need a hundredth of it.
        Options { steps: 10_000_000, live: None, stages: None }
    }
}

/// A schedule that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The schedule.
    pub schedule: Schedule,
    /// The steps that the search has taken.
    pub steps: u64,
}

/// Why no overlapped schedule was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The limit of steps was reached while this interval was tried.
    Steps {
        /// The interval.
        ii: i64,
    },
    /// The interval that is asked for is below the bounds.
    BelowBounds {
        /// The least possible interval.
        least: i64,
    },
    /// All intervals below that of the sequential schedule were tried.
    NothingShorter,
    /// There are schedules, but all of them have too great a live weight.
    Live {
        /// The least live weight of those that were found.
        least: i64,
    },
    /// The checker has refused the schedule: a defect of the search.
    Refused,
}

/// Placements in a try, for each operation.
const PLACEMENTS: usize = 32;

/// Which of its free cycles an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// The one nearest to its neighbours.
    Near,
    /// One that leaves the remaining free cycles of the unit in the fewest pieces.
    Snug,
}

/// A way to place the operations for an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Try {
    /// One by one in swing order.
    Swing(Choice),
    /// Recurrences apart from each other, then single operations in a topological order.
    Apart(Choice),
    /// Recurrences apart from each other, then single operations by the time for which they hold their units.
    LongestFirst,
}

/// Searches for the schedule with the least interval, and among several tries for that interval for the least live weight.
///
/// # Errors
///
/// Why there is none; [`plan`](super::plan) falls back on the sequential schedule.
pub fn search(graph: &Graph, options: &Options) -> Result<Found, Stop> {
    let least = bounds(graph).least();
    // Upward from the bound, so the first interval with a schedule within the limits is the least one for which this
    // search finds any. The sequential schedule is legal at its own interval: at that interval, overlapping gains
    // nothing.
    let (first, end) = match graph.ii() {
        Some(ii) if ii < least => return Err(Stop::BelowBounds { least }),
        Some(ii) => (ii, ii + 1),
        None => (least, sequential(graph).ii),
    };
    let problem = Problem::new(graph);
    let mut steps = Steps::new(options.steps);
    let mut lightest: Option<i64> = None;
    for ii in first..end {
        let tried = problem.interval(ii, &mut steps).map_err(|Exhausted| Stop::Steps { ii })?;
        let Some(schedule) = tried else { continue };
        // A longer interval has fewer iterations in flight, so going on may satisfy either limit.
        if options.stages.is_some_and(|limit| schedule.stages > limit) {
            continue;
        }
        if options.live.is_none_or(|limit| schedule.live <= limit) {
            return Ok(Found { schedule, steps: options.steps - steps.left() });
        }
        lightest = Some(lightest.map_or(schedule.live, |least| least.min(schedule.live)));
    }
    Err(lightest.map_or(Stop::NothingShorter, |least| Stop::Live { least }))
}

impl Problem<'_> {
    /// The schedule for an interval, if a try finds one.
    fn interval(&self, ii: i64, steps: &mut Steps) -> Result<Option<Schedule>, Exhausted> {
        let depths = Depths::of(self.graph, ii, steps)?;
        // The order depends on the interval, because the lengths of edges between iterations do.
        let order = swing(self, &depths, steps)?;
        let groups: [&[Try]; 3] = [
            &[Try::Swing(Choice::Near), Try::Swing(Choice::Snug)],
            &[Try::Apart(Choice::Near), Try::Apart(Choice::Snug)],
            &[Try::LongestFirst],
        ];
        for group in groups {
            let mut best: Option<Schedule> = None;
            for kind in group {
                let cycles = match kind {
                    Try::Swing(choice) => self.in_order(ii, &order, &depths, *choice, steps)?,
                    Try::Apart(choice) => self.apart(ii, &self.sequence(&order, false), &depths, *choice, steps)?,
                    Try::LongestFirst => self.apart(ii, &self.sequence(&order, true), &depths, Choice::Snug, steps)?,
                };
                let Some(cycles) = cycles else { continue };
                let settled = self.settle(ii, &cycles, steps)?;
                // Both are legal. Settling shortens some lives and may lengthen others, so the better one is taken.
                for schedule in [cycles, settled].map(|cycles| placed(self.graph, ii, &cycles)) {
                    let key = |schedule: &Schedule| (schedule.live, schedule.stages);
                    best = best.filter(|best| key(best) <= key(&schedule)).or(Some(schedule));
                }
            }
            // Later groups find more, but they keep results live for longer. They are for intervals at which nothing
            // else fits.
            if best.is_some() {
                return Ok(best);
            }
        }
        Ok(None)
    }

    /// The order in which operations are placed apart: recurrences in swing order, then single operations.
    fn sequence(&self, order: &[usize], is_longest_first: bool) -> Vec<usize> {
        let of = &self.recurrences.of;
        let mut sequence = order.to_vec();
        sequence.sort_by_key(|op| {
            let is_single = self.recurrences.all[of[*op]].ops.len() == 1;
            match (is_single, is_longest_first) {
                // A stable sort: the swing order stays.
                (false, true | false) => (false, Reverse(0), 0),
                (true, true) => (true, Reverse(self.graph.ops()[*op].occupancy), 0),
                (true, false) => (true, Reverse(0), of[*op]),
            }
        });
        sequence
    }

    /// Places the operations in this order, none of them twice.
    fn in_order(
        &self,
        ii: i64,
        order: &[usize],
        depths: &Depths,
        choice: Choice,
        steps: &mut Steps,
    ) -> Result<Option<Vec<i64>>, Exhausted> {
        let mut state = State::new(self, ii, false);
        for &op in order {
            // Dependences cannot be the reason (see `State`): no cycle of the window has its unit free.
            let Some(place) = state.place(op, depths.depth[op], choice, steps)? else { return Ok(None) };
            state.put(op, place, steps)?;
        }
        Ok(Some(state.cycles.iter().map(|cycle| cycle.unwrap_or(0)).collect()))
    }

    /// Places recurrences apart from each other: only edges within one of them count.
    ///
    /// An operation that finds no free cycle takes one by force, later than the last time, and those that are in its way are placed
    /// again. The number of placements is limited, since operations might displace each other forever.
    fn apart(
        &self,
        ii: i64,
        sequence: &[usize],
        depths: &Depths,
        choice: Choice,
        steps: &mut Steps,
    ) -> Result<Option<Vec<i64>>, Exhausted> {
        let n = sequence.len();
        let mut state = State::new(self, ii, true);
        let mut last: Vec<Option<i64>> = vec![None; n];
        // How often an operation found no free cycle. Those with the most failures are placed first: the others have more choices.
        let mut failures = vec![0_usize; n];
        // The measure that falls is the number of placements that are left, not the number of unplaced operations: that
        // may rise again.
        for _ in 0..PLACEMENTS * n {
            steps.take(n)?;
            // Of equal ones the last one is taken, which is the first of the sequence.
            let unplaced = sequence.iter().rev().filter(|op| state.cycles[**op].is_none());
            let Some(&op) = unplaced.max_by_key(|op| failures[**op]) else {
                let cycles: Vec<i64> = state.cycles.iter().map(|cycle| cycle.unwrap_or(0)).collect();
                return Ok(Some(self.with_stages(ii, cycles)));
            };
            let wanted = state.ready(op).unwrap_or(depths.depth[op]);
            let cycle = match state.place(op, wanted, choice, steps)? {
                Some(cycle) => cycle,
                None => {
                    failures[op] += 1;
                    let (low, high) = state.window(op, wanted);
                    // Later than the last time, so that two operations which displace each other do not do so in the
                    // same cycles again. When the window is used up, its recurrence starts anew, with `last` as it is.
                    let next = last[op].map_or(low, |last| low.max(last + 1));
                    if next > high {
                        // The rest of its recurrence leaves no other cycle: begin again with it.
                        state.remove(&self.recurrences.all[self.recurrences.of[op]].ops, steps)?;
                    }
                    // Removing an operation widens the windows of its recurrence, and never narrows one. Those that
                    // stay are still legal among each other.
                    let in_way = state.table.overlapping(&self.graph.ops()[op], next);
                    state.remove(&in_way, steps)?;
                    next
                }
            };
            last[op] = Some(cycle);
            state.put(op, cycle, steps)?;
        }
        Ok(None)
    }

    /// The same schedule with every operation moved to the earliest free cycle after those that it waits for, the earliest operations
    /// first, and then those that wait for none moved to the latest cycle before their readers.
    ///
    /// Each move keeps the schedule legal: it is limited by the edges on the side to which it leads, and lengthens the distances on the
    /// other side. The cycle where an operation was is free for it, so there always is one.
    fn settle(&self, ii: i64, cycles: &[i64], steps: &mut Steps) -> Result<Vec<i64>, Exhausted> {
        let (ops, edges) = (self.graph.ops(), self.graph.edges());
        let mut state = State::new(self, ii, false);
        for (op, cycle) in cycles.iter().enumerate() {
            state.cycles[op] = Some(*cycle);
            state.table.reserve(op, &ops[op], *cycle);
        }
        let mut cycles = cycles.to_vec();
        let mut order: Vec<usize> = (0..ops.len()).collect();
        order.sort_by_key(|op| (cycles[*op], *op));
        let early = order.iter().map(|op| (*op, Search::Up));
        let moves: Vec<(usize, Search)> = early.chain(order.iter().rev().map(|op| (*op, Search::Down))).collect();
        for (op, search) in moves {
            let ready = state.ready(op);
            let out = self.adjacency.out[op].iter().map(|e| &edges[*e]).filter(|edge| edge.to != op);
            let due = out.map(|edge| cycles[edge.to] - edge.latency + ii * edge.distance).min();
            let (low, high) = match (search, ready, due) {
                (Search::Up, Some(ready), _) => (ready, cycles[op]),
                (Search::Down, None, Some(due)) => (cycles[op], due),
                (Search::Up, None, _) | (Search::Down, _, _) => continue,
            };
            // For the time of the search the operation itself is not in its way, so that its own cycle is found at the
            // latest.
            state.table.release(op, &ops[op]);
            let cycle = state.table.free(&ops[op], (low, high), search, steps)?.unwrap_or(cycles[op]);
            state.table.reserve(op, &ops[op], cycle);
            (cycles[op], state.cycles[op]) = (cycle, Some(cycle));
        }
        Ok(cycles)
    }

    /// Moves each recurrence by whole intervals, so that all dependences between them are satisfied.
    ///
    /// Within a recurrence all differences stay as they are, and no cycle of the interval changes, so nothing that was legal becomes
    /// illegal. Recurrences are visited in a topological order: the ones before do not move any more, and moving this one far enough
    /// satisfies every edge from them.
    fn with_stages(&self, ii: i64, mut cycles: Vec<i64>) -> Vec<i64> {
        let edges = self.graph.edges();
        let shift = |cycles: &mut [i64], ops: &[usize], count: i64| {
            ops.iter().for_each(|op| cycles[*op] += count * ii);
        };
        for (i, component) in self.recurrences.all.iter().enumerate() {
            let into = component.ops.iter().flat_map(|op| &self.adjacency.into[*op]).map(|e| &edges[*e]);
            let missing = into.filter(|edge| self.recurrences.of[edge.from] != i).map(|edge| {
                let early = cycles[edge.from] + edge.latency - ii * edge.distance - cycles[edge.to];
                // Rounded up, also if it is negative.
                -(-early).div_euclid(ii)
            });
            let earliest = component.ops.iter().map(|op| cycles[*op]).min().unwrap_or(0);
            // Example: II = 10, an edge of latency 25 and distance 0 from cycle 3 to cycle 4. It is met from cycle 28
            // on: 24 cycles are missing, so the recurrence moves by three intervals, to cycle 34, and uses the same
            // cycle of the interval as before. A negative number moves it to earlier stages. Without edges into it, it
            // begins in the first stage.
            let count = missing.max().unwrap_or(-earliest.div_euclid(ii));
            shift(&mut cycles, &component.ops, count);
        }
        // Operations that wait for no other recurrence are issued as late as those after them permit: their results are live for less
        // time. Against the order, so that the ones after have moved already.
        for (i, component) in self.recurrences.all.iter().enumerate().rev() {
            let is_inside = |op: usize| self.recurrences.of[op] == i;
            // Moving later by whole intervals keeps every edge into it, and there are none from other recurrences;
            // those out of it limit the number.
            let is_first =
                component.ops.iter().flat_map(|op| &self.adjacency.into[*op]).all(|e| is_inside(edges[*e].from));
            let out = component.ops.iter().flat_map(|op| &self.adjacency.out[*op]).map(|e| &edges[*e]);
            let slack = out
                .filter(|edge| !is_inside(edge.to))
                .map(|edge| (cycles[edge.to] + ii * edge.distance - cycles[edge.from] - edge.latency).div_euclid(ii));
            if let (true, Some(count)) = (is_first, slack.min()) {
                shift(&mut cycles, &component.ops, count);
            }
        }
        cycles
    }
}

/// A partial schedule for an interval.
///
/// `low` and `high` are the earliest and latest cycles that the placed operations leave to each operation, by longest paths over all
/// edges that count. Since no cycle of edges is longer than zero, these bounds are consistent: in whichever cycle of its window an
/// operation is placed, no other window becomes empty. So dependences never fail a try; only units do.
struct State<'p, 'g> {
    problem: &'p Problem<'g>,
    ii: i64,
    /// Whether only edges within recurrences count.
    is_apart: bool,
    table: Table,
    cycles: Vec<Option<i64>>,
    low: Vec<Option<i64>>,
    high: Vec<Option<i64>>,
}

impl<'p, 'g> State<'p, 'g> {
    fn new(problem: &'p Problem<'g>, ii: i64, is_apart: bool) -> Self {
        let n = problem.graph.ops().len();
        let table = Table::new(ii, problem.graph.units().len());
        State { problem, ii, is_apart, table, cycles: vec![None; n], low: vec![None; n], high: vec![None; n] }
    }

    fn op(&self, op: usize) -> &'g Op {
        &self.problem.graph.ops()[op]
    }

    /// The first and last cycle in which an operation may be placed, of which there are at most as many as the interval has: others
    /// use the same cycles of the interval.
    fn window(&self, op: usize, wanted: i64) -> (i64, i64) {
        let reach = self.ii - 1;
        match (self.low[op], self.high[op]) {
            (Some(low), Some(high)) => (low, high.min(low + reach)),
            (Some(low), None) => (low, low + reach),
            (None, Some(high)) => (high - reach, high),
            (None, None) => (wanted, wanted + reach),
        }
    }

    /// The cycle in which everything is there that an operation waits for, as far as it is placed.
    fn ready(&self, op: usize) -> Option<i64> {
        let into = self.problem.adjacency.into[op].iter().map(|e| &self.problem.graph.edges()[*e]);
        into.filter(|edge| edge.from != op)
            .filter_map(|edge| Some(self.cycles[edge.from]? + edge.latency - self.ii * edge.distance))
            .max()
    }

    /// A free cycle for an operation in its window, which begins with the wanted cycle if nothing else limits it.
    fn place(&self, op: usize, wanted: i64, choice: Choice, steps: &mut Steps) -> Result<Option<i64>, Exhausted> {
        let problem = self.problem;
        let edges = problem.graph.edges();
        let is_placed = |other: usize| other != op && self.cycles[other].is_some();
        let has_before = problem.adjacency.into[op].iter().any(|e| is_placed(edges[*e].from));
        let has_after = problem.adjacency.out[op].iter().any(|e| is_placed(edges[*e].to));
        // With readers only, as late as possible; otherwise as early as possible, which is nearest to what is waited for.
        // A result is live from its operation to its last reader. If only readers are placed, the latest cycle shortens
        // the life of this result; if what is waited for is placed, the earliest cycle shortens the lives of operands.
        let is_down = self.high[op].is_some() && (self.low[op].is_none() || has_after && !has_before);
        let reach = self.ii - 1;
        let (low, high) = match self.high[op] {
            Some(latest) if is_down => (self.low[op].map_or(latest - reach, |low| low.max(latest - reach)), latest),
            Some(_) | None => self.window(op, wanted),
        };
        let search = if is_down { Search::Down } else { Search::Up };
        match choice {
            Choice::Near => self.table.free(self.op(op), (low, high), search, steps),
            Choice::Snug => {
                let wanted = if is_down { high } else { low };
                self.table.snug(self.op(op), (low, high), wanted, steps)
            }
        }
    }

    /// Places an operation and narrows the windows of the others.
    fn put(&mut self, op: usize, cycle: i64, steps: &mut Steps) -> Result<(), Exhausted> {
        self.cycles[op] = Some(cycle);
        self.table.reserve(op, self.op(op), cycle);
        self.narrow(op, cycle, steps)
    }

    /// Removes operations, and computes the windows that the remaining ones leave to their recurrences. Others have no edges that
    /// count here: only while recurrences are apart is anything removed.
    fn remove(&mut self, ops: &[usize], steps: &mut Steps) -> Result<(), Exhausted> {
        let recurrences = &self.problem.recurrences;
        for &op in ops {
            self.cycles[op] = None;
            self.table.release(op, self.op(op));
        }
        let mut changed: Vec<usize> = ops.iter().map(|op| recurrences.of[*op]).collect();
        changed.sort_unstable();
        changed.dedup();
        for component in changed {
            let ops = &recurrences.all[component].ops;
            for &op in ops {
                // A window is the intersection of what the placed operations leave. An intersection cannot be undone
                // for one of them, so those of the whole recurrence are computed again from the placed ones that are
                // left.
                (self.low[op], self.high[op]) = (None, None);
            }
            for &op in ops {
                if let Some(cycle) = self.cycles[op] {
                    self.narrow(op, cycle, steps)?;
                }
            }
        }
        Ok(())
    }

    /// Follows the longest paths from an operation that is placed, and to it. It ends because no cycle of edges is longer than zero.
    fn narrow(&mut self, op: usize, cycle: i64, steps: &mut Steps) -> Result<(), Exhausted> {
        let problem = self.problem;
        let of = &problem.recurrences.of;
        let counts = |from: usize, to: usize| !self.is_apart || of[from] == of[to];
        (self.low[op], self.high[op]) = (Some(cycle), Some(cycle));
        let mut left = VecDeque::from([op]);
        while let Some(at) = left.pop_front() {
            for edge in problem.adjacency.out[at].iter().map(|e| &problem.graph.edges()[*e]) {
                steps.take(1)?;
                let Some(low) = self.low[at].filter(|_| counts(edge.from, edge.to)) else { continue };
                let raised = low + edge.latency - self.ii * edge.distance;
                // Only an operation whose bound rises goes into the queue. With no cycle longer than zero, a bound is
                // at most the length of the longest simple path, so each rises finitely often. Example: at II = 5 a
                // cycle with latency 15 and distance 3 has the length 15 - 3 · 5 = 0, and ends after one round.
                if self.low[edge.to].is_none_or(|low| low < raised) {
                    self.low[edge.to] = Some(raised);
                    left.push_back(edge.to);
                }
            }
        }
        left.push_back(op);
        while let Some(at) = left.pop_front() {
            for edge in problem.adjacency.into[at].iter().map(|e| &problem.graph.edges()[*e]) {
                steps.take(1)?;
                let Some(high) = self.high[at].filter(|_| counts(edge.from, edge.to)) else { continue };
                let lowered = high - edge.latency + self.ii * edge.distance;
                if self.high[edge.from].is_none_or(|high| high > lowered) {
                    self.high[edge.from] = Some(lowered);
                    left.push_back(edge.from);
                }
            }
        }
        Ok(())
    }
}
