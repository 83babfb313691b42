//! The order in which swing modulo scheduling places operations.
//!
//! The most critical recurrence comes first, with the operations on paths between it and those before it, then the next one, then all
//! others. Within such a set, the order *swings*: it follows edges from the operations that are already in the order until there are no
//! more, then it goes against edges, and so on. So an operation that is placed mostly has neighbours only on one side that are placed
//! already, and can be put close to them: that keeps results live for a short time.
//!
//! Deliberately absent: the placement. Any order gives legal schedules; this one gives better ones.

use super::graph::Graph;
use super::recurrences::{Adjacency, Recurrences};
use super::steps::{Exhausted, Steps};
use std::cmp::Reverse;

/// What does not depend on the interval.
#[derive(Debug)]
pub(super) struct Problem<'g> {
    pub(super) graph: &'g Graph,
    pub(super) adjacency: Adjacency,
    pub(super) recurrences: Recurrences,
    /// The sets of operations, the most critical ones first. Every operation is in exactly one.
    sets: Vec<Vec<usize>>,
}

impl<'g> Problem<'g> {
    pub(super) fn new(graph: &'g Graph) -> Self {
        let adjacency = Adjacency::of(graph);
        let recurrences = Recurrences::of(graph, &adjacency);
        let sets = sets(graph, &adjacency, &recurrences);
        Problem { graph, adjacency, recurrences, sets }
    }
}

/// The earliest cycle of each operation, and the number of cycles from it to the end, if units did not matter.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Depths {
    pub(super) depth: Vec<i64>,
    pub(super) height: Vec<i64>,
}

impl Depths {
    /// The longest paths to and from each operation, where an edge is as long as its latency minus II times its distance.
    ///
    /// The interval is at least the recurrence bound, so no cycle is longer than zero, and paths without repeated operations are the
    /// longest: as many rounds as there are operations find them.
    pub(super) fn of(graph: &Graph, ii: i64, steps: &mut Steps) -> Result<Depths, Exhausted> {
        let n = graph.ops().len();
        let mut all = Depths { depth: vec![0; n], height: vec![0; n] };
        // Bellman and Ford: after round k, every path of k edges is counted. A path without repeated operations has at
        // most n - 1.
        for _ in 0..n {
            steps.take(graph.edges().len())?;
            let mut is_changed = false;
            // Edges mostly lead forward in the program: in its order, one round nearly finds all depths, and against it
            // all heights.
            for edge in graph.edges() {
                let down = all.depth[edge.from] + edge.latency - ii * edge.distance;
                is_changed |= down > all.depth[edge.to];
                all.depth[edge.to] = all.depth[edge.to].max(down);
            }
            for edge in graph.edges().iter().rev() {
                let up = all.height[edge.to] + edge.latency - ii * edge.distance;
                is_changed |= up > all.height[edge.from];
                all.height[edge.from] = all.height[edge.from].max(up);
            }
            if !is_changed {
                break;
            }
        }
        Ok(all)
    }
}

/// The sets of operations.
fn sets(graph: &Graph, adjacency: &Adjacency, recurrences: &Recurrences) -> Vec<Vec<usize>> {
    let n = graph.ops().len();
    let weight =
        |component: &usize| recurrences.all[*component].ops.iter().map(|op| graph.ops()[*op].weight).sum::<i64>();
    let mut critical: Vec<usize> = (0..recurrences.all.len()).filter(|i| recurrences.all[*i].ratio.is_some()).collect();
    critical.sort_by(|a, b| {
        // Fractions are compared exactly; heavier recurrences first where they are equal.
        match (recurrences.all[*a].ratio, recurrences.all[*b].ratio) {
            (Some(x), Some(y)) if x.exceeds(y) => std::cmp::Ordering::Less,
            (Some(x), Some(y)) if y.exceeds(x) => std::cmp::Ordering::Greater,
            (Some(_) | None, Some(_) | None) => weight(b).cmp(&weight(a)).then(a.cmp(b)),
        }
    });
    let mut is_taken = vec![false; n];
    let mut taken: Vec<usize> = Vec::new();
    let mut all = Vec::new();
    for component in critical {
        let ops = &recurrences.all[component].ops;
        let reach = |from: &[usize], along| adjacency.reached(graph, from, along);
        // What lies on a path from a recurrence that was taken to this one, or back, is placed with it: later, it would
        // have placed neighbours on both sides and a window that they leave by chance.
        let (after, before) = (reach(&taken, true), reach(&taken, false));
        let (below, above) = (reach(ops, true), reach(ops, false));
        let is_between = |op: usize| after[op] && above[op] || before[op] && below[op];
        let set: Vec<usize> = (0..n).filter(|op| !is_taken[*op] && (is_between(*op) || ops.contains(op))).collect();
        set.iter().for_each(|op| is_taken[*op] = true);
        taken.extend(&set);
        all.push(set);
    }
    // So every operation is in one set: in the first that takes it, or in this one.
    all.push((0..n).filter(|op| !is_taken[*op]).collect());
    all
}

