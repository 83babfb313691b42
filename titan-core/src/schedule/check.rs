//! The judge of schedules. It shares no code with the search, and computes everything in another way.
//!
//! | what | how |
//! |---|---|
//! | names | every operation has one entry, and every entry an operation |
//! | stages | `stage = ⌊cycle / II⌋`; the first cycle is in the first stage, and the last stage is the last one that is used |
//! | order | a permutation that agrees with the cycles of the interval |
//! | dependences | `cycle(to) + II · distance ≥ cycle(from) + latency`; where no cycle lies between, the order decides |
//! | units | for each pair of operations on a unit, and for each operation with itself, the instances of no two iterations overlap |
//! | live weight | counted instance by instance in each cycle in which a result becomes live |
//!
//! All numbers are those of somebody else, so the arithmetic has 128 bits.
//!
//! Deliberately absent: whether a schedule is good, and whether its interval is the one that the graph asks for.

use super::graph::{Field, Graph, Site};
use super::placed::Schedule;
use crate::diag::{Code, Diagnostic, counted};

type Errors = Vec<Diagnostic<Site>>;

/// An operation of the graph with its entry: the index of the entry, its cycle and its place in the body.
#[derive(Clone, Copy)]
struct At {
    entry: usize,
    cycle: i128,
    order: i128,
}

