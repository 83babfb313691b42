//! The recurrence bound against all simple cycles of a graph, and the resource bound against a sum.

use crate::random::{self, Random};
use titan_core::schedule::bounds::{Ratio, bounds};
use titan_core::schedule::graph::Graph;

/// The greatest ratio of all simple cycles, found by following every path from the least operation of each cycle.
fn by_enumeration(graph: &Graph) -> Option<(i64, i64)> {
    fn follow(graph: &Graph, first: usize, path: &mut Vec<usize>, sum: (i64, i64), best: &mut Option<(i64, i64)>) {
        let at = *path.last().expect("it begins with the first one");
        for edge in graph.edges().iter().filter(|edge| edge.from == at) {
            let (latency, distance) = (sum.0 + edge.latency, sum.1 + edge.distance);
            if edge.to == first {
                if best.is_none_or(|(l, d)| latency * d > l * distance) {
                    *best = Some((latency, distance));
                }
            } else if edge.to > first && !path.contains(&edge.to) {
                path.push(edge.to);
                follow(graph, first, path, (latency, distance), best);
                path.pop();
            }
        }
    }
    let mut best = None;
    for first in 0..graph.ops().len() {
        follow(graph, first, &mut vec![first], (0, 0), &mut best);
    }
    best
}

#[test]
fn the_maximum_ratio_is_that_of_all_simple_cycles() {
    let (mut with, mut fractions) = (0, 0);
    for seed in 1..=600 {
        let graph = random::graph(seed, 9);
        let found = bounds(&graph).recurrence;
        let expected = by_enumeration(&graph);
        assert_eq!(found.is_some(), expected.is_some(), "{seed}");
        let (Some(found), Some((latency, distance))) = (found, expected) else { continue };
        assert_eq!(found.ratio.latency * distance, latency * found.ratio.distance, "{seed}");
        assert_eq!(found.ratio.ceil(), (latency + distance - 1).div_euclid(distance), "{seed}");
        with += 1;
        fractions += usize::from(latency % distance != 0);
        // The witness is a simple cycle, and has that ratio.
        let edges: Vec<_> = found.edges.iter().map(|e| graph.edges()[*e]).collect();
        let next = edges.iter().skip(1).chain(&edges[..1]);
        assert!(edges.iter().zip(next).all(|(edge, next)| edge.to == next.from), "{seed}: {edges:?}");
        let mut ops: Vec<usize> = edges.iter().map(|edge| edge.from).collect();
        ops.sort_unstable();
        ops.dedup();
        assert_eq!(ops.len(), edges.len(), "{seed}: {edges:?}");
        let sum = |of: fn(&titan_core::schedule::graph::Edge) -> i64| edges.iter().map(of).sum::<i64>();
        let (l, d) = (sum(|edge| edge.latency), sum(|edge| edge.distance));
        assert_eq!(l * distance, latency * d, "{seed}");
    }
    assert!(with > 200 && fractions > 50, "{with} graphs with cycles, {fractions} with a fraction");
}

#[test]
fn units_are_counted() {
    for seed in 1..=100 {
        let graph = random::graph(seed, 12);
        let of = |unit| graph.ops().iter().filter(|op| op.unit == Some(unit)).map(|op| op.occupancy).sum::<i64>();
        let most = (0..graph.units().len()).map(of).max().unwrap_or(0);
        let found = bounds(&graph);
        assert_eq!(found.resource.map_or(0, |(_, cycles)| cycles), most, "{seed}");
        assert!(found.resource.is_none_or(|(unit, cycles)| of(unit) == cycles), "{seed}");
        let ratio = found.recurrence.as_ref().map_or(0, |cycle| cycle.ratio.ceil());
        assert_eq!(found.least(), most.max(ratio).max(1), "{seed}");
    }
}

#[test]
fn ratios_are_compared_exactly() {
    let mut random = Random(7);
    for _ in 0..1000 {
        let mut ratio = || Ratio { latency: random.from(0..=1 << 31), distance: random.from(1..=1 << 24) };
        let (a, b) = (ratio(), ratio());
        let wide = i128::from(a.latency) * i128::from(b.distance) > i128::from(b.latency) * i128::from(a.distance);
        assert_eq!(a.exceeds(b), wide, "{a:?} {b:?}");
    }
    // Neighbouring fractions, which floating-point numbers of 32 bits could not tell apart.
    let (a, b) = (
        Ratio { latency: 2_147_483_647, distance: 16_777_215 },
        Ratio { latency: 2_147_483_519, distance: 16_777_214 },
    );
    assert_ne!(a.exceeds(b), b.exceeds(a));
}
