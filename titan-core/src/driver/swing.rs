//! Schedules of loops by the modulo scheduler, instead of the rule's ([`super::order`]).
//!
//! The scheduler places the operations of a loop's graph ([`super::loop_graph`]) in cycles; the stage of an operation is that of its cycle, and
//! operations of one stage follow each other by their cycles. Three things are not its to decide:
//!
//! * Copies to a ring are issued as far ahead as its slots allow, since how long they take depends on what else the machine does, with the first
//!   product behind a wait. A wait is a barrier, behind which all warps have read what was released before: a ring of D slots is filled D
//!   iterations ahead there, if the last read is in front of the wait, and D − 1 iterations else.
//! * Stages are waited for immediately before what needs them first. A wait is a barrier of all warps: the later, the more time copies have,
//!   and the fewer warps wait for each other. That stages were read is told immediately behind what reads them last.
//! * Names and numbers stand before the first operation of the last stage that uses them, and are computed again for others.
//!
//! A schedule that cannot be carried out, or that the checker of expanded loops refuses, is not taken.
//!
//! Deliberately absent: the choice between this schedule and the rule's.

use super::ahead::filled_ahead;
use super::log::{Alternative, Why};
use super::loop_graph::{LoopGraph, loop_graphs};
use super::order::{bodies, is_in_flight, is_product};
use super::registers::for_tiles;
use super::road::InStages;
use super::rule::Filled;
use super::schedule::{Body, Roles, Schedule};
use crate::collections::SortedSet;
use crate::ir::{Kernel, OpId, OpKind, Pipe, Planned, TtgOp};
use crate::schedule::graph::{DraftEdge, Graph, Kind};
use crate::schedule::swing::Options;
use crate::schedule::{self, Plan, plan};
use crate::target::Target;

/// Places the operations of the loops of a laid-out kernel by the modulo scheduler, where it finds something that can be carried out: what was made
/// of the kernel by that. The log says where it did; that of a kernel that did not ask for it says nothing if it did nowhere.
pub(super) fn place(
    kernel: &Kernel,
    target: &Target,
    Filled { schedule, log, .. }: &mut Filled,
    asked: bool,
) -> Option<InStages> {
    let graphs = loop_graphs(kernel, target).unwrap_or_default();
    let all = bodies(kernel);
    let live = i64::from(for_tiles(target.registers));
    let mut loops: Vec<Candidates<'_>> = graphs
        .iter()
        .filter_map(|graph| {
            // Bodies are numbered in program order, as the schedule names them.
            let number = all.iter().position(|(looped, _)| *looped == graph.looped)?;
            let (_, ops) = kernel.block(all[number].1).ops.split_last()?;
            let live = Some(live.saturating_sub(graph.outside).max(0));
            Some(Candidates { kernel, graph, ops, number, live, tried: 0, next: None })
        })
        .collect();
    let (made, placed) = carried_out(kernel, schedule, &mut loops);
    if asked || placed > 0 {
        log.add(Alternative::Swing { placed, of: graphs.len() }, Why::NothingFits);
    }
    made
}

