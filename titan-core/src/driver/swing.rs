//! Schedules of loops by the modulo scheduler, instead of the rule's ([`super::order`]).
//!
//! The scheduler places the operations of a loop's graph ([`super::loop_graph`]) in cycles; the stage of an operation is that of its cycle, and
//! operations of one stage follow each other by their cycles. Two things are not its to decide:
//!
//! * Copies to a ring are issued as far ahead as its slots allow, since how long they take depends on what else the machine does, where the path
//!   to shared memory is free for the longest time. A wait is a barrier, behind which all warps have read what was released before: behind it, a
//!   ring of D slots is filled D iterations ahead, and D − 1 iterations before it.
//! * Stages are waited for immediately before what needs them first. A wait is a barrier of all warps: the later, the more time copies have,
//!   and the fewer warps wait for each other. That stages were read is told immediately behind what reads them last.
//! * Names and numbers stand before the first operation of the last stage that uses them, and are computed again for others.
//!
//! A schedule that cannot be carried out, or that the checker of expanded loops refuses, is not taken.
//!
//! Deliberately absent: the choice between this schedule and the rule's.

use super::loop_graph::{LoopGraph, SHARED_UNIT, loop_graphs};
use super::order::{annotate, bodies, is_product};
use super::schedule::{Body, Roles, Schedule};
use super::table::OTHER_REGISTERS;
use crate::collections::SortedSet;
use crate::ir::{Kernel, OpId, OpKind, Pipe, Planned, TtgOp};
use crate::pipeline::modulo;
use crate::schedule::swing::Options;
use crate::schedule::{self, Plan, plan};
use crate::target::Target;

/// Places the operations of the loops of a laid-out kernel by the modulo scheduler, where it finds something that can be carried out; and a
/// note that says where it did.
pub(super) fn place(kernel: &Kernel, target: &Target, schedule: &mut Schedule) -> String {
    let graphs = loop_graphs(kernel, target).unwrap_or_default();
    let mut placed = 0;
    let all = bodies(kernel);
    let live = i64::from(target.registers.saturating_sub(OTHER_REGISTERS));
    for graph in &graphs {
        let Some(number) = all.iter().position(|(looped, _)| *looped == graph.looped) else { continue };
        let live = Some(live.saturating_sub(graph.outside).max(0));
        let Plan::Overlapped(found) = plan(&graph.graph, &Options { live, stages: Some(2), ..Options::default() })
        else {
            continue;
        };
        let (_, body) = all[number];
        let Some((_, ops)) = kernel.block(body).ops.split_last() else { continue };
        let Some(places) = places(kernel, graph, ops, &from_first_product(kernel, graph, &found.schedule)) else {
            continue;
        };
        let tried = with(kernel, schedule, ops, Body { number, places });
        let carried_out = tried.filter(|tried| {
            let scheduled = annotate(kernel, &tried.bodies);
            scheduled.is_some_and(|scheduled| {
                modulo::expand(&scheduled).is_ok_and(|made| modulo::check(&scheduled, &made).is_ok())
            })
        });
        if let Some(carried_out) = carried_out {
            *schedule = carried_out;
            placed += 1;
        }
    }
    let all = graphs.len();
    let rest =
        if placed == all { "" } else { "; for the others it has nothing that fits, and schedule(rule) places them" };
    format!("schedule(swing): {placed} of {all} loops are placed by the modulo scheduler{rest}")
}

