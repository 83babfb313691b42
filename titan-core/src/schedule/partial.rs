//! A partial schedule for an interval: the operations that are placed, and the windows that they leave to the others.
//!
//! Deliberately absent: the order in which operations are placed ([`super::swing`]).

use super::graph::Op;
use super::order::Problem;
use super::steps::{Exhausted, Steps};
use super::units::{Search, Table};
use std::collections::VecDeque;

/// Which of its free cycles an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Choice {
    /// The one nearest to its neighbours.
    Near,
    /// One that leaves the remaining free cycles of the unit in the fewest pieces.
    Snug,
}

/// A partial schedule for an interval.
///
/// `low` and `high` are the earliest and latest cycles that the placed operations leave to each operation, by longest paths over all
/// edges that count. Since no cycle of edges is longer than zero, these bounds are consistent: in whichever cycle of its window an
/// operation is placed, no other window becomes empty. So dependences never fail a try; only units do.
pub(super) struct State<'p, 'g> {
    problem: &'p Problem<'g>,
    ii: i64,
    /// Whether only edges within recurrences count.
    is_apart: bool,
    pub(super) table: Table,
    pub(super) cycles: Vec<Option<i64>>,
    low: Vec<Option<i64>>,
    high: Vec<Option<i64>>,
}

impl<'p, 'g> State<'p, 'g> {
    pub(super) fn new(problem: &'p Problem<'g>, ii: i64, is_apart: bool) -> Self {
        let n = problem.graph.ops().len();
        let table = Table::new(ii, problem.graph.units().len());
        State { problem, ii, is_apart, table, cycles: vec![None; n], low: vec![None; n], high: vec![None; n] }
    }

    fn op(&self, op: usize) -> &'g Op {
        &self.problem.graph.ops()[op]
    }

    /// The first and last cycle in which an operation may be placed, of which there are at most as many as the interval has: others
    /// use the same cycles of the interval.
    pub(super) fn window(&self, op: usize, wanted: i64) -> (i64, i64) {
        let reach = self.ii - 1;
        match (self.low[op], self.high[op]) {
            (Some(low), Some(high)) => (low, high.min(low + reach)),
            (Some(low), None) => (low, low + reach),
            (None, Some(high)) => (high - reach, high),
            (None, None) => (wanted, wanted + reach),
        }
    }

    /// The cycle in which everything is there that an operation waits for, as far as it is placed.
    pub(super) fn ready(&self, op: usize) -> Option<i64> {
        let into = self.problem.adjacency.into[op].iter().map(|e| &self.problem.graph.edges()[*e]);
        into.filter(|edge| edge.from != op)
            .filter_map(|edge| Some(self.cycles[edge.from]? + edge.latency - self.ii * edge.distance))
            .max()
    }

    /// A free cycle for an operation in its window, which begins with the wanted cycle if nothing else limits it.
    pub(super) fn place(
        &self,
        op: usize,
        wanted: i64,
        choice: Choice,
        steps: &mut Steps,
    ) -> Result<Option<i64>, Exhausted> {
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
    pub(super) fn put(&mut self, op: usize, cycle: i64, steps: &mut Steps) -> Result<(), Exhausted> {
        self.cycles[op] = Some(cycle);
        self.table.reserve(op, self.op(op), cycle);
        self.narrow(op, cycle, steps)
    }

    /// Removes operations, and computes the windows that the remaining ones leave to their recurrences. Others have no edges that
    /// count here: only while recurrences are apart is anything removed.
    pub(super) fn remove(&mut self, ops: &[usize], steps: &mut Steps) -> Result<(), Exhausted> {
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
