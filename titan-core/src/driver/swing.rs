//! Schedules of loops by the modulo scheduler, instead of the rule's ([`super::order`]).
//!
//! The scheduler places the operations of a loop's graph ([`super::loop_graph`]) in cycles; the stage of an operation is that of its cycle, and
//! operations of one stage follow each other by their cycles. Two things are not its to decide:
//!
//! * Copies to a ring are issued as far ahead as its slots allow, behind an MMA in the middle of the body, since how long they take depends on
//!   what else the machine does.
//! * Names and numbers stand before the first operation of the last stage that uses them, and are computed again for others.
//!
//! A schedule that cannot be carried out, or that the checker of expanded loops refuses, is not taken.
//!
//! Deliberately absent: the choice between this schedule and the rule's.

use super::loop_graph::{LoopGraph, loop_graphs};
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
        let Plan::Overlapped(found) = plan(&graph.graph, &Options { live, ..Options::default() }) else {
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

/// The stages and the places of the operations of a graph, if iterations of the loop begin with the first product. Assemblers move nothing
/// from one iteration to the next, so that this is the best place for the end: the operands of this product are loaded before.
fn from_first_product(kernel: &Kernel, graph: &LoopGraph, schedule: &schedule::Schedule) -> Vec<(i64, i64)> {
    let first = graph.members.iter().position(|group| group.iter().any(|id| is_product(kernel.op(*id))));
    let begin = first.and_then(|first| schedule.ops.get(first)).map_or((0, 0), |entry| (entry.cycle, entry.order));
    let turn = schedule.ops.len() as i64;
    let of = |entry: &schedule::Entry| {
        let (stage, within) = (entry.cycle.div_euclid(schedule.ii), entry.cycle.rem_euclid(schedule.ii));
        // Those before the first product of an interval belong to the iteration before.
        let earlier = (within, entry.order) < (begin.0.rem_euclid(schedule.ii), begin.1);
        (stage - i64::from(earlier), entry.order + if earlier { turn } else { 0 })
    };
    schedule.ops.iter().map(of).collect()
}

/// The stage and the place of each operation of a body, from the stages and places of the operations of its graph.
fn places(kernel: &Kernel, graph: &LoopGraph, ops: &[OpId], found: &[(i64, i64)]) -> Option<Vec<Planned>> {
    let is_fill = |group: usize| graph.members[group].iter().any(|id| modulo::fills(kernel, *id).is_some());
    let mut stages: Vec<i64> = found.iter().map(|(stage, _)| *stage).collect();
    let mut order: Vec<usize> = (0..found.len()).filter(|group| !is_fill(*group)).collect();
    order.sort_by_key(|group| found[*group].1);
    let edges = graph.graph.edges();
    for fill in (0..found.len()).filter(|group| is_fill(*group)) {
        // One iteration later than the slots allow at most, so that it has any place in the body.
        let of_slots = edges.iter().filter(|edge| edge.to == fill && edge.from != fill);
        stages[fill] = of_slots.map(|edge| stages[edge.from] - edge.distance + 1).max()?;
    }
    let has_product = |group: &usize| graph.members[*group].iter().any(|id| is_product(kernel.op(*id)));
    let products: Vec<usize> = (0..order.len()).filter(|at| has_product(&order[*at])).collect();
    let middle = products.get(products.len().saturating_sub(1) / 2).map_or(0, |at| at + 1);
    order.splice(middle..middle, (0..found.len()).filter(|group| is_fill(*group)));
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
    let others = graph.left_out.iter().filter(|id| !placed.iter().any(|(placed, _)| placed == *id));
    let all: Vec<(OpId, i64)> = others.map(|id| (*id, last)).chain(placed.iter().copied()).collect();
    ops.iter()
        .map(|id| {
            let order = all.iter().position(|(placed, _)| placed == id)?;
            let (stage, order) = (u16::try_from(all[order].1 - first).ok()?, u16::try_from(order).ok()?);
            Some(Planned { stage, order })
        })
        .collect()
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