/// The schedule with this body, and with what it says of rings that the body fills.
fn with(kernel: &Kernel, schedule: &Schedule, ops: &[OpId], body: Body) -> Option<Schedule> {
    let mut made = schedule.clone();
    let last = body.places.iter().map(|planned| planned.stage).max()?;
    let stage = |wanted: TtgOp| {
        let of = ops.iter().zip(&body.places).find(|(id, _)| kernel.op(**id).kind == OpKind::Ttg(wanted.clone()));
        of.map(|(_, planned)| planned.stage)
    };
    for at in 0..kernel.pipes.len() {
        let (Some(fills), Some(waits)) = (stage(TtgOp::Acquire(Pipe::new(at))), stage(TtgOp::Ready(Pipe::new(at))))
        else {
            continue;
        };
        let (ahead, early) = (u32::from(last - fills), waits < last);
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

/// The stages and the places of the operations of a graph, if iterations of the loop end with the product before the first one of the program.
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
    let first = (0..order.len()).find(|group| is_product(*group));
    let at = first.and_then(|first| order.iter().position(|group| *group == first)).unwrap_or(0);
    // From the first product back to the one before it; in a loop of one product, that is the same.
    let before = (1..order.len()).find(|back| is_product(order[(at + order.len() - back) % order.len()]));
    let begin = before.map_or(at, |back| (at + order.len() - back + 1) % order.len());
    order.rotate_left(begin);
    // Operations that were before the begin of an interval belong to the iteration before.
    let turned = order.len() - begin;
    let stage = |at: usize, group: usize| {
        schedule.ops[group].cycle.div_euclid(schedule.ii) - i64::from(begin > 0 && at >= turned)
    };
    let mut found = vec![(0, 0); order.len()];
    for (at, group) in order.iter().enumerate() {
        found[*group] = (stage(at, *group), i64::try_from(at).unwrap_or(i64::MAX));
    }
    found
}

/// The stage and the place of each operation of a body, from the stages and places of the operations of its graph.
fn places(kernel: &Kernel, graph: &LoopGraph, ops: &[OpId], found: &[(i64, i64)]) -> Option<Vec<Planned>> {
    let is_apart = |group: &usize| {
        let beside = graph.waits.iter().chain(&graph.releases);
        graph.slots.iter().map(|(fill, _)| fill).chain(beside.map(|(op, _)| op)).any(|apart| apart == group)
    };
    let mut stages: Vec<i64> = found.iter().map(|(stage, _)| *stage).collect();
    let mut order: Vec<usize> = (0..found.len()).filter(|group| !is_apart(group)).collect();
    order.sort_by_key(|group| found[*group].1);
    let has_product = |group: &usize| graph.members[*group].iter().any(|id| is_product(kernel.op(*id)));
    for (wait, needed) in &graph.waits {
        let first = *needed.iter().filter(|user| !is_apart(user)).min_by_key(|user| found[**user])?;
        stages[*wait] = stages[first];
        let at = order.iter().position(|group| *group == first)?;
        order.insert(at, *wait);
    }
    for (release, before) in &graph.releases {
        // Behind the last operation before it, which may be another one that tells the same.
        let at = |group: &usize| Some((stages[*group], order.iter().position(|other| other == group)?));
        let (stage, at) = before.iter().filter(|group| order.contains(group)).filter_map(at).max()?;
        stages[*release] = stage;
        order.insert(at + 1, *release);
    }
    for (fill, released) in &graph.slots {
        let waits = |group: &usize| graph.waits.iter().any(|(wait, _)| wait == group);
        let wait = order.iter().rposition(waits)?;
        let behind = copies_before(graph, &order, wait, &has_product)?;
        let place = |group: usize| order.iter().position(|other| *other == group);
        let latest = |(from, distance): &(usize, u32)| {
            let is_behind = place(*from).is_some_and(|at| at < wait) && behind > wait;
            stages[*from] - i64::from(*distance) + i64::from(!is_behind)
        };
        let stage = released.iter().map(latest).max()?;
        stages[*fill] = stage;
        // Copies would have less than an iteration.
        if graph.waits.iter().any(|(wait, _)| stages[*wait] <= stage) {
            return None;
        }
        order.insert(behind, *fill);
    }
    let (first, last) = (stages.iter().copied().min()?, stages.iter().copied().max()?);
    let mut placed: Vec<(OpId, i64)> = Vec::new();
    for group in order {
        for id in &graph.members[group] {
            if stages[group] == last {
                let names = names_for(kernel, graph, *id);
                let is_new = |id: &&OpId| names.contains(id) && !placed.iter().any(|(placed, _)| placed == *id);
                let names: Vec<OpId> = graph.left_out.iter().filter(is_new).copied().collect();
                placed.extend(names.into_iter().map(|id| (id, last)));
            }
            placed.push((*id, stages[group]));
        }
    }
    // Names that only operations of earlier stages use are computed again for these. Here they come behind all that they may use.
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

/// The place of copies in the order of a body: before the product that is followed by the longest time without loads from shared memory, whose
/// path copies use too; of equal ones, before the first behind the last wait.
fn copies_before(
    graph: &LoopGraph,
    order: &[usize],
    wait: usize,
    has_product: &dyn Fn(&usize) -> bool,
) -> Option<usize> {
    let is_load = |op: &schedule::graph::Op| op.unit == Some(SHARED_UNIT);
    let time = |at: usize| {
        let turned = order[at..].iter().chain(&order[..at]).map(|group| &graph.graph.ops()[*group]);
        turned.take_while(|op| !is_load(op)).map(|op| op.occupancy).sum::<i64>()
    };
    let from_wait = (wait..order.len()).chain(0..wait).filter(|at| has_product(&order[*at]));
    // Of equal times, the last one is taken of those in reverse.
    from_wait.rev().max_by_key(|at| time(*at))
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
