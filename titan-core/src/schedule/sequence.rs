//! From cycles to a schedule, and the schedule without any overlap, which always exists.
//!
//! Deliberately absent: any search.

use super::graph::Graph;
use super::live::live_weight;
use super::placed::{Entry, Schedule};

/// The schedule in which operations are issued in these cycles, moved so that the first one is cycle 0.
///
/// Moving all operations by the same number of cycles keeps all differences, so the schedule stays legal. No other first cycle within
/// the interval has fewer stages.
pub(super) fn placed(graph: &Graph, ii: i64, cycles: &[i64]) -> Schedule {
    let first = cycles.iter().min().copied().unwrap_or(0);
    let cycles: Vec<i64> = cycles.iter().map(|cycle| cycle - first).collect();
    let mut order = vec![0; cycles.len()];
    for (place, op) in (0..).zip(body(graph, ii, &cycles)) {
        order[op] = place;
    }
    let entries = graph.ops().iter().zip(&cycles).zip(order);
    let ops: Vec<Entry> = entries
        .map(|((op, cycle), order)| Entry { name: op.name.clone(), stage: cycle / ii, cycle: *cycle, order })
        .collect();
    let stages = ops.iter().map(|op| op.stage + 1).max().unwrap_or(1);
    Schedule { name: graph.name().to_owned(), ii, stages, live: live_weight(graph, ii, &cycles), ops }
}

/// The live weight of the schedule in which operations are issued in these cycles, and the number of its stages.
pub(super) fn weighed(graph: &Graph, ii: i64, cycles: &[i64]) -> (i64, i64) {
    let (first, last) = (cycles.iter().min().copied().unwrap_or(0), cycles.iter().max().copied().unwrap_or(0));
    // As in `placed`: the first operation is issued in cycle 0. A weight depends on differences of cycles alone.
    (live_weight(graph, ii, cycles), (last - first) / ii + 1)
}

/// The operations in the order of the body: by their cycle within the interval, and in the same cycle after those that they wait for.
///
/// An operation waits in the same cycle only along edges of latency zero that are met exactly. A cycle of such edges would have the
/// distance zero, which no graph has: so there is always an operation that waits for none of the remaining ones.
fn body(graph: &Graph, ii: i64, cycles: &[i64]) -> Vec<usize> {
    let mut waits = vec![0_usize; cycles.len()];
    let exact: Vec<(usize, usize)> = graph
        .edges()
        .iter()
        .filter(|edge| edge.from != edge.to && cycles[edge.from] == cycles[edge.to] + ii * edge.distance)
        .map(|edge| (edge.from, edge.to))
        .collect();
    // Edges that are met exactly with a latency of 0: both operations are issued in one cycle of the interval, though
    // perhaps in different stages.
    exact.iter().for_each(|(_, to)| waits[*to] += 1);
    let mut left: Vec<usize> = (0..cycles.len()).collect();
    left.sort_by_key(|op| (cycles[*op] % ii, *op));
    let mut order = Vec::with_capacity(left.len());
    while !left.is_empty() {
        // The first in cycle order that waits for none. Those before it in the list wait, and what they wait for has
        // the same cycle of the interval, so the order still follows the cycles.
        let next = left.iter().position(|op| waits[*op] == 0).unwrap_or(0);
        let op = left.remove(next);
        exact.iter().filter(|(from, _)| *from == op).for_each(|(_, to)| waits[*to] -= 1);
        order.push(op);
    }
    order
}

/// The operations one after the other, each when its operands are there; the next iteration begins when everything has ended.
///
/// It is legal for every graph. Edges of distance zero are met because operations follow each other in a topological order and wait
/// for their operands. All others lead to an iteration that begins when every latency has passed. No unit is held by two operations,
/// because each waits until the one before has released its unit.
pub(super) fn sequential(graph: &Graph) -> Schedule {
    let ops = graph.ops();
    let mut waits = vec![0_usize; ops.len()];
    let same = || graph.edges().iter().filter(|edge| edge.distance == 0);
    same().for_each(|edge| waits[edge.to] += 1);
    let mut cycles = vec![0_i64; ops.len()];
    let mut is_placed = vec![false; ops.len()];
    let (mut now, mut end) = (0, 1);
    // The first operation of the program that waits for none, again and again: validation has shown that there is one.
    while let Some(op) = (0..ops.len()).find(|op| !is_placed[*op] && waits[*op] == 0) {
        is_placed[op] = true;
        cycles[op] = cycles[op].max(now);
        now = cycles[op] + ops[op].occupancy;
        // Also an operation that takes no time is issued before the next iteration begins.
        end = end.max(now).max(cycles[op] + 1);
        // An edge to a later iteration is met because that iteration begins at `end` or later, and `end` is not before
        // this result is there.
        for edge in graph.edges().iter().filter(|edge| edge.from == op) {
            let ready = cycles[op] + edge.latency;
            end = end.max(ready);
            if edge.distance == 0 {
                cycles[edge.to] = cycles[edge.to].max(ready);
                waits[edge.to] -= 1;
            }
        }
    }
    placed(graph, end, &cycles)
}
