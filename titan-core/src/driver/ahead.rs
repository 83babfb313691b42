//! Which rings can be filled ahead, and which operations of a loop's body do it.
//!
//! A loop fills a ring ahead if its copies need nothing but the number of the iteration, or what can be computed from it. A coordinate that is
//! loaded, as the page of a table, is loaded as far ahead; a branch then guards the load and the copies ([`crate::pipeline::modulo`]).
//!
//! Deliberately absent: how far ahead, which is part of the schedule.

use super::order::{bodies, uses};
use super::schedule::{Body, Prefetched, Schedule};
use crate::collections::SortedSet;
use crate::ir::traffic::{Access, On, traffic};
use crate::ir::{Def, Effect, ForKind, Kernel, LocalOp, Op, OpId, OpKind, Pipe, Planned, TtgOp, Ty, Value};
use crate::pipeline::modulo;
use crate::verify::{Verified, loops_around};

/// As [`Verified::rings_begin_anew`], of rings whose stages are filled ahead in loops with these schedules: they are empty at the start of
/// the loop, but not of its iterations. `loops` is the kernel with its loops expanded: where a loop has become two, as one for iterations
/// without masks and one for the rest, a ring passes from one to the other, and begins anew in neither.
pub(super) fn rings_begin_anew(rings: &Verified, laid_out: &Kernel, all: &[Body], loops: &Kernel) -> Vec<usize> {
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
    let enclosed = |(at, depth): (usize, usize)| depth.min(loops_around(loops, Pipe::new(at)));
    anew.into_iter().enumerate().map(enclosed).collect()
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
    schedule.bodies.iter().all(|Body { number, places, .. }| {
        let ops = bodies.get(*number).map_or(&[][..], |(_, body)| &kernel.block(*body).ops);
        schedule
            .ahead()
            .iter()
            .all(|ring| filled_ahead(kernel, ops, places, ring.pipe).is_none_or(|distance| distance == ring.distance))
    })
}

/// The number of iterations by which a body fills a ring before it releases what it filled; `None` if it does not fill the ring.
pub(super) fn filled_ahead(kernel: &Kernel, ops: &[OpId], places: &[Planned], pipe: Pipe) -> Option<u32> {
    let stages = |wanted: &dyn Fn(&Op) -> bool| -> Vec<u16> {
        ops.iter().zip(places).filter(|(id, _)| wanted(kernel.op(**id))).map(|(_, planned)| planned.stage).collect()
    };
    let filled = stages(&|op| op.kind == OpKind::Ttg(TtgOp::Acquire(pipe))).into_iter().min()?;
    let released = stages(&|op| {
        op.kind == OpKind::Ttg(TtgOp::Release) && op.args.iter().any(|v| kernel.ty(*v).ring() == Some(pipe))
    });
    let last = released.into_iter().max().or_else(|| places.iter().map(|planned| planned.stage).max())?;
    Some(u32::from(last.saturating_sub(filled)))
}

/// The operations of a body that fill and await the stages of prefetched rings.
pub(super) struct Ring {
    pub(super) distance: u16,
    pub(super) carried: bool,
    /// The acquisitions of slots, the names of what is copied, and the copies.
    pub(super) fills: Vec<OpId>,
    /// The operations from the pending waits to the permissions to read.
    pub(super) waits: Vec<OpId>,
}

impl Ring {
    /// The rings that a body fills and reads. None if not all their copies can be issued ahead, as those under a condition, or in a loop
    /// whose iterations are not known in advance.
    pub(super) fn of(kernel: &Kernel, looped: OpId, ops: &[OpId], prefetched: &[Prefetched]) -> Option<Ring> {
        let body = *kernel.op(looped).regions.first()?;
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
        let pipes: Vec<Pipe> = rings.iter().map(|ring| ring.pipe).collect();
        let Parts { fills, waits, mut named } = Parts::of(kernel, ops, &pipes, carried)?;
        // The names of what is fetched are as far ahead as what is copied.
        let fetches = |id: &&OpId| is_fetch(kernel, **id) && kernel.op(**id).results.iter().any(|v| named.contains(v));
        let fetched: Vec<OpId> = ops.iter().filter(fetches).copied().collect();
        named.extend(fetched.iter().flat_map(|id| kernel.op(*id).args.iter().copied()));
        // As many stages are held as there are iterations ahead, and one more, each with so many fills. Behind the wait that shows that a stage
        // was read, its slot is filled at once, and there is none more.
        let enough = |ring: &&Prefetched| {
            let acquires =
                ops.iter().filter(|id| kernel.op(**id).kind == OpKind::Ttg(TtgOp::Acquire(ring.pipe))).count();
            let slots = kernel.pipes.get(ring.pipe.index()).map_or(0, |pipe| pipe.slots);
            let behind_wait = acquires == 1 && u32::from(distance) == slots;
            behind_wait || u32::try_from(acquires).is_ok_and(|acquires| acquires * (u32::from(distance) + 1) <= slots)
        };
        if !rings.iter().all(enough) {
            return None;
        }
        let needed = needed_ahead(kernel, looped, ops, &named, &fills, carried)?;
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
        let is_ahead = |id: &OpId| fills.contains(id) || needed.contains(id) || names(id);
        let fills: Vec<OpId> = ops.iter().copied().filter(is_ahead).collect();
        // What is computed under a guard has no value elsewhere.
        let elsewhere = kernel.block(body).ops.iter().filter(|id| !fills.contains(id));
        let made = needed.iter().flat_map(|id| &kernel.op(*id).results).copied().collect();
        if elsewhere.into_iter().any(|id| uses(kernel, *id, &made)) {
            return None;
        }
        (!nested).then_some(Ring { distance, carried, fills, waits })
    }
}

