//! Swing modulo scheduling: for each interval from the bounds upward, operations are placed one by one, on both sides of those that
//! are placed already, until an interval has room for all.
//!
//! If the schedule that is found has too many stages or too great a live weight, the interval grows in longer and longer steps until one fits,
//! and from there what is between it and the last one that did not fit is halved again and again.
//!
//! For an interval there are six tries in four groups, from the shortest lives of results to the schedules that are most easily found:
//!
//! 1. In swing order. Each operation is placed once, in the free cycle nearest to its neighbours; in a second try, where it leaves the
//!    free cycles of its unit in the fewest pieces, which matters when a unit is nearly always held.
//! 2. If the interval is what matters ([`Options::is_shortest`]), as early as possible (`iterative.rs`): such iterations have the fewest
//!    stages.
//! 3. Every recurrence for itself, most critical first, and operations that are in the way are placed again; also in both ways.
//!    Dependences between recurrences do not matter here: a later stage satisfies each of them, and does not change which cycle of
//!    the interval is used.
//! 4. The same, with the operations first that hold their units for the longest time.
//!
//! If several tries of a group succeed, the one with the smallest live weight is taken, then the one with the fewest stages.
//!
//! **Why it ends.** Each interval has six tries, each of which places a bounded number of times; intervals end below that of the
//! sequential schedule. The work is counted in steps: one step compares two reservations or follows one edge. When the limit is
//! reached, the search stops and says so. Time plays no role, so the result depends on the arguments alone.
//!
//! Deliberately absent: an exact search. The greatest interval for which this one finds nothing is not proved to have no schedule.

use super::bounds::bounds;
use super::graph::Graph;
use super::live::least_live_weight;
use super::order::{Depths, Problem, swing};
use super::partial::{Choice, State};
use super::placed::Schedule;
use super::sequence::{placed, sequential, weighed};
use super::steps::{Exhausted, PLACEMENTS, Steps};
use super::units;
use std::cmp::Reverse;

/// How far the search may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The greatest number of steps.
    pub steps: u64,
    /// The greatest live weight that a schedule may have, if there is a limit.
    pub live: Option<i64>,
    /// The greatest number of stages that a schedule may have, if there is a limit.
    pub stages: Option<i64>,
    /// Whether the interval is more important than lives. Then all ways to place are tried at an interval before a longer one is, among them the
    /// one with the fewest stages.
    pub is_shortest: bool,
}

impl Default for Options {
    fn default() -> Self {
        // Some tens of milliseconds. Graphs of inner loops need a hundredth of it.
        Options { steps: 10_000_000, live: None, stages: None, is_shortest: false }
    }
}

impl Options {
    fn has_too_many(&self, stages: i64) -> bool {
        self.stages.is_some_and(|limit| stages > limit)
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
        /// The least live weight of those that were found, or what all of an interval have at least.
        least: i64,
    },
    /// The checker has refused the schedule: a defect of the search.
    Refused,
}

/// A way to place the operations for an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Try {
    /// One by one in swing order.
    Swing(Choice),
    /// As early as possible, and operations that are in the way are placed again.
    Iterative,
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
    let mut search = Search { problem: &Problem::new(graph), options, steps: Steps::new(options.steps), known: None };
    let mut lightest: Option<i64> = None;
    let (mut ii, mut refused) = (first, first - 1);
    // This ends: each round has a longer interval, or is the last one.
    while ii < end {
        let step = match search.interval(ii).map_err(|Exhausted| Stop::Steps { ii })? {
            Tried::Fits(cycles) => {
                let (ii, cycles) = search.shortest((ii, cycles), refused);
                let schedule = placed(graph, ii, &cycles);
                return Ok(Found { schedule, steps: options.steps - search.steps.left() });
            }
            // Room may be in the very next interval, so none is left out.
            Tried::HasNoRoom => 1,
            // A longer interval has fewer iterations in flight, so going on may satisfy the limits. How much longer it
            // must be is not known: it grows by more the further it is from the bound, since a single cycle matters
            // the less, and the last one is always tried.
            Tried::IsBeyond { live } => {
                lightest = live.map(|live| lightest.map_or(live, |least| least.min(live))).or(lightest);
                (1 + (ii - first) / 4).min(end - 1 - ii).max(1)
            }
        };
        (refused, ii) = (ii, ii + step);
    }
    Err(lightest.map_or(Stop::NothingShorter, |least| Stop::Live { least }))
}

/// What the tries for one interval have found.
enum Tried {
    /// A schedule within the limits, as the cycles of the operations.
    Fits(Vec<i64>),
    /// A schedule with too many stages, or with too great a live weight, which is given.
    IsBeyond { live: Option<i64> },
    /// None.
    HasNoRoom,
}

/// A search, and what it has found for the last interval.
struct Search<'s, 'g> {
    problem: &'s Problem<'g>,
    options: &'s Options,
    steps: Steps,
    /// The order in which operations are placed that have these depths.
    known: Option<(Depths, Vec<usize>)>,
}

