//! Iterative modulo scheduling: operations are placed as early as possible, and displace others that are in their way.
//!
//! The operation with the longest way to the end of the iteration is next. It takes the first free cycle behind everything that it waits for and
//! that is placed. If its unit is free in no cycle of the interval, it takes one by force, and what holds the unit there is placed again, as is
//! whatever is then issued too early behind it (Rau, "Iterative Modulo Scheduling", 1994). Iterations are short in such schedules, with few stages; results may
//! be live for longer than in swing order, where an operation is placed on the side of its neighbours.
//!
//! ```text
//! II = 4, one unit     a 2 cycles, b 2 cycles, c 1 cycle; a -> b -> c, a -> c
//! a                    cycle 0, held 0..2
//! b                    behind a: cycle 2, held 2..4
//! c                    behind b: cycle 4. The unit is never free: by force in cycle 4, which is cycle 0 of the interval, and a goes
//! a                    cycle 0 is taken and so are all others: one later than before, cycle 1; b goes, ...
//! ```
//!
//! The example has no schedule, since the unit would be held for 5 of 4 cycles: the bounds exclude its interval. Elsewhere two operations may displace
//! each other forever, so the number of placements is limited.
//!
//! Deliberately absent: the choice of the interval, and lives, which [`super::swing`] compares.

use super::order::{Depths, Problem};
use super::steps::{Exhausted, PLACEMENTS, Steps};
use super::units::{Search, Table};
use std::cmp::Reverse;

impl Problem<'_> {
    /// The cycles of the operations, if all are placed before the limit of placements is reached.
    pub(super) fn iterative(&self, ii: i64, depths: &Depths, steps: &mut Steps) -> Result<Option<Vec<i64>>, Exhausted> {
        let (ops, edges) = (self.graph.ops(), self.graph.edges());
        let mut table = Table::new(ii, self.graph.units().len());
        let mut cycles: Vec<Option<i64>> = vec![None; ops.len()];
        let mut last: Vec<Option<i64>> = vec![None; ops.len()];
        for _ in 0..PLACEMENTS * ops.len() {
            steps.take(ops.len())?;
            let unplaced = (0..ops.len()).filter(|op| cycles[*op].is_none());
            let Some(op) = unplaced.max_by_key(|op| (depths.height[*op], Reverse(*op))) else {
                return Ok(cycles.into_iter().collect());
            };
            let into = self.adjacency.into[op].iter().map(|e| &edges[*e]).filter(|edge| edge.from != op);
            let ready = into.filter_map(|edge| Some(cycles[edge.from]? + edge.latency - ii * edge.distance));
            let low = ready.max().map_or(depths.depth[op], |ready| ready.max(depths.depth[op]));
            // Later than the last time, so that two operations do not displace each other in the same cycles again.
            let forced = last[op].map_or(low, |last| low.max(last + 1));
            let cycle = table.free(&ops[op], (low, low + ii - 1), Search::Up, steps)?.unwrap_or(forced);
            // All edges into it are kept, and of those out of it the ones whose ends stay: what is placed stays legal.
            let out = self.adjacency.out[op].iter().map(|e| &edges[*e]).filter(|edge| edge.to != op);
            let early =
                out.filter(|edge| cycles[edge.to].is_some_and(|to| to < cycle + edge.latency - ii * edge.distance));
            let displaced: Vec<usize> =
                table.overlapping(&ops[op], cycle).into_iter().chain(early.map(|edge| edge.to)).collect();
            for other in displaced {
                cycles[other] = None;
                table.release(other, &ops[other]);
            }
            (cycles[op], last[op]) = (Some(cycle), Some(cycle));
            table.reserve(op, &ops[op], cycle);
        }
        Ok(None)
    }
}
