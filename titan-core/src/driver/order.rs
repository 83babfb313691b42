//! The order of operations in the loops of a laid-out kernel, which keeps the matrix units busy.
//!
//! After laying out, the body of a loop over K has loads (L) and MMAs (M) in alternation, after the copies for a later iteration:
//!
//! ```text
//! copies; L0 M0 L1 M1 L2 M2 L3 M3; release; wait
//! ```
//!
//! MMAs have a long latency, and other instructions can be executed meanwhile. So the fragments of each step are loaded before the MMA of
//! the previous step, and the first ones of the next iteration (L0) before the last MMA. Copies are started after the first MMA was issued:
//!
//! ```text
//! L1 M0; copies; L2 M1 L3 M2; release; wait; L0 M3
//! ```
//!
//! This is a schedule of two stages: the first fragments are stage 0, and all else is stage 1 ([`crate::pipeline::modulo`]). An operation is
//! moved only across operations that do not depend on it: loads and numbers across MMAs, whose operands are registers, and copies to free
//! slots across both. Barriers between the threads are inserted after the loop is rewritten.
//!
//! Deliberately absent: orders that depend on the machine, and the search for better orders.

use super::ahead::{Ring, is_fetch};
use super::registers::{Held, for_tiles};
use super::schedule::{Body, Prefetched};
use crate::collections::SortedSet;
use crate::ir::{
    Block, BlockData, Def, Effect, Kernel, LocalOp, NvOp, Op, OpId, OpKind, Planned, Token, TtgOp, Ty, Value,
};
use crate::pipeline::modulo;
use crate::target::Target;

/// Chooses the schedules of the bodies of all loops for which another order is better.
///
/// The copies of rings that are prefetched are in the first stage; of these, the waits for stages that are waited for early are in the stage
/// before the last one.
#[must_use]
pub(super) fn choose(kernel: &Kernel, prefetched: &[Prefetched], target: &Target) -> Vec<Body> {
    let mut found = Vec::new();
    let crowded = fragments_are_many(kernel, target);
    for (number, (looped, body)) in bodies(kernel).into_iter().enumerate() {
        let Some((_, ops)) = kernel.block(body).ops.split_last() else { continue };
        let ring = Ring::of(kernel, looped, ops, prefetched);
        let waits = ring.as_ref().filter(|ring| ring.carried).map_or(&[][..], |ring| &ring.waits);
        let early: Vec<OpId> = {
            let first = first_fragments(kernel, looped, body, waits);
            ops.iter().copied().filter(|id| waits.contains(id) || first.contains(id)).collect()
        };
        // The loads for the next iteration begin at the end of the body, behind the wait for its stage.
        let (ahead, here): (Vec<OpId>, Vec<OpId>) =
            in_turn(kernel, ops, ring.as_ref(), target.fetches).into_iter().partition(|id| early.contains(id));
        let rotated = ahead.iter().any(|id| !waits.contains(id));
        let mut ordered = [here, ahead].concat();
        if !crowded || !ordered.iter().any(|id| is_fetch(kernel, *id)) {
            ordered = loads_first(kernel, &ordered, rotated);
        }
        copies_later(kernel, &mut ordered, rotated);
        if !early.is_empty() || ring.is_some() || ordered != *ops {
            let last = ring.as_ref().map_or(u16::from(rotated), |ring| ring.distance);
            let stage = |id: &OpId| match &ring {
                Some(ring) if ring.fills.contains(id) => 0,
                Some(_) | None => last - u16::from(early.contains(id)),
            };
            found.push(Body { number, places: places(ops, &ordered, stage), peeled: false, unmasked: false });
        }
    }
    found
}

/// Whether the fragments of two steps and what is fetched take more registers than threads have, beside accumulators: then those of one step are
/// loaded when they are needed.
fn fragments_are_many(kernel: &Kernel, target: &Target) -> bool {
    let held = Held::of(kernel, target).with_fetched(kernel);
    held.of_roles.iter().any(|of| {
        let accumulators = of.accumulators.map_or(0, |most| most.registers);
        let fragments = held.most.saturating_sub(accumulators);
        held.most.saturating_add(fragments) > for_tiles(of.each)
    })
}