/// Changes a schedule to the first candidates of loops that can be carried out; what was made by it, if it was changed, and the number of these
/// loops.
///
/// Nothing that was found is believed: the loops are expanded, and the checker compares the result. If either refuses, the next candidate is
/// tried, and behind the last one the rule's places stay. Expansion and the check cost more than the search, so all loops are tried at
/// once. Only if that is refused, they are tried one by one, to find which of them are in the way.
fn carried_out(kernel: &Kernel, schedule: &mut Schedule, loops: &mut [Candidates<'_>]) -> (Option<InStages>, usize) {
    let (mut tried, mut placed) = (schedule.clone(), 0);
    for candidates in &mut *loops {
        // This ends: each round but the last takes a candidate.
        while let Some(body) = candidates.peek() {
            if let Some(next) = with(kernel, &tried, candidates.ops, body) {
                (tried, placed) = (next, placed + 1);
                break;
            }
            candidates.next = None;
        }
    }
    if placed == 0 {
        return (None, 0);
    }
    if let Ok(made) = InStages::of(kernel, &tried.bodies) {
        *schedule = tried;
        return (Some(made), placed);
    }
    if placed == 1 {
        // There is no other loop in the way.
        loops.iter_mut().for_each(|candidates| candidates.next = None);
    }
    let (mut last, mut placed) = (None, 0);
    for candidates in loops {
        // This ends: each round takes a candidate.
        while let Some(body) = candidates.take() {
            let Some(tried) = with(kernel, schedule, candidates.ops, body) else { continue };
            if let Ok(made) = InStages::of(kernel, &tried.bodies) {
                (*schedule, last) = (tried, Some(made));
                placed += 1;
                break;
            }
        }
    }
    (last, placed)
}

/// The schedules of a loop that may be carried out, the best first: each is found when it is asked for.
struct Candidates<'k> {
    kernel: &'k Kernel,
    graph: &'k LoopGraph,
    ops: &'k [OpId],
    /// The number of the loop's body.
    number: usize,
    /// The greatest live weight.
    live: Option<i64>,
    /// How many graphs were searched.
    tried: usize,
    /// The next one, if it was found.
    next: Option<Body>,
}

impl Candidates<'_> {
    /// The next schedule.
    fn peek(&mut self) -> Option<Body> {
        // This ends: each round searches another graph, and there are two.
        while self.next.is_none() && self.tried < 2 {
            self.tried += 1;
            self.next = if self.tried == 1 {
                self.found(&self.graph.graph)
            } else {
                with_free_slots(self.graph).and_then(|graph| self.found(&graph))
            };
        }
        self.next.clone()
    }

    /// The next schedule, which is then another one.
    fn take(&mut self) -> Option<Body> {
        let next = self.peek();
        self.next = None;
        next
    }

    /// What the scheduler finds for the loop with these dependences.
    fn found(&self, dependences: &Graph) -> Option<Body> {
        // Threads that wait for what they have issued gain more from short lives than from the shortest interval; products in flight are executed
        // while they do something else, for which the interval must have room.
        let is_shortest = !self.graph.in_flight.is_empty();
        let options = Options { live: self.live, stages: Some(2), is_shortest, ..Options::default() };
        let Plan::Overlapped(found) = plan(dependences, &options) else { return None };
        let first = from_first_product(self.kernel, self.graph, &found.schedule);
        let places = places(self.kernel, self.graph, self.ops, &first)?;
        // No product may be started for an iteration that does not exist, as it would change an accumulator.
        let peeled = self.ops.iter().any(|id| is_in_flight(self.kernel.op(*id)));
        Some(Body { number: self.number, places, peeled, unmasked: false })
    }
}

/// The dependences of a loop, and an edge from whatever reads a stage of a ring of D slots to whatever reads the stage D − 1 iterations later:
/// at most D − 1 stages are being read at any time, so that one slot is free to be filled. `None` if that is nothing new.
///
/// A ring of two slots needs this where fragments are loaded an iteration early: the next stage would be read while this one still is.
fn with_free_slots(graph: &LoopGraph) -> Option<Graph> {
    let mut draft = graph.graph.draft();
    let own = draft.edges.len();
    for (release, distance) in graph.slots.iter().flat_map(|(_, released)| released) {
        let told = told_by(graph, *release);
        // Of the same ring is what the release comes behind and a wait comes before.
        for needed in graph.waits.iter().map(|(_, needed)| needed) {
            let reads: Vec<usize> = needed.iter().filter(|user| told.contains(user)).copied().collect();
            for (last, first) in reads.iter().flat_map(|last| reads.iter().map(move |first| (*last, *first))) {
                if last != first && *distance > 1 {
                    draft.edges.push(DraftEdge {
                        kind: Kind::Memory,
                        from: draft.ops[last].name.clone(),
                        to: draft.ops[first].name.clone(),
                        latency: Some(1),
                        distance: i64::from(*distance) - 1,
                    });
                }
            }
        }
    }
    if draft.edges.len() == own { None } else { draft.check().ok() }
}

