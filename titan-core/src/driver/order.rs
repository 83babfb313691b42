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

use super::schedule::{Body, Prefetched, Schedule};
use crate::collections::SortedSet;
use crate::ir::{
    Block, BlockData, Def, Effect, ForKind, Kernel, LocalOp, Op, OpId, OpKind, Planned, Token, TtgOp, Ty, Value,
};
use crate::pipeline::modulo;
use crate::verify::Verified;

/// Chooses the schedules of the bodies of all loops for which another order is better.
///
/// The copies of rings that are prefetched are in the first stage; of these, the waits for stages that are waited for early are in the stage
/// before the last one.
#[must_use]
pub(super) fn choose(kernel: &Kernel, prefetched: &[Prefetched]) -> Vec<Body> {
    let mut found = Vec::new();
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
            in_turn(ops, ring.as_ref()).into_iter().partition(|id| early.contains(id));
        let rotated = ahead.iter().any(|id| !waits.contains(id));
        let mut ordered = loads_first(kernel, &[here, ahead].concat(), rotated);
        copies_later(kernel, &mut ordered, rotated);
        if !early.is_empty() || ring.is_some() || ordered != *ops {
            let last = ring.as_ref().map_or(u16::from(rotated), |ring| ring.distance);
            let stage = |id: &OpId| match &ring {
                Some(ring) if ring.fills.contains(id) => 0,
                Some(_) | None => last - u16::from(early.contains(id)),
            };
            found.push(Body { number, places: places(ops, &ordered, stage) });
        }
    }
    found
}

/// The schedules of bodies that only prefetch: copies in the first stage and all else in the last one, in program order but for the wait
/// for a stage, which comes before the copies for a later one.
#[must_use]
pub(super) fn staged(kernel: &Kernel, prefetched: &[Prefetched]) -> Vec<Body> {
    let mut found = Vec::new();
    for (number, (looped, body)) in bodies(kernel).into_iter().enumerate() {
        let Some((_, ops)) = kernel.block(body).ops.split_last() else { continue };
        let Some(ring) = Ring::of(kernel, looped, ops, prefetched) else { continue };
        let stage = |id: &OpId| if ring.fills.contains(id) { 0 } else { ring.distance };
        found.push(Body { number, places: places(ops, &in_turn(ops, Some(&ring)), stage) });
    }
    found
}

/// As [`Verified::rings_begin_anew`], of rings whose stages are filled ahead in loops with these schedules: they are empty at the start of
/// the loop, but not of its iterations.
pub(super) fn rings_begin_anew(rings: &Verified, laid_out: &Kernel, all: &[Body]) -> Vec<usize> {
    let mut anew = rings.rings_begin_anew().to_vec();
    let bodies = bodies(laid_out);
    let several = |body: &&Body| body.places.iter().any(|planned| planned.stage > 0);
    for (looped, block) in all.iter().filter(several).filter_map(|body| bodies.get(body.number)) {
        let around = bodies.iter().filter(|(other, inside)| {
            let mut found = false;
            laid_out.walk_block(*inside, &mut |id, _| found |= id == *looped);
            other != looped && found
        });
        let around = around.count();
        for id in &laid_out.block(*block).ops {
            if let OpKind::Ttg(TtgOp::Acquire(pipe)) = laid_out.op(*id).kind
                && let Some(depth) = anew.get_mut(pipe.index())
            {
                *depth = around.min(*depth);
            }
        }
    }
    anew
}

/// Whether all these rings can be filled ahead, wherever a kernel uses them.
pub(super) fn may_be_ahead(kernel: &Kernel, prefetched: &[Prefetched]) -> bool {
    let of = |op: &Op| {
        let OpKind::Ttg(TtgOp::Acquire(pipe) | TtgOp::Ready(pipe)) = op.kind else { return false };
        prefetched.iter().any(|ring| ring.pipe == pipe)
    };
    let (mut all, mut staged) = (0, 0);
    kernel.walk(&mut |_, op| all += usize::from(of(op)));
    for (looped, body) in bodies(kernel) {
        if let Some((_, ops)) = kernel.block(body).ops.split_last()
            && let Some(ring) = Ring::of(kernel, looped, ops, prefetched)
            && !ring.waits.is_empty()
        {
            staged += ring.fills.iter().chain(&ring.waits).filter(|id| of(kernel.op(**id))).count();
        }
    }
    staged == all
}