/// The schedules of bodies that only prefetch: copies in the first stage and all else in the last one, in program order but for the wait
/// for a stage, which comes before the copies for a later one.
#[must_use]
pub(super) fn staged(kernel: &Kernel, prefetched: &[Prefetched], target: &Target) -> Vec<Body> {
    let mut found = Vec::new();
    for (number, (looped, body)) in bodies(kernel).into_iter().enumerate() {
        let Some((_, ops)) = kernel.block(body).ops.split_last() else { continue };
        let Some(ring) = Ring::of(kernel, looped, ops, prefetched) else { continue };
        let stage = |id: &OpId| if ring.fills.contains(id) { 0 } else { ring.distance };
        let ordered = in_turn(kernel, ops, Some(&ring), target.fetches);
        found.push(Body { number, places: places(ops, &ordered, stage), peeled: false, unmasked: false });
    }
    found
}

/// The places of operations, in their program order, by their order in a schedule.
pub(super) fn places(ops: &[OpId], ordered: &[OpId], stage: impl Fn(&OpId) -> u16) -> Vec<Planned> {
    let place = |id: &OpId| {
        let order = ordered.iter().position(|other| other == id).unwrap_or(0);
        Planned { stage: stage(id), order: u16::try_from(order).unwrap_or(u16::MAX) }
    };
    ops.iter().map(place).collect()
}

/// The operations of a body, with the wait for a stage before the copies for a later one: one barrier then shows that the bytes are there, and
/// that the slot was read. Where threads copy, what is `fetched` is loaded behind the wait, and all stores come last: with one slot, they need that the
/// stage was released.
fn in_turn(kernel: &Kernel, ops: &[OpId], ring: Option<&Ring>, fetched: bool) -> Vec<OpId> {
    let Some(ring) = ring else { return ops.to_vec() };
    let of_ring = |id: &OpId| ring.fills.contains(id) || ring.waits.contains(id);
    let begin = ops.iter().position(of_ring).unwrap_or(0);
    let (before, behind) = ops.split_at(begin);
    let rest = behind.iter().copied().filter(|id| !of_ring(id));
    if fetched {
        // Loads are in flight while all else is executed; then what they have loaded is stored.
        let stores = |id: &OpId| acts_on_ring(kernel, *id);
        let (stored, loaded): (Vec<OpId>, Vec<OpId>) = ring.fills.iter().partition(|id| stores(id));
        return [before, &ring.waits, &loaded, &rest.collect::<Vec<_>>(), &stored].concat();
    }
    before.iter().copied().chain(ring.waits.iter().copied()).chain(ring.fills.iter().copied()).chain(rest).collect()
}

/// Whether an operation, or one nested in it, has a token of a ring.
fn acts_on_ring(kernel: &Kernel, id: OpId) -> bool {
    let token = |v: &Value| kernel.ty(*v).ring().is_some();
    let op = kernel.op(id);
    op.args.iter().chain(&op.results).any(token) || !op.regions.is_empty()
}

/// The kernel with schedules for the bodies of its loops. `None` if one is not for a loop of this kernel.
#[must_use]
pub(super) fn annotate(kernel: &Kernel, all: &[Body]) -> Option<Kernel> {
    let mut made = kernel.clone();
    let bodies = bodies(kernel);
    for Body { number, places, peeled, unmasked } in all {
        let (looped, body) = bodies.get(*number)?;
        let (_, ops) = kernel.block(*body).ops.split_last()?;
        if ops.len() != places.len() {
            return None;
        }
        for (id, planned) in ops.iter().zip(places) {
            made.ops.get_mut(id.index())?.planned = Some(*planned);
        }
        let op = made.ops.get_mut(looped.index())?;
        (op.peeled, op.unmasked) = (*peeled, *unmasked);
    }
    Some(made)
}

/// Whether an operation is a pure computation or a load of a tile.
fn is_light(op: &Op) -> bool {
    let pure = op.kind.effect() == Effect::Pure && op.kind != OpKind::Local(LocalOp::Mma);
    op.regions.is_empty() && (pure || op.kind == OpKind::Local(LocalOp::Load))
}