/// The order in which operations are placed.
///
/// Each operation is pushed once: it leaves its set when it is. The loops end because each round of the inner one pushes an operation.
pub(super) fn swing(problem: &Problem<'_>, depths: &Depths, steps: &mut Steps) -> Result<Vec<usize>, Exhausted> {
    let Problem { graph, adjacency, recurrences, sets } = problem;
    let n = graph.ops().len();
    let mut order: Vec<usize> = Vec::with_capacity(n);
    // Edges that close a recurrence would lead back to where the order came from.
    let leads = |e: usize| {
        let edge = &graph.edges()[e];
        edge.distance == 0 || recurrences.of[edge.from] != recurrences.of[edge.to]
    };
    let below = |op: usize| adjacency.out[op].iter().filter(|e| leads(**e)).map(|e| graph.edges()[*e].to);
    let above = |op: usize| adjacency.into[op].iter().filter(|e| leads(**e)).map(|e| graph.edges()[*e].from);
    for mut set in sets.iter().cloned() {
        let mut is_down = true;
        while !set.is_empty() {
            let side = |is_down: bool, order: &[usize]| -> Vec<usize> {
                let mut is_beside = vec![false; n];
                for op in order {
                    let next: Vec<usize> = if is_down { below(*op).collect() } else { above(*op).collect() };
                    next.into_iter().for_each(|other| is_beside[other] = true);
                }
                set.iter().copied().filter(|op| is_beside[*op]).collect()
            };
            steps.take(graph.edges().len())?;
            let mut ready = side(is_down, &order);
            if ready.is_empty() {
                is_down = !is_down;
                ready = side(is_down, &order);
            }
            if ready.is_empty() {
                // Nothing of the set is beside the order: begin with the operation that has the most cycles below it.
                is_down = true;
                // The set is not empty, so there is one, and the round pushes it: no round of the loop around is
                // without progress.
                ready.extend(set.iter().copied().max_by_key(|op| (depths.height[*op], Reverse(*op))));
            }
            while let Some(op) = pick(graph, &ready, depths, is_down) {
                steps.take(ready.len())?;
                order.push(op);
                ready.retain(|other| *other != op);
                set.retain(|other| *other != op);
                let next: Vec<usize> = if is_down { below(op).collect() } else { above(op).collect() };
                for other in next.into_iter().filter(|other| set.contains(other)) {
                    // Only operations of the set join, and what is pushed has left the set: so none is pushed twice,
                    // and `ready` runs empty.
                    if !ready.contains(&other) {
                        ready.push(other);
                    }
                }
            }
            is_down = !is_down;
        }
    }
    Ok(order)
}

/// The next operation of those that are ready: the one with the longest way to go, then the least free one, then the heaviest; of equal ones the
/// first of the program, or the last where operations are placed before others, so that they stay in the order of the program.
fn pick(graph: &Graph, ready: &[usize], depths: &Depths, is_down: bool) -> Option<usize> {
    let key = |op: usize| {
        let (depth, height) = (depths.depth[op], depths.height[op]);
        // The sum is the longest path through the operation: where it is greater, there is less freedom.
        let number = i64::try_from(op).unwrap_or(i64::MAX);
        (
            if is_down { height } else { depth },
            depth + height,
            graph.ops()[op].weight,
            if is_down { -number } else { number },
        )
    };
    ready.iter().copied().max_by_key(|op| key(*op))
}
