//! The dependence graph of a loop, for the modulo scheduler ([`crate::schedule`]).
//!
//! Operations of the graph are those of the loop's body, with two exceptions:
//!
//! * Names and numbers that depend on the counter or on a stage alone are left out. The rewriter computes them again wherever they are needed,
//!   and they take no unit for long. What uses them depends on the stage.
//! * What must be in one stage is one operation: what acquires a slot of a ring and fills it, with what only this needs; and what waits for a
//!   stage.
//!
//! Its edges are the dependences by which the checker of expanded loops judges ([`crate::pipeline::modulo::dependences`]). Units and latencies are
//! those of the machine ([`crate::target::Timing`]), for all warps of a partition: an interval of the schedule is the time in which each of them
//! executes one iteration.
//!
//! ```text
//! for %t {                                      graph
//!     copies to the slots of the ring           op acquire0
//!     wait for a stage                          op ready4 unit matrix 20 latency 20
//!     %x = load                                 op load9 unit shared 64 latency 93 weight 16
//!     %acc = mma %x, %y, %acc                   op mma15 unit matrix 512 latency 545 weight 64
//!     release                                   op release22
//! }
//! ```
//!
//! How far ahead copies are issued follows from the slots of the ring, and where waits are from what they are needed for, not from this search
//! ([`super::swing`]). So copies, waits and releases have no edges, which would only keep the loads of an iteration together: the recurrence of
//! a ring, from its copy over its release to a later copy, is never critical.
//!
//! Deliberately absent: bank conflicts, registers of numbers, instructions for addresses.

use super::order::is_product;
use super::registers::registers;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::op_table::mnemonic;
use crate::ir::{Kernel, LocalOp, Op, OpId, OpKind, Token, Ty, UnOp, Value};
use crate::pipeline::modulo::{self, Dependence, Dependent, Violation, Why};
use crate::plan::operands;
use crate::schedule::graph::{Draft, DraftEdge, DraftOp, Graph, Kind};
use crate::target::Target;

/// The graph of a loop.
#[derive(Clone, Debug)]
pub struct LoopGraph {
    /// The loop.
    pub looped: OpId,
    /// The graph.
    pub graph: Graph,
    /// For each operation of the graph, those of the loop's body.
    pub members: Vec<Vec<OpId>>,
    /// For each operation that fills a ring, those that release its slots, and how many iterations before.
    pub slots: Vec<(usize, Vec<(usize, u32)>)>,
    /// For each operation that waits for a stage, those that need it.
    pub waits: Beside,
    /// For each operation that only tells that a stage was read, those that come before it, in program order.
    pub releases: Beside,
    /// The names and numbers that are left out.
    pub left_out: Vec<OpId>,
    /// Registers per thread of tiles from outside of the loop that it uses.
    pub outside: i64,
}

/// The graphs of the loops of a laid-out kernel that have operations to schedule, in program order.
///
/// # Errors
/// The first operation that loops with schedules do not contain.
pub fn loop_graphs(kernel: &Kernel, target: &Target) -> Result<Vec<LoopGraph>, Violation> {
    let mut found = Vec::new();
    for mut of in modulo::dependences(kernel)? {
        let left_out: Vec<OpId> = left_out(kernel, &of);
        of.dependences = between_others(&of, &left_out);
        let members = members(kernel, &of, &left_out);
        let costs: Vec<Vec<Cost>> =
            members.iter().map(|ops| ops.iter().map(|id| cost(kernel, *id, target)).collect()).collect();
        let name = format!("loop{}", found.len());
        let (slots, (waits, releases)) = (slots(kernel, &of, &members), around_stages(kernel, &of, &members));
        // Loops without such operations, and those that are too large, have no graph.
        // A draft that is refused is no mistake here: the loop keeps the order of the rule.
        if let Ok(graph) = draft(kernel, &of, &members, &costs, name).check() {
            let outside = outside(kernel, &of);
            found.push(LoopGraph { looped: of.looped, graph, members, slots, waits, releases, left_out, outside });
        }
    }
    Ok(found)
}

/// The registers per thread of tiles that a loop uses and neither computes nor carries.
fn outside(kernel: &Kernel, of: &Dependent) -> i64 {
    let (mut used, mut own) = (SortedSet::new(), SortedSet::new());
    for body in &kernel.op(of.looped).regions {
        own.extend(kernel.block(*body).args.iter().copied());
        kernel.walk_block(*body, &mut |_, op| {
            used.extend(op.args.iter().copied());
            own.extend(op.results.iter().copied());
            own.extend(op.regions.iter().flat_map(|region| &kernel.block(*region).args).copied());
        });
    }
    used.iter().filter(|v| !own.contains(v)).map(|v| i64::from(registers(kernel, *v))).sum()
}