/// What an operation that tells that a stage was read comes behind, itself or by way of others that tell the same.
fn told_by(graph: &LoopGraph, release: usize) -> SortedSet<usize> {
    let (mut open, mut found) = (vec![release], SortedSet::new());
    // This ends: an operation is found once.
    while let Some(release) = open.pop() {
        let before = graph.releases.iter().filter(|(own, _)| *own == release).flat_map(|(_, before)| before);
        open.extend(before.copied().filter(|own| found.insert(*own)));
    }
    found
}

/// The schedule with this body, and with what it says of rings that the body fills.
pub(super) fn with(kernel: &Kernel, schedule: &Schedule, ops: &[OpId], body: Body) -> Option<Schedule> {
    let mut made = schedule.clone();
    for at in 0..kernel.pipes.len() {
        let pipe = Pipe::new(at);
        let Some(ahead) = filled_ahead(kernel, ops, &body.places, pipe) else { continue };
        let stage = |wanted: TtgOp| {
            let of = ops.iter().zip(&body.places).find(|(id, _)| kernel.op(**id).kind == OpKind::Ttg(wanted.clone()));
            of.map(|(_, planned)| u32::from(planned.stage))
        };
        let (Some(fills), Some(waits)) = (stage(TtgOp::Acquire(pipe)), stage(TtgOp::Ready(pipe))) else { continue };
        let early = waits < fills + ahead;
        match (at.checked_sub(made.slots.len()), &mut made.roles) {
            (Some(own), _) => {
                let own = made.loops.get_mut(own)?;
                (own.distance, own.carried) = (ahead, early);
            }
            (None, Roles::Fused { distance, carried }) => (*distance, *carried) = (ahead, early),
            (None, Roles::Kept | Roles::Split { .. }) => return None,
        }
    }
    made.bodies.retain(|other| other.number != body.number);
    made.bodies.push(body);
    made.bodies.sort_by_key(|body| body.number);
    Some(made)
}

/// The stages and the places of the operations of a graph, if iterations of the loop end with the product before the first one of the program; with
/// products in flight, where the fewest registers are passed on.
///
/// Assemblers move nothing from one iteration to the next, and values that are passed on may need moves. So the end is best behind a product:
/// what is loaded for the next ones is loaded early enough in the same iteration, but for the operands of the first.
///
/// What is issued in the same cycle as a product comes before it: instructions are issued in order, and it would wait for all of the product.
fn from_first_product(kernel: &Kernel, graph: &LoopGraph, schedule: &schedule::Schedule) -> Vec<(i64, i64)> {
    let is_product = |group: usize| graph.members[group].iter().any(|id| is_product(kernel.op(*id)));
    let place = |group: usize| {
        let entry = &schedule.ops[group];
        (entry.cycle.rem_euclid(schedule.ii), is_product(group), entry.order)
    };
    let mut order: Vec<usize> = (0..schedule.ops.len()).collect();
    order.sort_by_key(|group| place(*group));
    let in_flight = |group: &usize| graph.members[*group].iter().any(|id| is_in_flight(kernel.op(*id)));
    let begin = if order.iter().any(in_flight) {
        lightest_cut(graph, schedule, &order)
    } else {
        let first = (0..order.len()).find(|group| is_product(*group));
        let at = first.and_then(|first| order.iter().position(|group| *group == first)).unwrap_or(0);
        // From the first product back to the one before it; in a loop of one product, that is the same.
        let before = (1..order.len()).find(|back| is_product(order[(at + order.len() - back) % order.len()]));
        before.map_or(at, |back| (at + order.len() - back + 1) % order.len())
    };
    let stages = stages_from(schedule, &order, begin);
    order.rotate_left(begin);
    let mut found = vec![(0, 0); order.len()];
    for (at, group) in order.iter().enumerate() {
        found[*group] = (stages[*group], i64::try_from(at).unwrap_or(i64::MAX));
    }
    found
}

