//! The dependence graph of a loop, for the modulo scheduler ([`crate::schedule`]).
//!
//! Operations of the graph are those of the loop's body, with two exceptions:
//!
//! * Names and numbers that depend on the counter or on a stage alone are left out. The rewriter computes them again wherever they are needed,
//!   and they take no unit for long. What uses them depends on the stage.
//! * What must be in one stage is one operation: what acquires a slot of a ring and fills it, with what only this needs; what waits for a
//!   stage; the instructions of a product in flight ([`products`]); and what makes a mask, with what alone uses it, since threads have few predicates.
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
//! Deliberately absent: what operations cost ([`costs`]); where they are placed.

mod costs;
mod products;

use super::order::is_in_flight;
use super::registers::registers;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::op_table::mnemonic;
use crate::ir::{Effect, Elem, Kernel, LocalOp, OpId, OpKind, Token, Ty, Value};
use crate::pipeline::modulo::{self, Dependence, Dependent, Violation, Why};
use crate::schedule::graph::{Draft, DraftEdge, DraftOp, Graph, Kind};
use crate::target::Target;
use costs::{Cost, MATRIX, UNITS, costs, is_wait, product, waited};
use products::{continued, in_flight, in_place};

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
    /// The products in flight.
    pub in_flight: Vec<InFlight>,
    /// Registers per thread of tiles from outside of the loop that it uses.
    pub outside: i64,
}

/// A product in flight in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// The operation that starts it.
    pub product: usize,
    /// The one that waits for it.
    pub wait: usize,
    /// Whether the product of the next iteration continues it.
    pub continues: bool,
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
        let costs: Vec<Vec<Cost>> = members.iter().map(|ops| costs(kernel, &of, ops, target)).collect();
        let name = format!("loop{}", found.len());
        let (slots, (waits, releases)) = (slots(kernel, &of, &members), around_stages(kernel, &of, &members));
        // Loops without such operations, and those that are too large, have no graph.
        // A draft that is refused is no mistake here: the loop keeps the order of the rule.
        if let Ok(graph) = draft(kernel, &of, &members, &costs, name).check() {
            let outside = outside(kernel, &of);
            let in_flight = waited_for(kernel, &graph, &members);
            let looped = of.looped;
            found.push(LoopGraph { looped, graph, members, slots, waits, releases, left_out, in_flight, outside });
        }
    }
    Ok(found)
}

/// The products in flight of a graph that are waited for in the loop.
fn waited_for(kernel: &Kernel, graph: &Graph, members: &[Vec<OpId>]) -> Vec<InFlight> {
    let in_flight = |wait: usize| {
        let of = members[wait].iter().find_map(|id| waited(kernel.op(*id)))?;
        let product = members.iter().position(|ops| ops.iter().any(|id| kernel.op(*id).results.contains(&of)))?;
        let carried = (Kind::Carried, product, product);
        let continues = graph.edges().iter().any(|edge| (edge.kind, edge.from, edge.to) == carried);
        Some(InFlight { product, wait, continues })
    };
    (0..members.len()).filter_map(in_flight).collect()
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
    let products = in_flight(kernel, &of.ops);
    let mut of_ring: SortedMap<(usize, bool), usize> = SortedMap::new();
    for id in of.ops.iter().filter(|id| !left_out.contains(id)) {
        if let Some(product) = products.iter().find(|product| product.contains(id)) {
            if product.first() == Some(id) {
                groups.push(product.clone());
            }
            continue;
        }
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
        while let Some(joins) = only_for(of, &groups, fill, |_| true) {
            let taken = std::mem::take(&mut groups[joins]);
            groups[fill].extend(taken);
        }
    }
    // A mask is made where it is used, if that is one operation.
    let is_mask = |id: OpId| {
        let op = kernel.op(id);
        let of_masks = |v: &Value| kernel.ty(*v).tile_shape().is_some() && kernel.ty(*v).elem() == Elem::Bool;
        op.kind.effect() == Effect::Pure && op.regions.is_empty() && op.results.iter().all(of_masks)
    };
    for user in 0..groups.len() {
        while let Some(joins) = only_for(of, &groups, user, is_mask) {
            let taken = std::mem::take(&mut groups[joins]);
            groups[user].splice(0..0, taken);
        }
    }
    groups.retain(|group| !group.is_empty());
    groups
}