/// The operations of a body that only compute names and numbers, from the counter, from stages and from outside.
fn left_out(kernel: &Kernel, of: &Dependent) -> Vec<OpId> {
    let mut free: Vec<OpId> = Vec::new();
    let gives_stage = |id: OpId| kernel.op(id).results.iter().all(|v| matches!(kernel.ty(*v), Ty::Token(..)));
    for id in &of.ops {
        let mut needs = of.dependences.iter().filter(|edge| edge.to == *id && edge.why == Why::Value);
        let of_this = |edge: &Dependence| edge.distance == 0 && gives_stage(edge.from);
        // In program order, so that what it is computed from is decided already. A number that an iteration carries is
        // not left out, since it cannot be computed again from its own iteration.
        if modulo::is_renewable(kernel, *id, false) && needs.all(|edge| free.contains(&edge.from) || of_this(edge)) {
            free.push(*id);
        }
    }
    free
}

/// The dependences between operations that are not left out: what uses a name depends on what the name is computed from.
fn between_others(of: &Dependent, left_out: &[OpId]) -> Vec<Dependence> {
    let mut all = of.dependences.clone();
    // In program order, so that what a name is computed from is no name that is still to be left out: names have no cycles.
    for name in left_out {
        let into: Vec<Dependence> = all.iter().filter(|edge| edge.to == *name).copied().collect();
        let out: Vec<Dependence> = all.iter().filter(|edge| edge.from == *name).copied().collect();
        all.retain(|edge| edge.from != *name && edge.to != *name);
        // wait → name (0), name → load (0) gives wait → load (0). Distances add up along the path. Names are taken out
        // one by one, and none comes back, so this ends.
        for (into, out) in into.iter().flat_map(|into| out.iter().map(move |out| (into, out))) {
            all.push(Dependence { from: into.from, distance: into.distance + out.distance, ..*out });
        }
    }
    all
}