/// The stages of the operations of a graph, in this order in an interval, if iterations of the loop begin at this place of the order.
///
/// Rotating the interval keeps all differences of cycles: the loop begins at another point of the same periodic sequence. With the order a, b, M, c and
/// the begin at c, the body is c, a, b, M: c of iteration i comes before a of iteration i + 1, so what was turned to the end gets one stage less.
fn stages_from(schedule: &schedule::Schedule, order: &[usize], begin: usize) -> Vec<i64> {
    let mut stages = vec![0; order.len()];
    for (at, group) in order.iter().enumerate() {
        let is_turned = begin > 0 && at < begin;
        stages[*group] = schedule.ops[*group].cycle.div_euclid(schedule.ii) - i64::from(is_turned);
    }
    stages
}

/// The place of the order at which a loop with products in flight best begins: where the fewest registers are passed to the next iteration, since
/// these may need moves. No product may be in flight there, but for one that the next iteration continues; and where stages are too many, the loop cannot be
/// carried out.
fn lightest_cut(graph: &LoopGraph, schedule: &schedule::Schedule, order: &[usize]) -> usize {
    let (ops, edges) = (graph.graph.ops(), graph.graph.edges());
    let cost = |begin: &usize| {
        let stages = stages_from(schedule, order, *begin);
        // How often a value is passed on before its last use.
        let mut passed = vec![0; ops.len()];
        for edge in edges.iter().filter(|edge| edge.kind.carries_value()) {
            passed[edge.from] = passed[edge.from].max(stages[edge.to] + edge.distance - stages[edge.from]);
        }
        let in_flight = graph.in_flight.iter().any(|of| !of.continues && stages[of.wait] > stages[of.product]);
        let placed = || (0..ops.len()).filter(|op| !is_apart(graph, *op)).map(|op| stages[op]);
        let few = placed().max().zip(placed().min()).is_some_and(|(last, first)| last - first < 2);
        let registers: i64 = ops.iter().zip(&passed).map(|(op, passed)| op.weight * passed).sum();
        (in_flight, !few, registers)
    };
    (0..order.len()).min_by_key(cost).unwrap_or(0)
}