/// Whether the stages of a schedule fill rings as far ahead as the schedule says elsewhere.
pub(super) fn agrees(kernel: &Kernel, schedule: &Schedule) -> bool {
    let bodies = bodies(kernel);
    let ahead = schedule.ahead();
    schedule.bodies.iter().all(|Body { number, places }| {
        let ops = bodies.get(*number).map_or(&[][..], |(_, body)| &kernel.block(*body).ops);
        let last = places.iter().map(|planned| planned.stage).max().unwrap_or(0);
        ops.iter().zip(places).all(|(id, planned)| {
            let OpKind::Ttg(TtgOp::Acquire(pipe)) = kernel.op(*id).kind else { return true };
            let stated = ahead.iter().find(|ring| ring.pipe == pipe).map(|ring| ring.distance);
            stated.is_none_or(|stated| stated == u32::from(last - planned.stage))
        })
    })
}

fn places(ops: &[OpId], ordered: &[OpId], stage: impl Fn(&OpId) -> u16) -> Vec<Planned> {
    let place = |id: &OpId| {
        let order = ordered.iter().position(|other| other == id).unwrap_or(0);
        Planned { stage: stage(id), order: u16::try_from(order).unwrap_or(u16::MAX) }
    };
    ops.iter().map(place).collect()
}

/// The operations of a body that fill and await the stages of prefetched rings.
struct Ring {
    distance: u16,
    carried: bool,
    /// The acquisitions of slots, the names of what is copied, and the copies.
    fills: Vec<OpId>,
    /// The operations from the pending waits to the permissions to read.
    waits: Vec<OpId>,
}

impl Ring {
    /// The rings that a body fills and reads. None if not all their copies can be issued ahead, as those under a condition, or in a loop
    /// whose iterations are not known in advance.
    fn of(kernel: &Kernel, looped: OpId, ops: &[OpId], prefetched: &[Prefetched]) -> Option<Ring> {
        let of_body =
            |ring: &&Prefetched| ops.iter().any(|id| kernel.op(*id).kind == OpKind::Ttg(TtgOp::Acquire(ring.pipe)));
        let rings: Vec<&Prefetched> = prefetched.iter().filter(of_body).collect();
        let distance = u16::try_from(rings.iter().map(|ring| ring.distance).min()?).ok()?;
        let op = kernel.op(looped);
        let bounds = [op.args.first()?, op.args.get(2)?].map(|v| kernel.int_constant(*v));
        // Whether an iteration exists can then be told without sums that wrap.
        let simple = matches!(bounds, [Some(lo), Some(1)] if lo - i64::from(distance) >= i64::from(i32::MIN));
        if op.kind == OpKind::For(ForKind::Distributed) || modulo::is_left(kernel, looped) || !simple {
            return None;
        }
        let carried = rings.iter().all(|ring| ring.carried);
        let (mut fills, mut waits, mut named) = (Vec::new(), Vec::new(), SortedSet::<Value>::new());
        for id in ops {
            let op = kernel.op(*id);
            let token = |v: &Value| rings.iter().any(|ring| kernel.ty(*v).ring() == Some(ring.pipe));
            if !op.args.iter().chain(&op.results).any(token) {
                continue;
            }
            // Others, and branches with tokens, need their own iteration.
            let OpKind::Ttg(ttg) = &op.kind else { return None };
            match ttg {
                // The stages of waits that run ahead are filled beyond the last iteration, under a condition.
                TtgOp::AsyncProduce { skipped, .. }
                    if !carried || skipped.is_none() && !op.args.iter().any(|v| kernel.ty(*v) == Ty::BOOL) =>
                {
                    named.extend(op.args.iter().copied());
                    fills.push(*id);
                }
                TtgOp::Acquire(_) => fills.push(*id),
                TtgOp::Ready(_) | TtgOp::WaitReady | TtgOp::ReadPerm => waits.push(*id),
                TtgOp::View { .. } | TtgOp::Consumed | TtgOp::Release | TtgOp::AccMma => {}
                TtgOp::AsyncProduce { .. }
                | TtgOp::Fill(_)
                | TtgOp::Poisoned
                | TtgOp::Split(_)
                | TtgOp::Join
                | TtgOp::Read
                | TtgOp::Write
                | TtgOp::Source(..)
                | TtgOp::SourceRows { .. }
                | TtgOp::ComputeIssue
                | TtgOp::ComputeWait
                | TtgOp::AccStart(_)
                | TtgOp::AccFinish
                | TtgOp::StoreIssue(_)
                | TtgOp::StoreWait
                | TtgOp::Roles
                | TtgOp::Finalize
                | TtgOp::Rematerialize
                | TtgOp::Claim(..)
                | TtgOp::Fence { .. } => return None,
            }
        }
        // As many stages are held as there are iterations ahead, and one more, each with so many fills.
        let enough = |ring: &&Prefetched| {
            let acquires =
                ops.iter().filter(|id| kernel.op(**id).kind == OpKind::Ttg(TtgOp::Acquire(ring.pipe))).count();
            let slots = kernel.pipes.get(ring.pipe.index()).map_or(0, |pipe| pipe.slots);
            u32::try_from(acquires).is_ok_and(|acquires| acquires * (u32::from(distance) + 1) <= slots)
        };
        if !rings.iter().all(enough) || !named.iter().all(|v| is_known_ahead(kernel, looped, ops, *v, &fills)) {
            return None;
        }
        let nested = ops.iter().flat_map(|id| &kernel.op(*id).regions).any(|block| {
            let mut any = false;
            kernel.walk_block(*block, &mut |_, op| {
                any |= matches!(op.kind, OpKind::Ttg(TtgOp::Acquire(_) | TtgOp::Ready(_)))
            });
            any
        });
        let names = |id: &OpId| {
            let op = kernel.op(*id);
            matches!(op.kind, OpKind::Ttg(TtgOp::Source(..) | TtgOp::SourceRows { .. }))
                && op.results.iter().any(|v| named.contains(v))
        };
        let fills = ops.iter().copied().filter(|id| fills.contains(id) || names(id)).collect();
        (!nested).then_some(Ring { distance, carried, fills, waits })
    }
}

