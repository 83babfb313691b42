//! The least initiation interval of a small graph, by branch and bound.
//!
//! For an interval, each operation that holds a unit is given each cycle of the interval in turn. A choice is cut off when two
//! operations hold a unit at the same time, or when no stages satisfy the longest paths between the operations that have a cycle. The
//! operations without a unit need no choice: longest paths through them say everything about them.

use titan_core::schedule::graph::Graph;

/// Choices after which the search gives up.
const MOST: u64 = 3_000_000;

/// The least interval that has a schedule; none if that could not be decided.
pub fn optimal(graph: &Graph) -> Option<i64> {
    let mut choices = 0;
    (1..).find_map(|ii| match feasible(graph, ii, &mut choices) {
        Some(true) => Some(Some(ii)),
        Some(false) => None,
        None => Some(None),
    })?
}

fn feasible(graph: &Graph, ii: i64, choices: &mut u64) -> Option<bool> {
    let n = graph.ops().len();
    if graph.ops().iter().any(|op| op.occupancy > ii) {
        return Some(false);
    }
    let mut path: Vec<Vec<Option<i64>>> = vec![vec![None; n]; n];
    for edge in graph.edges() {
        let length = edge.latency - ii * edge.distance;
        let known = &mut path[edge.from][edge.to];
        *known = Some(known.map_or(length, |known| known.max(length)));
    }
    if !close(&mut path) {
        return Some(false);
    }
    let mut ops: Vec<usize> = (0..n).filter(|op| graph.ops()[*op].unit.is_some()).collect();
    let is_alone = |op: usize| path[op][op].is_none();
    ops.sort_by_key(|op| (is_alone(*op), -graph.ops()[*op].occupancy, *op));
    let used = vec![vec![false; ii as usize]; graph.units().len()];
    Search { graph, ii, path, ops, chosen: Vec::new(), used }.branch(choices)
}

/// Longest paths; whether no cycle is longer than zero.
fn close(path: &mut [Vec<Option<i64>>]) -> bool {
    let n = path.len();
    for via in 0..n {
        for a in 0..n {
            for b in 0..n {
                if let (Some(x), Some(y)) = (path[a][via], path[via][b])
                    && path[a][b].is_none_or(|known| known < x + y)
                {
                    path[a][b] = Some(x + y);
                }
            }
        }
        if (0..n).any(|op| path[op][op].is_some_and(|length| length > 0)) {
            return false;
        }
    }
    true
}

/// The cycles that are chosen for the first of the operations.
struct Search<'g> {
    graph: &'g Graph,
    ii: i64,
    path: Vec<Vec<Option<i64>>>,
    ops: Vec<usize>,
    chosen: Vec<i64>,
    used: Vec<Vec<bool>>,
}

impl Search<'_> {
    fn branch(&mut self, choices: &mut u64) -> Option<bool> {
        let Some(&index) = self.ops.get(self.chosen.len()) else { return Some(true) };
        let op = &self.graph.ops()[index];
        let unit = op.unit.expect("only those with a unit");
        // All operations may be moved together, so the first one needs only one cycle.
        let end = if self.chosen.is_empty() { 1 } else { self.ii };
        for cycle in 0..end {
            *choices += 1;
            if *choices > MOST {
                return None;
            }
            let cells: Vec<usize> = (cycle..cycle + op.occupancy).map(|cell| (cell % self.ii) as usize).collect();
            if cells.iter().any(|cell| self.used[unit][*cell]) {
                continue;
            }
            self.chosen.push(cycle);
            cells.iter().for_each(|cell| self.used[unit][*cell] = true);
            let found = if self.has_stages() { self.branch(choices) } else { Some(false) };
            self.chosen.pop();
            cells.iter().for_each(|cell| self.used[unit][*cell] = false);
            if found != Some(false) {
                return found;
            }
        }
        Some(false)
    }

    /// Whether there are stages k with `II · k + cycle` for the chosen operations that satisfy all longest paths between them.
    fn has_stages(&self) -> bool {
        let n = self.chosen.len();
        let mut stages: Vec<Vec<Option<i64>>> = vec![vec![None; n]; n];
        for a in 0..n {
            for b in 0..n {
                let early = self.path[self.ops[a]][self.ops[b]].map(|length| length + self.chosen[a] - self.chosen[b]);
                stages[a][b] = early.map(|early| -(-early).div_euclid(self.ii));
            }
        }
        close(&mut stages)
    }
}