impl Search<'_, '_> {
    /// A schedule with an interval that is greater than one that was refused, whose next shorter one is refused too.
    ///
    /// The intervals between are halved again and again, so that this ends; where the steps do, with what was found.
    fn shortest(&mut self, (mut ii, mut cycles): (i64, Vec<i64>), mut refused: i64) -> (i64, Vec<i64>) {
        while ii - refused > 1 {
            // Example: 600 is refused, and 647 fits: 623 is tried next.
            let between = refused + (ii - refused) / 2;
            match self.interval(between) {
                Ok(Tried::Fits(found)) => (ii, cycles) = (between, found),
                Ok(Tried::IsBeyond { .. } | Tried::HasNoRoom) => refused = between,
                Err(Exhausted) => break,
            }
        }
        (ii, cycles)
    }

    /// The schedule for an interval, if a try finds one within the limits.
    fn interval(&mut self, ii: i64) -> Result<Tried, Exhausted> {
        let (problem, steps) = (self.problem, &mut self.steps);
        // Nothing is placed if no schedule for the interval keeps the limit of the live weight.
        if let Some(limit) = self.options.live {
            steps.take(problem.graph.edges().len())?;
            let least = least_live_weight(problem.graph, ii);
            if least > limit {
                return Ok(Tried::IsBeyond { live: Some(least) });
            }
        }
        let depths = Depths::of(problem.graph, ii, steps)?;
        // Nor if it has too many stages: an operation is issued as many cycles behind the first one at least.
        if self.options.has_too_many(depths.depth.iter().max().map_or(1, |depth| depth / ii + 1)) {
            return Ok(Tried::IsBeyond { live: None });
        }
        // The order depends on the interval, because the lengths of edges between iterations do. Mostly the paths that
        // are the longest have none of them.
        let known = self.known.take().filter(|(known, _)| *known == depths);
        let (depths, order) = match known {
            Some(known) => known,
            None => {
                let order = swing(problem, &depths, steps)?;
                (depths, order)
            }
        };
        let best = problem.lightest(ii, (&order, &depths), self.options, steps)?;
        self.known = Some((depths, order));
        let Some((weight, cycles)) = best else { return Ok(Tried::HasNoRoom) };
        Ok(if weight.fits(self.options) {
            Tried::Fits(cycles)
        } else {
            Tried::IsBeyond { live: (!weight.has_too_many_stages).then_some(weight.live) }
        })
    }
}

/// What schedules for an interval are compared by, the most important first: one that is within the limits is better than one that is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Weight {
    has_too_many_stages: bool,
    live: i64,
    stages: i64,
}

impl Weight {
    /// Whether a schedule is within the limits.
    fn fits(self, limits: &Options) -> bool {
        !self.has_too_many_stages && limits.live.is_none_or(|limit| self.live <= limit)
    }
}

impl Problem<'_> {
    /// The schedule for an interval of the first group of tries that finds one, or, if the interval is what matters, one within the limits; if none
    /// does, the best of all.
    fn lightest(
        &self,
        ii: i64,
        (order, depths): (&[usize], &Depths),
        limits: &Options,
        steps: &mut Steps,
    ) -> Result<Option<(Weight, Vec<i64>)>, Exhausted> {
        let groups: [&[Try]; 4] = [
            &[Try::Swing(Choice::Near), Try::Swing(Choice::Snug)],
            &[Try::Iterative],
            &[Try::Apart(Choice::Near), Try::Apart(Choice::Snug)],
            &[Try::LongestFirst],
        ];
        let mut best: Option<(Weight, Vec<i64>)> = None;
        for group in groups {
            for kind in group {
                let cycles = match kind {
                    Try::Swing(choice) => self.in_order(ii, order, depths, *choice, steps)?,
                    Try::Iterative if !limits.is_shortest => None,
                    Try::Iterative => self.iterative(ii, depths, steps)?,
                    Try::Apart(choice) => self.apart(ii, &self.sequence(order, false), depths, *choice, steps)?,
                    Try::LongestFirst => self.apart(ii, &self.sequence(order, true), depths, Choice::Snug, steps)?,
                };
                let Some(cycles) = cycles else { continue };
                let settled = self.settle(ii, &cycles, steps)?;
                // Both are legal. Settling shortens some lives and may lengthen others, so the better one is taken.
                for found in [cycles, settled] {
                    let (live, stages) = weighed(self.graph, ii, &found);
                    let weight = Weight { has_too_many_stages: limits.has_too_many(stages), live, stages };
                    best = best.filter(|(best, _)| *best <= weight).or(Some((weight, found)));
                }
            }
            // Later groups find more, but they keep results live for longer. They are for intervals at which nothing
            // else fits, or nothing within the limits.
            if best.as_ref().is_some_and(|(weight, _)| weight.fits(limits) || !limits.is_shortest) {
                return Ok(best);
            }
        }
        Ok(best)
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
        let early = order.iter().map(|op| (*op, units::Search::Up));
        let moves: Vec<(usize, units::Search)> =
            early.chain(order.iter().rev().map(|op| (*op, units::Search::Down))).collect();
        for (op, search) in moves {
            let ready = state.ready(op);
            let out = self.adjacency.out[op].iter().map(|e| &edges[*e]).filter(|edge| edge.to != op);
            let due = out.map(|edge| cycles[edge.to] - edge.latency + ii * edge.distance).min();
            let (low, high) = match (search, ready, due) {
                (units::Search::Up, Some(ready), _) => (ready, cycles[op]),
                (units::Search::Down, None, Some(due)) => (cycles[op], due),
                (units::Search::Up, None, _) | (units::Search::Down, _, _) => continue,
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
