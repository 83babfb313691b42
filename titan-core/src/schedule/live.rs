//! The weight of the results that are live at the same time in an overlapped loop.
//!
//! A result takes its registers from the issue of its operation, which may write them at any time, until it is complete and its last
//! reader has been issued. If it is live for longer than an interval, instances of several iterations are live at the same time.
//!
//! Deliberately absent: a register allocator. Results of different widths may not fit although their sum does.

use super::graph::{Graph, Op};

/// What the live weight of every schedule with this interval is at least.
///
/// A result is live until it is complete, and until its last reader is issued, which is as many cycles later as the edge to it says. So the
/// lives of an iteration take so many registers for so many cycles, and are spread over an interval: the sum in its fullest cycle is not below the mean.
/// Example: II = 10, a weight of 8 that is live for at least 24 cycles: 192 / 10, so 20 at least.
pub(super) fn least_live_weight(graph: &Graph, ii: i64) -> i64 {
    let life = |(at, op): (usize, &Op)| {
        let readers = graph.edges().iter().filter(|edge| edge.from == at && edge.kind.carries_value());
        op.weight * readers.map(|edge| edge.latency).fold(op.latency.max(1), i64::max)
    };
    let sum: i64 = graph.ops().iter().enumerate().map(life).sum();
    (sum + ii - 1) / ii
}

/// The greatest sum of weights in a cycle of the interval.
pub(super) fn live_weight(graph: &Graph, ii: i64, cycles: &[i64]) -> i64 {
    let mut ends: Vec<i64> = graph.ops().iter().zip(cycles).map(|(op, cycle)| cycle + op.latency.max(1)).collect();
    for edge in graph.edges().iter().filter(|edge| edge.kind.carries_value()) {
        ends[edge.from] = ends[edge.from].max(cycles[edge.to] + ii * edge.distance);
    }
    // Instances that are live in every cycle of the interval, and the changes at the ends of the others.
    let mut always = 0;
    let mut changes: Vec<(i64, i64)> = Vec::new();
    for ((op, cycle), end) in graph.ops().iter().zip(cycles).zip(ends).filter(|((op, _), _)| op.weight > 0) {
        // Example: II = 10, live from cycle 7 to cycle 32, so for 25 cycles. Two instances are live in every cycle of
        // the interval. The rest of 5 cycles is from 7 to 12, that is from 7 to the end of the interval and from its
        // beginning to 2: there, three are live.
        let length = end - cycle;
        always += op.weight * (length / ii);
        let (start, end) = (cycle.rem_euclid(ii), end.rem_euclid(ii));
        if length % ii != 0 {
            changes.extend([(start, op.weight), (end, -op.weight)]);
            // It is live across the end of the interval, so it is live at its beginning.
            always += if start > end { op.weight } else { 0 };
        }
    }
    // In the same cycle, what ends makes room first.
    changes.sort_unstable();
    let mut now = always;
    changes.into_iter().fold(always, |most, (_, change)| {
        now += change;
        most.max(now)
    })
}