/// The operations of a body, grouped by what must be in one stage.
fn members(kernel: &Kernel, of: &Dependent, left_out: &[OpId]) -> Vec<Vec<OpId>> {
    let mut groups: Vec<Vec<OpId>> = Vec::new();
    let mut of_ring: SortedMap<(usize, bool), usize> = SortedMap::new();
    for id in of.ops.iter().filter(|id| !left_out.contains(id)) {
        let mut used = kernel.op(*id).results.clone();
        used.extend(kernel.operands_within(*id));
        // Operations with the token of a slot are one group for each ring, since one branch guards the acquisition and
        // the fill. Those with the token of a pending wait, or of a stage, are another: together they are one wait.
        let key = used.iter().find_map(|value| {
            let Ty::Token(token, pipe) = kernel.ty(*value) else { return None };
            let waits = matches!(token, Token::Ready | Token::Stage);
            (token == Token::Slot || waits).then_some((pipe.index(), token == Token::Slot))
        });
        match key.and_then(|key| of_ring.get(&key).copied()) {
            Some(group) => groups[group].push(*id),
            None => {
                of_ring.extend(key.map(|key| (key, groups.len())));
                groups.push(vec![*id]);
            }
        }
    }
    // What a fill needs is executed with it, if nothing else needs it.
    for fill in of_ring.iter().filter(|((_, fills), _)| *fills).map(|(_, group)| *group).collect::<Vec<_>>() {
        loop {
            let own = groups[fill].clone();
            let of_fill = |edge: &&Dependence| edge.why == Why::Value && own.contains(&edge.to);
            let needed: SortedSet<OpId> = of.dependences.iter().filter(of_fill).map(|edge| edge.from).collect();
            // All its uses are in the group, so no other stage needs it. What two groups need stays by itself.
            let only = |id: &OpId| {
                let mut uses = of.dependences.iter().filter(|edge| edge.why == Why::Value && edge.from == *id);
                needed.contains(id) && !own.contains(id) && uses.all(|edge| own.contains(&edge.to))
            };
            // This ends: an operation joins once.
            let joins = groups.iter().position(|group| matches!(&group[..], [id] if only(id)));
            let Some(joins) = joins.filter(|joins| *joins != fill) else { break };
            let taken = std::mem::take(&mut groups[joins]);
            groups[fill].extend(taken);
        }
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// The operations of a graph that fill rings, each with those that release slots for it, and how many iterations before.
fn slots(kernel: &Kernel, of: &Dependent, members: &[Vec<OpId>]) -> Vec<(usize, Vec<(usize, u32)>)> {
    let place = |id: OpId| members.iter().position(|group| group.contains(&id));
    let fills = (0..members.len()).filter(|group| role(kernel, &members[*group]) == Role::Fills);
    let released_for = |fill: usize| {
        // Distance D in a ring of D slots: the fill of iteration t + D comes after the release of iteration t.
        let into = of.dependences.iter().filter(|edge| edge.why == Why::Slot && members[fill].contains(&edge.to));
        into.filter_map(|edge| Some((place(edge.from)?, edge.distance))).filter(|(from, _)| *from != fill).collect()
    };
    fills.map(|fill| (fill, released_for(fill))).collect()
}

/// Operations of a graph, each with others.
pub type Beside = Vec<(usize, Vec<usize>)>;

/// The operations of a graph that wait for stages, each with those that need the stage; and those that tell that stages were read, each with
/// those that come before it. All in the same iteration.
fn around_stages(kernel: &Kernel, of: &Dependent, members: &[Vec<OpId>]) -> (Beside, Beside) {
    let place = |id: OpId| members.iter().position(|group| group.contains(&id));
    let same = || of.dependences.iter().filter(|edge| edge.distance == 0);
    let all = |wanted: Role| (0..members.len()).filter(move |group| role(kernel, &members[*group]) == wanted);
    let needed_for = |wait: usize| {
        let out = same().filter(|edge| members[wait].contains(&edge.from));
        out.filter_map(|edge| place(edge.to)).filter(|to| *to != wait).collect()
    };
    let before = |release: usize| {
        let into = same().filter(|edge| members[release].contains(&edge.to));
        into.filter_map(|edge| place(edge.from)).filter(|from| *from != release).collect()
    };
    let waits = all(Role::Waits).map(|wait| (wait, needed_for(wait))).collect();
    (waits, all(Role::Releases).map(|release| (release, before(release))).collect())
}

/// What operations of a graph do to rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// They fill a stage.
    Fills,
    /// They wait for a stage.
    Waits,
    /// They tell that a stage was read.
    Releases,
    /// Nothing: the search places them.
    Computes,
}

fn role(kernel: &Kernel, ops: &[OpId]) -> Role {
    let only_tells = |id: &OpId| {
        let op = kernel.op(*id);
        let of_stage = |v: &Value| matches!(kernel.ty(*v), Ty::Token(..));
        op.args.iter().any(of_stage) && op.results.iter().all(of_stage) && op.regions.is_empty()
    };
    // In this order: what fills a ring may also hold its token, and what waits for a stage is no release although it
    // only handles tokens.
    if ops.iter().any(|id| modulo::fills(kernel, *id).is_some()) {
        Role::Fills
    } else if ops.iter().any(|id| is_wait(kernel, *id)) {
        Role::Waits
    } else if ops.iter().all(only_tells) {
        Role::Releases
    } else {
        Role::Computes
    }
}

/// What an operation costs the warps of a partition.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    unit: Option<&'static str>,
    /// Cycles for which it holds the unit.
    held: i64,
    /// Cycles from the end of that to the last result.
    latency: i64,
    /// Registers per thread of its results.
    weight: i64,
}

const MATRIX: &str = "matrix";
const SHARED: &str = "shared";
const LANES: &str = "lanes";
const SPECIAL: &str = "special";
const UNITS: [&str; 4] = [MATRIX, SHARED, LANES, SPECIAL];