/// What a body does to rings.
struct Parts {
    /// The acquisitions of slots and the copies.
    fills: Vec<OpId>,
    waits: Vec<OpId>,
    /// What copies use.
    named: SortedSet<Value>,
}

impl Parts {
    /// None if something of these rings needs its own iteration.
    fn of(kernel: &Kernel, ops: &[OpId], pipes: &[Pipe], carried: bool) -> Option<Parts> {
        let (mut fills, mut waits, mut named) = (Vec::new(), Vec::new(), SortedSet::<Value>::new());
        for id in ops {
            let op = kernel.op(*id);
            let token = |v: &Value| kernel.ty(*v).ring().is_some_and(|pipe| pipes.contains(&pipe));
            let mut any_inside = false;
            for region in &op.regions {
                kernel.walk_block(*region, &mut |_, op| {
                    any_inside |= op.args.iter().chain(&op.results).any(token);
                });
            }
            if any_inside {
                // A branch that fills a slot is guarded as a whole. All else in branches and loops needs its own iteration.
                let fills_here = modulo::fills(kernel, *id);
                if carried || !fills_here.is_some_and(|pipe| pipes.contains(&pipe)) {
                    return None;
                }
                named.extend(kernel.operands_within(*id));
                fills.push(*id);
                continue;
            }
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
                TtgOp::Fill(_) if !carried => fills.push(*id),
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
        Some(Parts { fills, waits, named })
    }
}

/// The operations of a body that fills need and that run as far ahead, since they cannot be computed again, as the load of a coordinate. None
/// if fills need more than the counter, or if a branch cannot guard these operations.
fn needed_ahead(
    kernel: &Kernel,
    looped: OpId,
    ops: &[OpId],
    named: &SortedSet<Value>,
    fills: &[OpId],
    carried: bool,
) -> Option<SortedSet<OpId>> {
    let passed_on = kernel.op(looped).regions.first().and_then(|body| kernel.block(*body).args.get(1..))?;
    let mut open: Vec<Value> = named.iter().copied().collect();
    let mut used = SortedSet::new();
    // This ends: the operands of an operation are added once.
    while let Some(value) = open.pop() {
        if passed_on.contains(&value) {
            return None;
        }
        let Def::Result(id, _) = kernel.value(value).def else { continue };
        if ops.contains(&id) && !fills.contains(&id) && used.insert(id) {
            open.extend(kernel.operands_within(id));
        }
    }
    let (mut ahead, mut made, mut fetched) = (SortedSet::new(), SortedSet::new(), SortedSet::new());
    for id in ops.iter().filter(|id| used.contains(id)) {
        if is_fetch(kernel, *id) {
            // It is outside of the branch that guards what its coordinates would need.
            if carried || uses(kernel, *id, &made) {
                return None;
            }
            fetched.insert(*id);
            continue;
        }
        let names_rows = matches!(kernel.op(*id).kind, OpKind::Ttg(TtgOp::SourceRows { .. }));
        let again = names_rows || modulo::is_renewable(kernel, *id, false);
        if !again && (carried || !modulo::may_be_guarded(kernel, *id)) {
            return None;
        }
        if !again || uses(kernel, *id, &made) {
            ahead.insert(*id);
            made.extend(kernel.op(*id).results.iter().copied());
        }
    }
    // These would change places with writes of earlier iterations, and those that may fail with what shows that others came before.
    let (mut shows, mut updates) = (false, false);
    let mut look = |id: OpId, op: &Op| {
        updates |= op.kind.effect() == Effect::Atomic;
        let of_tensor = |access: &Access| access.writes && access.on == On::Tensor;
        let others = matches!(op.kind.effect(), Effect::Trap | Effect::Print) && !ahead.contains(&id);
        shows |= others || traffic(&op.kind).accesses.iter().flatten().any(of_tensor);
    };
    for id in ops {
        look(*id, kernel.op(*id));
        kernel.op(*id).regions.iter().for_each(|region| kernel.walk_block(*region, &mut look));
    }
    // Atomic updates are in order with all reads of tensors.
    let in_order = ahead.is_empty() || !shows;
    let in_order = in_order && (fetched.is_empty() || !updates);
    ahead.extend(fetched.iter().copied());
    in_order.then_some(ahead)
}

/// Whether an operation loads a tile to registers for a copy.
pub(super) fn is_fetch(kernel: &Kernel, id: OpId) -> bool {
    matches!(kernel.op(id).kind, OpKind::Local(LocalOp::Fetch { .. }))
}