/// A group of one operation of a kind, which only this group uses. Whoever asks adds it to that group: so there are fewer groups each time, and
/// at the end none.
fn only_for(of: &Dependent, groups: &[Vec<OpId>], user: usize, is_wanted: impl Fn(OpId) -> bool) -> Option<usize> {
    let own = &groups[user];
    let values = || of.dependences.iter().filter(|edge| edge.why == Why::Value);
    let needed: SortedSet<OpId> = values().filter(|edge| own.contains(&edge.to)).map(|edge| edge.from).collect();
    // All its uses are in the group, and in the same iteration, so no other stage needs it. What two groups need stays by itself.
    let only = |id: &OpId| {
        let mut uses = values().filter(|edge| edge.from == *id);
        needed.contains(id) && !own.contains(id) && uses.all(|edge| own.contains(&edge.to) && edge.distance == 0)
    };
    groups
        .iter()
        .position(|group| matches!(&group[..], [id] if is_wanted(*id) && only(id)))
        .filter(|joins| *joins != user)
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

/// The graph as a draft.
fn draft(kernel: &Kernel, of: &Dependent, members: &[Vec<OpId>], costs: &[Vec<Cost>], name: String) -> Draft {
    let place = |id: OpId| members.iter().position(|group| group.contains(&id));
    let name_of = |group: &[OpId]| {
        let product = group.iter().find(|id| is_in_flight(kernel.op(**id)));
        // What makes masks is in front of what uses them.
        let main = product.or(if role(kernel, group) == Role::Computes { group.last() } else { group.first() });
        let first = main.copied().unwrap_or(OpId::new(0));
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
        // What makes the operands of a product takes other units, for a short time.
        let is_product = costs.iter().any(|cost| cost.unit == Some(MATRIX));
        let unit = if is_product { Some(MATRIX) } else { costs.iter().find_map(|cost| cost.unit) };
        let held: i64 = costs.iter().filter(|cost| cost.unit == unit).map(|cost| cost.held).sum();
        DraftOp {
            name: name.clone(),
            unit: unit.map(|unit| (unit.to_owned(), held)),
            latency: costs.iter().map(|cost| cost.held + cost.latency).max().unwrap_or(0),
            weight: costs.iter().map(|cost| cost.weight).sum(),
        }
    });
    // Cycles until the results of a product can be added to.
    let issued = |group: usize| {
        let products = costs[group].iter().filter(|cost| cost.unit == Some(MATRIX));
        products.clone().map(|cost| cost.held).sum::<i64>().max(products.map(|cost| cost.latency).min().unwrap_or(0))
    };
    let mut edges = Vec::new();
    for Dependence { from, to, distance, why } in &continued(kernel, of, members) {
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
            Why::Value if multiplies(from) && multiplies(to) => issued(a),
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
    // A product that continues the one in flight keeps its registers for all iterations: the wait for it takes no others.
    for group in (0..members.len()).filter(|group| members[*group].iter().any(|id| is_in_flight(kernel.op(*id)))) {
        let name = &ops[group].name;
        if edges.iter().any(|edge| edge.kind == Kind::Carried && edge.from == *name && edge.to == *name) {
            edges
                .iter_mut()
                .filter(|edge| edge.from == *name && edge.to != *name)
                .for_each(|edge| edge.kind = Kind::Memory);
            ops[group].latency = issued(group);
        }
    }
    let units = UNITS.map(str::to_owned).to_vec();
    Draft { name, units, ops, edges, ii: None }
}
