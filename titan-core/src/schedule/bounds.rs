//! Lower bounds of the initiation interval, each with the reason that a reader can check by hand.
//!
//! * **Resources.** In one interval a unit serves every operation that holds it once, so the interval is at least the sum of their
//!   occupancies. It also covers each single occupancy, since an operation must not overlap itself.
//! * **Recurrences.** Along a cycle of edges with latencies L and distances D, an operation waits for its own instance of D iterations
//!   ago for L cycles: D · II ≥ L. The greatest L / D of all cycles is the *maximum cycle ratio*; it is found exactly, as a fraction,
//!   with a cycle that has it.
//!
//! Deliberately absent: bounds that combine both. They are stronger, but finding the best of them is the scheduling problem itself.

use super::graph::{Edge, Graph};

/// A ratio of cycles to iterations. The distance is positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Cycles.
    pub latency: i64,
    /// Iterations.
    pub distance: i64,
}

impl Ratio {
    /// The least whole number that is not smaller.
    #[must_use]
    pub const fn ceil(self) -> i64 {
        // Latencies are not negative, and both numbers are far below the range of an `i64`.
        (self.latency + self.distance - 1) / self.distance
    }

    /// Whether it is greater than another one. The products fit, because a sum of latencies is at most 2³¹ and a sum of distances 2²⁴.
    #[must_use]
    pub const fn exceeds(self, other: Ratio) -> bool {
        self.latency * other.distance > other.latency * self.distance
    }
}

/// A cycle of edges and its ratio.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Critical {
    /// The indices of its edges, each from the operation to which the one before leads.
    pub edges: Vec<usize>,
    /// Its latencies over its distances.
    pub ratio: Ratio,
}

/// The bounds of a graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most heavily used unit and the sum of its occupancies, if an operation holds a unit.
    pub resource: Option<(usize, i64)>,
    /// A cycle with the maximum ratio, if there is a cycle.
    pub recurrence: Option<Critical>,
}

impl Bounds {
    /// The least initiation interval that satisfies all bounds.
    #[must_use]
    pub fn least(&self) -> i64 {
        let resource = self.resource.map_or(1, |(_, cycles)| cycles);
        let recurrence = self.recurrence.as_ref().map_or(1, |cycle| cycle.ratio.ceil());
        resource.max(recurrence).max(1)
    }
}

/// The bounds of a graph.
#[must_use]
pub fn bounds(graph: &Graph) -> Bounds {
    let mut sums = vec![0; graph.units().len()];
    for op in graph.ops() {
        // The sums fit: validation limits all occupancies of a graph together (`graph::sums`).
        op.unit.into_iter().for_each(|unit| sums[unit] += op.occupancy);
    }
    let mut resource: Option<(usize, i64)> = None;
    for (unit, cycles) in sums.into_iter().enumerate() {
        if cycles > resource.map_or(0, |(_, most)| most) {
            resource = Some((unit, cycles));
        }
    }
    Bounds { resource, recurrence: maximum_ratio(graph.ops().len(), graph.edges(), |_| true) }
}