fn cost(kernel: &Kernel, id: OpId, target: &Target) -> Cost {
    let op = kernel.op(id);
    let timing = &target.timing;
    let warps = i64::from(kernel.laid_out.as_deref().map_or(1, |laid| laid.warps)).max(1);
    let partitions = i64::from(timing.partitions.max(1));
    // Warps are dealt to partitions evenly; the fullest one determines the time.
    let per_partition = (warps + partitions - 1) / partitions;
    let threads = i64::from(target.lanes) * warps;
    let of_values = |values: &[Value]| values.iter().map(|v| i64::from(registers(kernel, *v))).sum::<i64>();
    let weight = of_values(&op.results);
    let rate = |rate: u32| i64::from(rate.max(1));
    let ceil = |a: i64, b: i64| (a + b - 1) / b;
    let cost =
        |unit, held: i64, latency: u32| Cost { unit: Some(unit), held: held.max(1), latency: latency.into(), weight };
    if let Some([a, b, _]) = product(op) {
        let len = |value: Value| {
            kernel.ty(value).tile_shape().map_or(1, |shape| i64::try_from(shape.len()).unwrap_or(i64::MAX))
        };
        let results = op.results.first().map_or(1, |v| len(*v));
        // (m·k)·(k·n) / (m·n) is the square of k. The work of a type of 32 bits is twice that of one of 16.
        let k = ceil(len(a) * len(b), results.max(1)).isqrt().max(1);
        let macs = results * k * i64::from(kernel.ty(a).elem().bits()) / 16;
        return cost(MATRIX, ceil(macs, partitions * rate(timing.macs)), timing.matrix_latency);
    }
    let shared = |values: &[Value]| ceil(of_values(values) * threads * 4, rate(timing.shared_bytes));
    let lanes = |count: i64, each: u32| ceil(count * i64::from(target.lanes) * per_partition, rate(each));
    if !op.regions.is_empty() {
        // An estimate: both arms of a branch, and one iteration of each inner loop, whose number of iterations is not
        // known. What is nested in these operations is a part of their costs. Nesting is finite, so this recursion ends.
        let inside = op.regions.iter().flat_map(|region| &kernel.block(*region).ops);
        let held = inside.map(|id| self::cost(kernel, *id, target)).map(|cost| cost.held + cost.latency).sum();
        return cost(LANES, held, timing.lanes_latency);
    }
    if is_wait(kernel, id) || is_another_name(&op.kind) {
        return Cost::default();
    }
    if op.kind == OpKind::Local(LocalOp::Load) {
        return cost(SHARED, shared(&op.results), timing.shared_latency);
    }
    if op.kind == OpKind::Local(LocalOp::Store) {
        return cost(SHARED, shared(&op.args), timing.shared_latency);
    }
    if matches!(op.kind, OpKind::Local(LocalOp::Fold { .. })) {
        return cost(LANES, lanes(of_values(&op.args), timing.lanes), timing.shared_latency);
    }
    if weight == 0 || op.args.is_empty() {
        return Cost { weight, ..Cost::default() };
    }
    let special = matches!(op.kind, OpKind::Unary(f) if is_special(f));
    if special {
        cost(SPECIAL, lanes(weight, timing.special), timing.special_latency)
    } else {
        cost(LANES, lanes(weight, timing.lanes), timing.lanes_latency)
    }
}

/// Whether an operation gives registers other names, or makes constants.
const fn is_another_name(kind: &OpKind) -> bool {
    matches!(
        kind,
        OpKind::Splat(_)
            | OpKind::Iota(_)
            | OpKind::Broadcast { .. }
            | OpKind::Permute(_)
            | OpKind::Reshape(_)
            | OpKind::Local(LocalOp::Convert)
    )
}

/// The tiles that an operation multiplies, and what it adds their product to.
fn product(op: &Op) -> Option<[Value; 3]> {
    match op.args[..] {
        [a, b, sum] if is_product(op) => Some([a, b, sum]),
        _ => operands(op),
    }
}

/// Whether an operation waits for a stage of a ring.
fn is_wait(kernel: &Kernel, id: OpId) -> bool {
    kernel.op(id).args.iter().any(|v| matches!(kernel.ty(*v), Ty::Token(Token::Ready, _)))
}

/// Whether the unit for special functions computes it.
const fn is_special(f: UnOp) -> bool {
    match f {
        UnOp::Exp
        | UnOp::Exp2
        | UnOp::Ln
        | UnOp::Log2
        | UnOp::Sqrt
        | UnOp::Rsqrt
        | UnOp::Recip
        | UnOp::Sin
        | UnOp::Cos
        | UnOp::Tanh
        | UnOp::Sigmoid
        | UnOp::Erf => true,
        UnOp::Neg
        | UnOp::Abs
        | UnOp::Not
        | UnOp::Floor
        | UnOp::Ceil
        | UnOp::Trunc
        | UnOp::Round
        | UnOp::RoundTiesEven
        | UnOp::IsNan
        | UnOp::CountOnes
        | UnOp::LeadingZeros => false,
    }
}