/// The operations of a body that the loads depend on, in order and including the loads; `None` if one of them cannot be executed one
/// iteration earlier.
fn needed(kernel: &Kernel, body: Block, loads: &SortedSet<OpId>, waits: &[OpId]) -> Option<Vec<OpId>> {
    let BlockData { args, ops } = kernel.block(body);
    let counter = args.first()?;
    let (mut wanted, mut found) = (loads.clone(), Vec::new());
    for id in ops.iter().rev() {
        if !wanted.contains(id) {
            continue;
        }
        let op = kernel.op(*id);
        // What the loads need is computed again for them, which must be names and numbers only.
        let of_tiles = !loads.contains(id) && op.results.iter().any(|v| kernel.ty(*v).is_in_registers());
        if !is_light(op) || of_tiles || op.args.contains(counter) {
            return None;
        }
        wanted.extend(op.args.iter().filter_map(|arg| match kernel.value(*arg).def {
            Def::Result(from, _) if ops.contains(&from) && !waits.contains(&from) => Some(from),
            Def::Result(..) | Def::Param(_) | Def::BlockArg(..) => None,
        }));
        found.push(*id);
    }
    found.reverse();
    (found.len() == wanted.len()).then_some(found)
}

/// The loads for the first MMA of a body from a stage that the loop carries. None if there is no second MMA, since the wait for the next
/// stage and these loads come before the last MMA.
fn first_fragments(kernel: &Kernel, looped: OpId, body: Block, waits: &[OpId]) -> SortedSet<OpId> {
    let ops = &kernel.block(body).ops;
    if modulo::is_left(kernel, looped) {
        return SortedSet::new();
    }
    let carried = |v: &&Value| matches!(kernel.ty(**v), Ty::Token(Token::Rperm, _));
    let awaited = waits.iter().flat_map(|id| &kernel.op(*id).results);
    let stages: SortedSet<Value> = kernel.block(body).args.iter().chain(awaited).filter(carried).copied().collect();
    let mut products = ops.iter().filter(|id| is_product(kernel.op(**id)));
    let (Some(first), Some(_)) = (products.next(), products.next()) else { return SortedSet::new() };
    let loads = |v: &Value| {
        let from = ops.iter().copied().find(|id| kernel.op(*id).results.contains(v))?;
        let all = needed(kernel, body, &SortedSet::from([from]), waits)?;
        let of_stage = all.iter().any(|id| kernel.op(*id).args.iter().any(|v| stages.contains(v)));
        (kernel.op(from).kind == OpKind::Local(LocalOp::Load) && of_stage).then_some(from)
    };
    kernel.op(*first).args.iter().filter_map(loads).collect()
}

/// All loops with their bodies, in program order.
pub(super) fn bodies(kernel: &Kernel) -> Vec<(OpId, Block)> {
    let mut bodies = Vec::new();
    kernel.walk(&mut |id, op| {
        if op.kind.is_loop() {
            bodies.extend(op.regions.iter().map(|body| (id, *body)));
        }
    });
    bodies
}

/// Whether an operation, or one nested in it, uses one of these values.
pub(super) fn uses(kernel: &Kernel, id: OpId, values: &SortedSet<Value>) -> bool {
    kernel.operands_within(id).iter().any(|v| values.contains(v))
}

pub(super) fn is_product(op: &Op) -> bool {
    op.kind == OpKind::Local(LocalOp::Mma)
}

/// Whether an operation starts a product that is in flight while threads go on.
pub(super) fn is_in_flight(op: &Op) -> bool {
    op.kind == OpKind::Nv(NvOp::Wgmma)
}

/// Whether an operation only handles tokens of stages, or waits for a stage.
const fn is_of_stages(op: &Op) -> bool {
    matches!(
        op.kind,
        OpKind::Ttg(TtgOp::Consumed | TtgOp::Release | TtgOp::Ready(_) | TtgOp::WaitReady | TtgOp::ReadPerm)
    )
}