/// A cycle with the maximum ratio, among the edges between operations that `is_in` accepts.
///
/// The search raises a ratio p / q, beginning below all of them. In each round, an edge weighs q · latency − p · distance, so that a
/// cycle weighs more than zero exactly if its ratio is greater than p / q. If there is such a cycle, its ratio is the next p / q;
/// otherwise p / q is the maximum, and the cycle that it came from has it. The ratio rises strictly and is always that of one of
/// finitely many simple cycles, so the search ends; integers keep every comparison exact.
pub(super) fn maximum_ratio(ops: usize, edges: &[Edge], is_in: impl Fn(usize) -> bool) -> Option<Critical> {
    let inside: Vec<usize> = (0..edges.len()).filter(|e| is_in(edges[*e].from) && is_in(edges[*e].to)).collect();
    // Below all ratios: with p / q = −1 / 1, every cycle weighs its latencies plus its distances, which are positive.
    let mut above = Ratio { latency: -1, distance: 1 };
    let mut best = None;
    while let Some(cycle) = positive_cycle(ops, edges, &inside, above) {
        let sum = |term: &dyn Fn(&Edge) -> i64| cycle.iter().map(|e| term(&edges[*e])).sum::<i64>();
        // The distance is positive: no valid graph has a cycle of distance 0 (T1004), so the ratio exists.
        let (latency, distance) = (sum(&|edge| edge.latency), sum(&|edge| edge.distance));
        let divisor = greatest_divisor(latency, distance);
        // Reduced fractions keep the weights of the next round small. Example: cycles of the ratios 559 / 3 and 256 /
        // 1. From -1 / 1, whichever is found first is the next bound; above 559 / 3 only 256 / 1 weighs more than zero,
        // and above that nothing does: the search ends with 256.
        above = Ratio { latency: latency / divisor, distance: distance / divisor };
        best = Some(Critical { edges: cycle, ratio: above });
    }
    best
}

/// The greatest common divisor of numbers that are not both zero.
fn greatest_divisor(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A simple cycle whose ratio is greater than `above`, by the algorithm of Bellman and Ford.
///
/// `potential[v]` is the weight of some walk that ends in v, and `by[v]` its last edge.
///
/// * A cycle of last edges has a positive weight: when its edges were taken, each potential became the one before plus the weight, and
///   has not fallen behind since, and the edge that closed the cycle raised one that all others were computed from.
/// * An operation that changes in round k has a last edge from one that changed in round k − 1 or in this round. So its chain of last
///   edges has k edges or contains a cycle, and after as many rounds as there are operations it contains one.
/// * If a round changes nothing, the potentials show that no cycle weighs more than zero: along one, they would have to rise.
fn positive_cycle(ops: usize, edges: &[Edge], inside: &[usize], above: Ratio) -> Option<Vec<usize>> {
    // A walk may use an edge again, so its weight is not bounded by the sums of the graph, but by 128 bits.
    let weight = |edge: &Edge| {
        i128::from(edge.latency) * i128::from(above.distance) - i128::from(edge.distance) * i128::from(above.latency)
    };
    // A walk may begin at any operation, so all potentials begin with 0: cycles that cannot be reached from a first
    // operation are found as well.
    let mut potential = vec![0_i128; ops];
    let mut by: Vec<Option<usize>> = vec![None; ops];
    loop {
        let mut is_changed = false;
        for &e in inside {
            let edge = &edges[e];
            let raised = potential[edge.from] + weight(edge);
            if raised > potential[edge.to] {
                potential[edge.to] = raised;
                by[edge.to] = Some(e);
                is_changed = true;
            }
        }
        if !is_changed {
            return None;
        }
        // Asked after each round, so that the search stops as soon as there is a cycle, and does not need all rounds
        // for it.
        if let Some(cycle) = closed(edges, &by) {
            return Some(cycle);
        }
    }
}

/// A cycle that is formed by the last edges, in the direction of the edges.
fn closed(edges: &[Edge], by: &[Option<usize>]) -> Option<Vec<usize>> {
    // The walk against the edges in which an operation was first met.
    let mut met = vec![usize::MAX; by.len()];
    for start in 0..by.len() {
        let mut at = start;
        // Each operation is met once in all walks together, so this ends. A walk that comes to where an earlier one was
        // has found no cycle there; one that returns to where it itself was has.
        while met[at] == usize::MAX {
            met[at] = start;
            let Some(e) = by[at] else { break };
            at = edges[e].from;
            if met[at] == start {
                let mut cycle = Vec::new();
                let mut next = at;
                while let Some(e) = by[next] {
                    cycle.push(e);
                    next = edges[e].from;
                    if next == at {
                        break;
                    }
                }
                cycle.reverse();
                return Some(cycle);
            }
        }
    }
    None
}
