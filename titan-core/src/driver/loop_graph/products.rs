//! Products in flight in the graph of a loop: machines with MMAs of warpgroups execute them while the threads that have issued them go on.
//!
//! The instructions of a product, the fence for their registers and what only makes operands of them are one operation of the graph, since
//! they are issued together. It holds the matrix units for as long as all instructions take. The wait for it costs nothing; what uses the result depends on the
//! wait.
//!
//! ```text
//! %d = issue %q, k, 0             op product unit matrix 1024 latency 1057 weight 64
//! %s = wait %d                    op wait
//!                                 edge data product -> wait
//! ```
//!
//! Deliberately absent: places, which [`super::super::swing`] chooses.

use super::super::order::is_in_flight;
use super::costs::{product, waited};
use crate::analysis::same_registers;
use crate::ir::{Kernel, NvOp, OpId, OpKind, Ty};
use crate::pipeline::modulo::{Dependence, Dependent, Why};
use crate::schedule::graph::{DraftEdge, DraftOp};

/// The products in flight of a body: the instructions of each, in order, behind the fence for their registers and what only makes operands of them.
/// They are issued together, and the matrix units execute the instructions one after the other.
pub(super) fn in_flight(kernel: &Kernel, ops: &[OpId]) -> Vec<Vec<OpId>> {
    let mut found: Vec<Vec<OpId>> = Vec::new();
    let mut fence = None;
    for id in ops {
        let op = kernel.op(*id);
        if op.kind == OpKind::Nv(NvOp::WgmmaFence) {
            fence = Some(*id);
        }
        if !is_in_flight(op) {
            continue;
        }
        // An instruction adds to the result of the one before.
        let adds = |product: &&mut Vec<OpId>| {
            let last = product.last().map(|last| &kernel.op(*last).results);
            last.is_some_and(|sums| op.args.get(2).is_some_and(|sum| sums.contains(sum)))
        };
        match found.iter_mut().find(adds) {
            Some(product) => product.extend(fence.take().into_iter().chain([*id])),
            None => found.push(fence.take().into_iter().chain([*id]).collect()),
        }
    }
    for product in &mut found {
        // From the last operation to the first: what uses a result comes behind it, and is in the product by then if it is for that alone.
        for id in ops.iter().rev() {
            let op = kernel.op(*id);
            let makes = same_registers::takes_part(&op.kind);
            let is_tile = op.results.iter().all(|v| matches!(kernel.ty(*v), Ty::Tile(..)));
            let uses = |user: &&OpId| kernel.operands_within(**user).iter().any(|v| op.results.contains(v));
            let mut users = ops.iter().filter(uses).peekable();
            if makes && is_tile && users.peek().is_some() && users.all(|user| product.contains(user)) {
                product.insert(0, *id);
            }
        }
    }
    found
}

/// The dependences, if products that add to the result of a product of the iteration before continue the one in flight, where that result is for
/// nothing else ([`crate::pipeline::modulo`]): they depend on the product and not on the wait for it.
pub(super) fn continued(kernel: &Kernel, of: &Dependent, members: &[Vec<OpId>]) -> Vec<Dependence> {
    let group = |id: OpId| members.iter().position(|group| group.contains(&id));
    let mut made = of.dependences.clone();
    made.extend(of.ops.iter().flat_map(|id| ends(kernel, of, members, *id)));
    for Dependence { from, to, distance, why } in &of.dependences {
        let op = kernel.op(*to);
        let (Some(product), [a, b, sum], 1, Why::Value) = (waited(kernel.op(*from)), &op.args[..], distance, why)
        else {
            continue;
        };
        let users = of.dependences.iter().filter(|other| other.from == *from && other.why == Why::Value);
        let started = of.ops.iter().copied().find(|id| kernel.op(*id).results.contains(&product));
        let continues = is_in_flight(op) && users.count() == 1 && a != sum && b != sum;
        if let (Some(started), true) = (started, continues && written(kernel, of, members, group(*to)).is_empty()) {
            made.retain(|other| other.from != *from || group(other.to) != group(*to) || other.distance != 1);
            made.push(Dependence { from: started, to: *to, distance: 1, why: Why::Value });
        }
    }
    made
}

/// What comes behind the wait for a product that the next iteration does not continue: the product of the next iteration, of which the registers
/// are the same, and what writes its operands in registers, which it reads until then.
fn ends(kernel: &Kernel, of: &Dependent, members: &[Vec<OpId>], wait: OpId) -> Vec<Dependence> {
    let Some(product) = waited(kernel.op(wait)) else { return Vec::new() };
    let started = members.iter().position(|group| group.iter().any(|id| kernel.op(*id).results.contains(&product)));
    let first = started.and_then(|group| members[group].iter().copied().find(|id| is_in_flight(kernel.op(*id))));
    let after = first.into_iter().chain(written(kernel, of, members, started));
    after.map(|to| Dependence { from: wait, to, distance: 1, why: Why::Order }).collect()
}

/// The operations of a body that write registers of which the MMAs of a product read their operands.
fn written(kernel: &Kernel, of: &Dependent, members: &[Vec<OpId>], product: Option<usize>) -> Vec<OpId> {
    let group = product.and_then(|at| members.get(at)).map_or(&[][..], Vec::as_slice);
    let mmas = group.iter().copied().filter(|id| is_in_flight(kernel.op(*id)));
    same_registers::writers(kernel, mmas, &of.ops)
}

/// Products that are added to the result of another product of the iteration take its registers, and so does what waits for a product in flight.
/// So the first of such a chain has the weight of all, and is needed by whatever needs one of them.
pub(super) fn in_place(
    kernel: &Kernel,
    of: &Dependent,
    members: &[Vec<OpId>],
    (ops, edges): (&mut [DraftOp], &mut Vec<DraftEdge>),
) {
    // What adds to a value in its registers, with the last operation that does and the value.
    let adds = |group: usize| {
        let ops = &members[group];
        let (first, last) = match (ops.iter().find(|id| is_in_flight(kernel.op(**id))), &ops[..]) {
            (Some(first), [.., last]) => (*first, *last),
            (None, [id]) => (*id, *id),
            (None | Some(_), _) => return None,
        };
        let op = kernel.op(first);
        Some((last, product(op).map(|[.., sum]| sum).or_else(|| waited(op))?))
    };
    let mut first: Vec<usize> = (0..members.len()).collect();
    // In program order, so that the first of a chain is known before those behind it.
    for group in 0..members.len() {
        let Some((_, sum)) = adds(group) else { continue };
        let before =
            (0..group).find(|before| adds(*before).is_some_and(|(id, _)| kernel.op(id).results.contains(&sum)));
        let Some(before) = before else { continue };
        let is_inside = |edge: &Dependence| members[before].contains(&edge.to);
        let mut uses =
            of.dependences.iter().filter(|edge| edge.why == Why::Value && members[before].contains(&edge.from));
        let uses = uses.by_ref().filter(|edge| !is_inside(edge));
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
