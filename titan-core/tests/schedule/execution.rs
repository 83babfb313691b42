//! Whether a schedule is legal, by executing it: iterations begin one after the other, every issue, completion and reservation is an
//! event in an absolute cycle, and every promise of the graph is looked up there.

use std::collections::{BTreeMap, BTreeSet};
use titan_core::schedule::Schedule;
use titan_core::schedule::graph::Graph;

/// Whether the schedule is one of the graph and every number in it is right.
pub fn is_legal(graph: &Graph, schedule: &Schedule, live: Option<i64>) -> bool {
    let ii = schedule.ii;
    if ii < 1 || schedule.name != graph.name() {
        return false;
    }
    let names: BTreeSet<&str> = schedule.ops.iter().map(|op| op.name.as_str()).collect();
    let wanted: BTreeSet<&str> = graph.ops().iter().map(|op| op.name.as_str()).collect();
    if names != wanted || schedule.ops.len() != graph.ops().len() {
        return false;
    }
    let places: Vec<(i64, i64)> = graph
        .ops()
        .iter()
        .map(|op| schedule.ops.iter().find(|entry| entry.name == op.name).expect("it is there"))
        .map(|entry| (entry.cycle, entry.order))
        .collect();
    is_written_right(schedule) && has_order(graph, ii, &places) && has_units(graph, ii, &places) && {
        let weight = live_weight(graph, ii, &places);
        weight == schedule.live && live.is_none_or(|limit| weight <= limit)
    }
}

/// The live weight, if every operation has one place.
pub fn live_of(graph: &Graph, schedule: &Schedule) -> Option<i64> {
    let entry = |name: &str| schedule.ops.iter().find(|entry| entry.name == name);
    let places: Option<Vec<(i64, i64)>> =
        graph.ops().iter().map(|op| entry(&op.name).map(|entry| (entry.cycle, entry.order))).collect();
    places.filter(|_| schedule.ii >= 1).map(|places| live_weight(graph, schedule.ii, &places))
}

/// Stages, and the order of the body as the order of the events of one interval in the middle of a long loop.
fn is_written_right(schedule: &Schedule) -> bool {
    let ii = schedule.ii;
    let stages: Vec<i64> = schedule.ops.iter().map(|op| op.cycle / ii).collect();
    let (Some(least), Some(most)) = (stages.iter().min(), stages.iter().max()) else { return false };
    let mut body: Vec<(i64, i64)> = schedule.ops.iter().map(|op| (op.order, op.cycle % ii)).collect();
    body.sort_unstable();
    schedule.ops.iter().all(|op| op.cycle >= 0)
        && schedule.ops.iter().zip(&stages).all(|(op, stage)| op.stage == *stage)
        && *least == 0
        && schedule.stages == most + 1
        && body.iter().enumerate().all(|(i, (order, _))| *order == i as i64)
        && body.windows(2).all(|pair| pair[0].1 <= pair[1].1)
}

/// Every instance of every edge.
fn has_order(graph: &Graph, ii: i64, places: &[(i64, i64)]) -> bool {
    graph.edges().iter().all(|edge| {
        (0..4).all(|iteration| {
            let (from, to) = (places[edge.from], places[edge.to]);
            let ready = from.0 + iteration * ii + edge.latency;
            let issued = to.0 + (iteration + edge.distance) * ii;
            // An instance is the same one as itself only without a distance, which no edge to itself has.
            issued > ready || issued == ready && (edge.latency > 0 || edge.from == edge.to || from.1 < to.1)
        })
    })
}

/// Every cycle of every unit, over more iterations than can overlap.
fn has_units(graph: &Graph, ii: i64, places: &[(i64, i64)]) -> bool {
    let last = places.iter().map(|place| place.0).max().unwrap_or(0);
    let most = graph.ops().iter().map(|op| op.occupancy).max().unwrap_or(0);
    let mut holder = BTreeSet::new();
    for iteration in 0..(last + most) / ii + 3 {
        for (op, place) in graph.ops().iter().zip(places) {
            let Some(unit) = op.unit else { continue };
            let begin = place.0 + iteration * ii;
            if !(begin..begin + op.occupancy).all(|cycle| holder.insert((unit, cycle))) {
                return false;
            }
        }
    }
    true
}

/// The greatest weight in a cycle of a loop that has been running for long enough.
fn live_weight(graph: &Graph, ii: i64, places: &[(i64, i64)]) -> i64 {
    let mut weights: BTreeMap<i64, i64> = BTreeMap::new();
    let ends: Vec<i64> = (0..places.len())
        .map(|op| {
            let values = graph.edges().iter().filter(|edge| edge.from == op && edge.kind.carries_value());
            let reads = values.map(|edge| places[edge.to].0 + ii * edge.distance);
            reads.chain([places[op].0 + graph.ops()[op].latency.max(1)]).max().unwrap_or(0)
        })
        .collect();
    let longest = ends.iter().max().copied().unwrap_or(0);
    let iterations = longest / ii + 2;
    for iteration in 0..iterations {
        for (op, place) in places.iter().enumerate() {
            for cycle in place.0..ends[op] {
                *weights.entry(cycle + iteration * ii).or_default() += graph.ops()[op].weight;
            }
        }
    }
    // Every result of every iteration that can be live in this interval is counted.
    let steady = (iterations - 1) * ii;
    (steady..steady + ii).map(|cycle| weights.get(&cycle).copied().unwrap_or(0)).max().unwrap_or(0)
}