/// Moves each MMA after the loads for the next MMA; and the last one after the loads for the next iteration, if `rotated` says that these
/// are in this body.
fn loads_first(kernel: &Kernel, ops: &[OpId], rotated: bool) -> Vec<OpId> {
    let mut out: Vec<OpId> = Vec::with_capacity(ops.len());
    // An MMA that is to be placed; the loads after it are placed first.
    let mut held: Option<OpId> = None;
    for id in ops {
        let op = kernel.op(*id);
        if let Some(product) = held {
            let results: SortedSet<Value> = kernel.op(product).results.iter().copied().collect();
            // The wait for a copy to a buffer belongs to the load that follows it.
            let waits = matches!(op.kind, OpKind::Local(LocalOp::Settle { .. }));
            let passes = is_light(op) || waits || rotated && is_of_stages(op);
            if passes && !op.args.iter().any(|arg| results.contains(arg)) {
                out.push(*id);
                continue;
            }
            out.push(product);
            held = None;
        }
        if is_product(op) {
            held = Some(*id);
        } else {
            out.push(*id);
        }
    }
    out.extend(held);
    out
}

/// Moves the start of copies after the first of several MMAs, or one in the middle: a branch that starts copies, or a copy with the
/// acquisition of its slot.
fn copies_later(kernel: &Kernel, ops: &mut Vec<OpId>, rotated: bool) {
    let is = |id: &OpId, wanted: fn(&Op) -> bool| wanted(kernel.op(*id));
    let products = ops.iter().filter(|id| is(id, is_product)).count();
    // With the first loads of the next iteration at the end of the body, there are the fewest loads in its middle.
    let nth = if rotated { products.saturating_sub(1) / 2 } else { 0 };
    let (Some(first), true) =
        (ops.iter().enumerate().filter(|(_, id)| is(id, is_product)).map(|(i, _)| i).nth(nth), products > 1)
    else {
        return;
    };
    let starts =
        |id: &OpId| copies(kernel, *id) || is(id, |op| matches!(op.kind, OpKind::Ttg(TtgOp::AsyncProduce { .. })));
    let Some(copy) = ops[..first].iter().position(starts) else { return };
    let slot = kernel.op(ops[copy]).args.first().copied();
    let acquires = |id: &OpId| matches!(kernel.op(*id).kind, OpKind::Ttg(TtgOp::Acquire(_)));
    let of_slot = |id: &OpId| acquires(id) && kernel.op(*id).results.first().copied() == slot;
    let begin = ops[..copy].iter().position(of_slot).unwrap_or(copy);
    // Between them are the names of what is copied.
    let named = |id: &OpId| is(id, |op| matches!(op.kind, OpKind::Ttg(TtgOp::Source(..) | TtgOp::SourceRows { .. })));
    let moved: Vec<OpId> = if ops[begin..copy].iter().skip(1).all(named) {
        ops[begin..=copy].to_vec()
    } else {
        vec![ops[begin], ops[copy]]
    };
    let results: SortedSet<Value> = moved.iter().flat_map(|id| &kernel.op(*id).results).copied().collect();
    let may_pass =
        |id: &OpId| moved.contains(id) || (is(id, is_light) || is(id, is_product)) && !uses(kernel, *id, &results);
    if !ops[begin..=first].iter().all(may_pass) {
        return;
    }
    ops.retain(|id| !moved.contains(id));
    let behind = first + 1 - moved.len();
    ops.splice(behind..behind, moved);
}

/// Whether an operation is a branch in which copies are started, and nothing else is read or written.
fn copies(kernel: &Kernel, id: OpId) -> bool {
    let op = kernel.op(id);
    let mut starts = false;
    let mut only = op.kind == OpKind::If;
    let mut block = |block: &Block| {
        kernel.walk_block(*block, &mut |_, op| {
            let copy = matches!(op.kind, OpKind::Ttg(TtgOp::AsyncProduce { .. }));
            starts |= copy;
            let number = matches!(op.kind.effect(), Effect::Pure) || op.kind == OpKind::Yield;
            let names = matches!(
                op.kind,
                OpKind::Ttg(TtgOp::Acquire(_) | TtgOp::Fill(_) | TtgOp::Source(..) | TtgOp::SourceRows { .. })
            );
            only &= copy || number || names;
        });
    };
    op.regions.iter().for_each(&mut block);
    only && starts
}