/// Whether a value of a body is a token of these fills, or can be computed again for a later iteration, from the counter alone.
fn is_known_ahead(kernel: &Kernel, looped: OpId, ops: &[OpId], value: Value, fills: &[OpId]) -> bool {
    let carried = kernel.op(looped).regions.first().and_then(|body| kernel.block(*body).args.get(1..));
    let (mut open, mut seen) = (vec![value], SortedSet::new());
    // This ends: each value is looked at once.
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        if carried.is_some_and(|carried| carried.contains(&value)) {
            return false;
        }
        let Def::Result(id, _) = kernel.value(value).def else { continue };
        if !ops.contains(&id) || fills.contains(&id) {
            continue;
        }
        let op = kernel.op(id);
        let names_rows = matches!(op.kind, OpKind::Ttg(TtgOp::SourceRows { .. }));
        if !names_rows && !modulo::is_renewable(kernel, id, false) {
            return false;
        }
        open.extend(&op.args);
    }
    true
}

/// The operations of a body, with the wait for a stage before the copies for a later one: one barrier then shows that the bytes are there, and
/// that the slot was read.
fn in_turn(ops: &[OpId], ring: Option<&Ring>) -> Vec<OpId> {
    let Some(ring) = ring else { return ops.to_vec() };
    let of_ring = |id: &OpId| ring.fills.contains(id) || ring.waits.contains(id);
    let begin = ops.iter().position(of_ring).unwrap_or(0);
    let (before, behind) = ops.split_at(begin);
    let rest = behind.iter().copied().filter(|id| !of_ring(id));
    before.iter().copied().chain(ring.waits.iter().copied()).chain(ring.fills.iter().copied()).chain(rest).collect()
}

/// The kernel with schedules for the bodies of its loops. `None` if one is not for a loop of this kernel.
#[must_use]
pub(super) fn annotate(kernel: &Kernel, all: &[Body]) -> Option<Kernel> {
    let mut made = kernel.clone();
    let bodies = bodies(kernel);
    for Body { number, places } in all {
        let (_, ops) = kernel.block(bodies.get(*number)?.1).ops.split_last()?;
        if ops.len() != places.len() {
            return None;
        }
        for (id, planned) in ops.iter().zip(places) {
            made.ops.get_mut(id.index())?.planned = Some(*planned);
        }
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
fn bodies(kernel: &Kernel) -> Vec<(OpId, Block)> {
    let mut bodies = Vec::new();
    kernel.walk(&mut |id, op| {
        if op.kind.is_loop() {
            bodies.extend(op.regions.iter().map(|body| (id, *body)));
        }
    });
    bodies
}

/// Whether an operation, or one nested in it, uses one of these values.
fn uses(kernel: &Kernel, id: OpId, values: &SortedSet<Value>) -> bool {
    let op = kernel.op(id);
    let mut any = op.args.iter().any(|v| values.contains(v));
    for region in &op.regions {
        kernel.walk_block(*region, &mut |_, op| any |= op.args.iter().any(|v| values.contains(v)));
    }
    any
}

fn is_product(op: &Op) -> bool {
    op.kind == OpKind::Local(LocalOp::Mma)
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