/// The graph as a draft.
fn draft(kernel: &Kernel, of: &Dependent, members: &[Vec<OpId>], costs: &[Vec<Cost>], name: String) -> Draft {
    let place = |id: OpId| members.iter().position(|group| group.contains(&id));
    let name_of = |group: &[OpId]| {
        let first = group.first().copied().unwrap_or(OpId::new(0));
        let at = of.ops.iter().position(|id| *id == first).unwrap_or(0);
        let kind = mnemonic(&kernel.op(first).kind);
        format!("{}{at}", kind.rsplit('.').next().unwrap_or(kind))
    };
    let names: Vec<String> = members.iter().map(|group| name_of(group)).collect();
    let latency = |group: usize, id: OpId| {
        let cost = members[group].iter().position(|own| *own == id).and_then(|at| costs[group].get(at));
        cost.map_or(0, |cost| cost.held + cost.latency)
    };
    let ops = names.iter().zip(costs).map(|(name, costs)| {
        let unit = costs.iter().find_map(|cost| cost.unit);
        let held: i64 = costs.iter().filter(|cost| cost.unit == unit).map(|cost| cost.held).sum();
        DraftOp {
            name: name.clone(),
            unit: unit.map(|unit| (unit.to_owned(), held)),
            latency: costs.iter().map(|cost| cost.held + cost.latency).max().unwrap_or(0),
            weight: costs.iter().map(|cost| cost.weight).sum(),
        }
    });
    let mut edges = Vec::new();
    for Dependence { from, to, distance, why } in &of.dependences {
        let (Some(a), Some(b)) = (place(*from), place(*to)) else { continue };
        let is_apart = |group: usize| role(kernel, &members[group]) != Role::Computes;
        // A dependence of a group on itself in the same iteration is its own order. Copies, waits and releases are
        // placed behind this search.
        if a == b && *distance == 0 || is_apart(a) || is_apart(b) {
            continue;
        }
        let kind = match (why, distance) {
            (Why::Value, 0) => Kind::Data,
            (Why::Value, _) => Kind::Carried,
            (Why::Slot, 1..) => Kind::Ring,
            (Why::Slot, 0) | (Why::Order, _) => Kind::Memory,
        };
        let multiplies = |id: &OpId| product(kernel.op(*id)).is_some();
        let cycles = match why {
            // Each part of the second product waits for the same part of the first.
            Why::Value if multiplies(from) && multiplies(to) => {
                let held = costs[a].first().map_or(0, |cost| cost.held);
                costs[a].first().map_or(0, |cost| cost.latency.max(held))
            }
            // Instructions are issued in order: a load behind a product waits until all of that is issued. So it comes before the product
            // that precedes this one, which takes as long.
            Why::Value if kernel.op(*from).kind == OpKind::Local(LocalOp::Load) && multiplies(to) => {
                latency(a, *from).max(costs[b].first().map_or(0, |cost| cost.held))
            }
            Why::Value => latency(a, *from),
            Why::Slot | Why::Order => 0,
        };
        let edge = DraftEdge {
            kind,
            from: names[a].clone(),
            to: names[b].clone(),
            latency: Some(cycles),
            distance: i64::from(*distance),
        };
        if !edges.contains(&edge) {
            edges.push(edge);
        }
    }
    let mut ops: Vec<DraftOp> = ops.collect();
    in_place(kernel, of, members, (&mut ops, &mut edges));
    let units = UNITS.map(str::to_owned).to_vec();
    Draft { name, units, ops, edges, ii: None }
}

/// Products that are added to the result of another product of the iteration take its registers. So the first of such a chain has the weight
/// of all, and is needed by whatever needs one of them.
fn in_place(
    kernel: &Kernel,
    of: &Dependent,
    members: &[Vec<OpId>],
    (ops, edges): (&mut [DraftOp], &mut Vec<DraftEdge>),
) {
    let alone = |group: usize| match &members[group][..] {
        [id] => product(kernel.op(*id)).map(|[.., sum]| (*id, sum)),
        _ => None,
    };
    let mut first: Vec<usize> = (0..members.len()).collect();
    // In program order, so that the first of a chain is known before those behind it.
    for group in 0..members.len() {
        let Some((_, sum)) = alone(group) else { continue };
        let before =
            (0..group).find(|before| alone(*before).is_some_and(|(id, _)| kernel.op(id).results.contains(&sum)));
        let Some(before) = before else { continue };
        let uses = of.dependences.iter().filter(|edge| edge.why == Why::Value && members[before].contains(&edge.from));
        if uses.count() == 1 {
            first[group] = first[before];
            ops[group].weight = 0;
        }
    }
    for (group, first) in first.into_iter().enumerate().filter(|(group, first)| group != first) {
        let of_result = |edge: &&DraftEdge| edge.from == ops[group].name && edge.kind.carries_value();
        let needed: Vec<DraftEdge> = edges.iter().filter(of_result).cloned().collect();
        edges.extend(needed.into_iter().map(|edge| DraftEdge {
            from: ops[first].name.clone(),
            latency: Some(0),
            ..edge
        }));
    }
}