/// The stage and the place of each operation of a body, from the stages and places of the operations of its graph.
fn places(kernel: &Kernel, graph: &LoopGraph, ops: &[OpId], found: &[(i64, i64)]) -> Option<Vec<Planned>> {
    let is_apart = |group: &usize| is_apart(graph, *group);
    let mut stages: Vec<i64> = found.iter().map(|(stage, _)| *stage).collect();
    let mut order: Vec<usize> = (0..found.len()).filter(|group| !is_apart(group)).collect();
    order.sort_by_key(|group| found[*group].1);
    let has_product = |group: &usize| graph.members[*group].iter().any(|id| is_product(kernel.op(*id)));
    for (wait, needed) in &graph.waits {
        let first = *needed.iter().filter(|user| !is_apart(user)).min_by_key(|user| found[**user])?;
        // In the stage of what needs it first: in an earlier one, the stage would be held for longer; in a later one, the dependence would be
        // violated.
        stages[*wait] = stages[first];
        let at = order.iter().position(|group| *group == first)?;
        order.insert(at, *wait);
    }
    for (release, before) in &graph.releases {
        // Behind the last operation before it, which may be another one that tells the same.
        let at = |group: &usize| Some((stages[*group], order.iter().position(|other| other == group)?));
        // The latest of them in time: first by stage, as a later stage is of the same iteration later, and then by place.
        let (stage, at) = before.iter().filter(|group| order.contains(group)).filter_map(at).max()?;
        stages[*release] = stage;
        order.insert(at + 1, *release);
    }
    for (fill, released) in &graph.slots {
        let waits = |group: &usize| graph.waits.iter().any(|(wait, _)| wait == group);
        let wait = order.iter().rposition(waits)?;
        // The path to shared memory has the least to do beside products. In front of the first one behind the wait, copies are ahead the
        // most, and the barrier of the wait shows all warps that the slot was read.
        let from_wait = (wait..order.len()).chain(0..wait);
        let behind = from_wait.into_iter().find(|at| has_product(&order[*at]))?;
        let place = |group: usize| order.iter().position(|other| *other == group);
        let is_behind = |from: usize| place(from).is_some_and(|at| at < wait) && behind > wait;
        let latest =
            |(from, distance): &(usize, u32)| stages[*from] - i64::from(*distance) + i64::from(!is_behind(*from));
        // With a release in stage s and a fill in stage f, interval k executes the release of iteration k - s and the fill of iteration k - f. The
        // fill of t + D must come behind the release of t: interval t + D + f is not before interval t + s. With f = s - D both are in one interval,
        // which is right if the fill stands behind a barrier that is behind the release; otherwise f is one more.
        let stage = released.iter().map(latest).max()?;
        // The slot was released in an iteration before, and what is released here is another one. Told behind the copies, it is known to be
        // another one, and the copies need no barrier of their own.
        let others = |from: &usize| !is_behind(*from) && place(*from).is_some_and(|at| at < behind);
        let told_later: Vec<usize> = released.iter().map(|(from, _)| *from).filter(others).collect();
        stages[*fill] = stage;
        // Copies would have less than an iteration.
        if graph.waits.iter().any(|(wait, _)| stages[*wait] <= stage) {
            return None;
        }
        order.insert(behind, *fill);
        order.retain(|group| !told_later.contains(group));
        let at = order.iter().position(|group| group == fill)?;
        order.splice(at + 1..at + 1, told_later);
    }
    // Stages may have become negative, as fills run ahead of all that was placed; they are counted from the first one on below.
    let (first, last) = (stages.iter().copied().min()?, stages.iter().copied().max()?);
    let mut placed: Vec<(OpId, i64)> = Vec::new();
    let used: Vec<SortedSet<OpId>> = graph
        .members
        .iter()
        .map(|members| members.iter().flat_map(|id| names_for(kernel, graph, *id)).collect())
        .collect();
    // The last stage that uses a name.
    let stage_of =
        |name: &OpId| (0..used.len()).filter(|group| used[*group].contains(name)).map(|group| stages[group]).max();
    for group in order {
        let is_new = |name: &&OpId| {
            used[group].contains(name)
                && stage_of(name) == Some(stages[group])
                && !placed.iter().any(|(placed, _)| placed == *name)
        };
        let names: Vec<OpId> = graph.left_out.iter().filter(is_new).copied().collect();
        placed.extend(names.into_iter().chain(graph.members[group].iter().copied()).map(|id| (id, stages[group])));
    }
    // What nothing uses.
    let others: Vec<OpId> =
        graph.left_out.iter().filter(|id| !placed.iter().any(|(placed, _)| placed == *id)).copied().collect();
    placed.extend(others.into_iter().map(|id| (id, last)));
    ops.iter()
        .map(|id| {
            let order = placed.iter().position(|(placed, _)| placed == id)?;
            let (stage, order) = (u16::try_from(placed[order].1 - first).ok()?, u16::try_from(order).ok()?);
            Some(Planned { stage, order })
        })
        .collect()
}

/// Whether an operation of a graph fills a ring, waits for a stage or tells that it was read: these are placed behind the search.
fn is_apart(graph: &LoopGraph, group: usize) -> bool {
    let beside = graph.waits.iter().chain(&graph.releases).map(|(op, _)| *op);
    graph.slots.iter().map(|(fill, _)| *fill).chain(beside).any(|apart| apart == group)
}

/// The names and numbers that an operation uses, itself or by way of others.
fn names_for(kernel: &Kernel, graph: &LoopGraph, id: OpId) -> SortedSet<OpId> {
    let (mut open, mut found) = (vec![id], SortedSet::new());
    // This ends: an operation is found once.
    while let Some(id) = open.pop() {
        let used = kernel.operands_within(id);
        for name in &graph.left_out {
            if kernel.op(*name).results.iter().any(|v| used.contains(v)) && found.insert(*name) {
                open.push(*name);
            }
        }
    }
    found
}