/// Checks that a schedule is one of this graph, that it is legal, and that its live weight is what it says and within the limit.
///
/// # Errors
///
/// Everything that is wrong with it: the codes T1002, T1005 and T1006. Sites are indices into the schedule.
pub fn check(graph: &Graph, schedule: &Schedule, live: Option<i64>) -> Result<(), Errors> {
    let mut errors = Errors::new();
    if schedule.name != graph.name() {
        let title = format!("a schedule of `{}`, and a graph of `{}`", schedule.name, graph.name());
        errors.push(wrong(Site::Whole, title, "give the schedule of this graph"));
    }
    if schedule.ii < 1 {
        let title = format!("an initiation interval of {} cycles", schedule.ii);
        // Everything below divides by the interval.
        return Err(vec![wrong(Site::Interval, title, "it has at least one cycle")]);
    }
    let places = entries(graph, schedule, &mut errors);
    stages(schedule, &mut errors);
    order(schedule, &mut errors);
    // Without the place of every operation, the rest has no meaning.
    let Some(places) = places else { return Err(errors) };
    dependences(graph, schedule, &places, &mut errors);
    units(graph, schedule, &places, &mut errors);
    if errors.is_empty() {
        errors.extend(weight(graph, schedule, &places, live));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn wrong(site: Site, title: String, help: &str) -> Diagnostic<Site> {
    Diagnostic::new(Code::ScheduleIllegal, site, title).help(help)
}

/// The entry of each operation, if all of them have one.
fn entries(graph: &Graph, schedule: &Schedule, errors: &mut Errors) -> Option<Vec<At>> {
    let mut places: Vec<Option<At>> = vec![None; graph.ops().len()];
    for (entry, placed) in schedule.ops.iter().enumerate() {
        let site = Site::Op(entry, Field::Name);
        let name = &placed.name;
        let Some(op) = graph.ops().iter().position(|op| op.name == *name) else {
            let title = format!("the graph has no operation `{name}`");
            errors.push(Diagnostic::new(Code::ScheduleName, site, title).help("remove the line"));
            continue;
        };
        if let Some(first) = places[op] {
            let title = format!("`{name}` is placed twice");
            let error = Diagnostic::new(Code::ScheduleName, site, title);
            errors.push(error.related(Site::Op(first.entry, Field::Name), "the first time").help("remove one line"));
            continue;
        }
        places[op] = Some(At { entry, cycle: placed.cycle.into(), order: placed.order.into() });
    }
    for (op, _) in graph.ops().iter().zip(&places).filter(|(_, place)| place.is_none()) {
        let title = format!("`{}` is not placed", op.name);
        errors.push(wrong(Site::Whole, title, "add a line for it"));
    }
    // Names are distinct in a valid graph and each was placed at most once, so this is a bijection if none is missing.
    places.into_iter().collect()
}

/// Stages follow from cycles, begin with 0 and end with the last one that is used.
fn stages(schedule: &Schedule, errors: &mut Errors) {
    let mut used = Vec::new();
    for (i, op) in schedule.ops.iter().enumerate() {
        if op.cycle < 0 {
            let title = format!("`{}` is issued in cycle {}", op.name, op.cycle);
            errors.push(wrong(Site::Op(i, Field::Cycle), title, "the first cycle is 0"));
        }
        let stage = op.cycle.div_euclid(schedule.ii);
        if op.stage != stage {
            let title =
                format!("`{}` is issued in cycle {}, which is in stage {stage}, not {}", op.name, op.cycle, op.stage);
            errors.push(wrong(Site::Op(i, Field::Stage), title, "the stage is the cycle divided by the interval"));
        }
        used.push(stage);
    }
    let (first, last) = (used.iter().min().copied().unwrap_or(0), used.iter().max().copied().unwrap_or(0));
    // A schedule that begins in a later stage is the same one with empty stages before it, which would be executed for
    // nothing.
    if first != 0 {
        let title = format!("the first stage that is used is {first}");
        errors.push(wrong(Site::Whole, title, "count cycles from the first operation"));
    }
    if i128::from(schedule.stages) != i128::from(last) + 1 {
        let title = format!("{} stages, of which the last one that is used is stage {last}", schedule.stages);
        errors.push(wrong(Site::Stages, title, "the number of stages is one more than the last stage"));
    }
}

/// The order counts from 0, leaves nothing out, and does not go back in time within the interval.
fn order(schedule: &Schedule, errors: &mut Errors) {
    let mut by_order: Vec<usize> = (0..schedule.ops.len()).collect();
    by_order.sort_by_key(|i| schedule.ops[*i].order);
    let mut before: Option<usize> = None;
    for (expected, i) in (0_i64..).zip(by_order) {
        let op = &schedule.ops[i];
        let site = Site::Op(i, Field::Order);
        if op.order != expected {
            let title =
                format!("`{}` has the place {} in the body, where {expected} is the next one", op.name, op.order);
            errors.push(wrong(site, title, "places count from 0, and each is used once"));
            return;
        }
        let slot = |i: usize| schedule.ops[i].cycle.rem_euclid(schedule.ii);
        if let Some(other) = before.filter(|other| slot(*other) > slot(i)) {
            let (name, late) = (&op.name, &schedule.ops[other].name);
            let (mine, its) = (slot(i), slot(other));
            let title =
                format!("`{name}` comes after `{late}` in the body, but cycle {mine} of the interval before {its}");
            errors.push(wrong(site, title, "the order follows the cycles of the interval"));
        }
        before = Some(i);
    }
}

fn dependences(graph: &Graph, schedule: &Schedule, places: &[At], errors: &mut Errors) {
    let ii = i128::from(schedule.ii);
    for edge in graph.edges() {
        let (from, to) = (places[edge.from], places[edge.to]);
        // Shown for iteration 0 of the first operation. For any other, both sides grow by the same multiple of II.
        let ready = from.cycle + i128::from(edge.latency);
        let issued = to.cycle + ii * i128::from(edge.distance);
        let (first, second) = (&graph.ops()[edge.from].name, &graph.ops()[edge.to].name);
        let kind = edge.kind.name();
        let site = Site::Op(to.entry, Field::Cycle);
        let related = Site::Op(from.entry, Field::Cycle);
        if issued < ready {
            let title = format!(
                "`{second}` is issued {} too early for `{first}`: in cycle {issued}, and not before {ready} (`{kind}`)",
                counted(u64::try_from(ready - issued).unwrap_or(u64::MAX), "cycle")
            );
            errors.push(wrong(site, title, "issue it later").related(related, "what it waits for"));
        } else if issued == from.cycle && edge.from != edge.to && from.order > to.order {
            // Both are issued in the same cycle, and only their order in the body says which comes first.
            let title = format!("`{second}` is issued in the same cycle as `{first}`, but before it (`{kind}`)");
            errors.push(wrong(site, title, "change their order").related(related, "what it waits for"));
        }
    }
}

/// No two operations hold a unit at the same time, whatever iterations they are of.
///
/// Instance i of an operation holds the unit from `cycle + i · II`. Two of them overlap exactly if the distance of their beginnings is
/// less than the occupancy of the one that begins first. With `cycle(b) − cycle(a) = q · II + r`, 0 ≤ r < II, the instances of b that
/// begin next after one of a begin r later, and those that begin last before it II − r earlier.
fn units(graph: &Graph, schedule: &Schedule, places: &[At], errors: &mut Errors) {
    let ii = i128::from(schedule.ii);
    for (i, a) in graph.ops().iter().enumerate() {
        if a.unit.is_some() && i128::from(a.occupancy) > ii {
            let title =
                format!("`{}` holds its unit for {} cycles, and is issued again after {ii}", a.name, a.occupancy);
            let site = Site::Op(places[i].entry, Field::Cycle);
            let error = Diagnostic::new(Code::ScheduleSelfOverlap, site, title);
            errors.push(error.help("make the interval longer, or divide the operation"));
        }
        for (j, b) in graph.ops().iter().enumerate().skip(i + 1) {
            let Some(unit) = a.unit.filter(|unit| b.unit == Some(*unit)) else { continue };
            // Example: II = 10, a in cycle 3 for 4 cycles, b in cycle 15 for 2: 12 cycles later, thus r = 2 < 4. The
            // instance of b that is one iteration older begins two cycles after a, which still holds the unit.
            let after = (places[j].cycle - places[i].cycle).rem_euclid(ii);
            if after < i128::from(a.occupancy) || ii - after < i128::from(b.occupancy) {
                let title = format!("`{}` and `{}` hold `{}` at the same time", a.name, b.name, graph.units()[unit]);
                let error = wrong(Site::Op(places[j].entry, Field::Cycle), title, "issue one of them in another cycle");
                errors.push(error.related(Site::Op(places[i].entry, Field::Cycle), "the other one"));
            }
        }
    }
}

/// The live weight changes upward only where a result becomes live, so its maximum is in one of those cycles. For each of them, the
/// instances of every result that are live in it are counted: those iterations i with start + i · II ≤ cycle < end + i · II.
fn weight(graph: &Graph, schedule: &Schedule, places: &[At], limit: Option<i64>) -> Option<Diagnostic<Site>> {
    let ii = i128::from(schedule.ii);
    let ends: Vec<i128> = (0..places.len())
        .map(|op| {
            let readers = graph.edges().iter().filter(|edge| edge.from == op && edge.kind.carries_value());
            let read = readers.map(|edge| places[edge.to].cycle + ii * i128::from(edge.distance));
            let complete = places[op].cycle + i128::from(graph.ops()[op].latency.max(1));
            read.fold(complete, i128::max)
        })
        .collect();
    let in_cycle = |cycle: i128| -> i128 {
        let of = |op: usize| {
            let weight = i128::from(graph.ops()[op].weight);
            // Iterations from the first that has not ended to the last that has begun.
            // Iterations i with start + i · II ≤ cycle are those up to ⌊(cycle − start) / II⌋; those that have ended by
            // then, up to ⌊(cycle − end) / II⌋. All between are live. With start 7, end 32, II = 10 in cycle 11: 0 −
            // (−3) = 3.
            let begun = (cycle - places[op].cycle).div_euclid(ii);
            let ended = (cycle - ends[op]).div_euclid(ii);
            weight * (begun - ended)
        };
        (0..places.len()).map(of).sum()
    };
    let most = places.iter().map(|place| in_cycle(place.cycle)).max().unwrap_or(0);
    if most != i128::from(schedule.live) {
        let title = format!("the live weight is {most}, not {}", schedule.live);
        return Some(wrong(Site::Live, title, "state the greatest weight of results that are live together"));
    }
    let limit = limit.filter(|limit| most > i128::from(*limit))?;
    let title = format!("the live weight is {most}, more than {limit}");
    Some(wrong(Site::Live, title, "place operations nearer to their readers, or overlap fewer iterations"))
}
