//! Schedules of two stages for loops with matrix products of warpgroups, which are asynchronous: a product is in flight while threads compute,
//! and so is another one.
//!
//! **The second product one iteration late.** An iteration of attention has a product (the scores), work in registers on its result (softmax), and
//! a product that has this as operand A and adds to an accumulator. Each waits for the one before, so that the matrix units idle during the
//! softmax. With the second product in stage 1, it is issued in the next iteration, after the first product of that, and waited for after its
//! softmax:
//!
//! ```text
//! wait k                      stage 0          wait k; %s = issue %q, k, 0                   of iteration i
//! %s = issue %q, k, 0         stage 0          wait v; %y = issue %p, v, %x                  of iteration i - 1
//! settle %s; release k        stage 0          settle %s; release k
//! %p, %f = softmax of %s      stage 0   ─▶     %p, %f = softmax of %s
//! %x = %acc * %f              stage 0          settle %y; release v                          of iteration i - 1
//! wait v                      stage 1          %x = %y * %f
//! %y = issue %p, v, %x        stage 1
//! settle %y; release v        stage 1
//! ```
//!
//! Operations that scale the accumulator, or only convert operand A, come after the wait for the second product: until then, that uses the
//! registers of the accumulator and of the operand.
//!
//! **Stages released one iteration late.** A loop with one product that adds to an accumulator has the wait for it and the release of its stages in
//! stage 1, behind the next product: so there is always one in flight.
//!
//! ```text
//! wait; %d = issue %a, %b, %x      stage 0          wait; %d = issue %a, %b, %x              of iteration i
//! %y = settle %d; release          stage 1   ─▶     release                                  of iteration i - 1
//! ```
//!
//! The loops are peeled ([`crate::pipeline::modulo`]), since no product may be executed for an iteration that does not exist. This needs a ring
//! for each of the two stages, which whoever chooses the rings must have made.
//!
//! Deliberately absent: whether the order is legal, which the checker of expanded loops shows; more products that are late, or more than one
//! iteration.

use super::order::{annotate, bodies, places};
use super::rule::Filled;
use super::schedule::{Body, Prefetched, Schedule};
use crate::analysis::same_registers;
use crate::collections::SortedSet;
use crate::complete;
use crate::ir::{Block, Effect, ForKind, Kernel, NvOp, OpId, OpKind, Planned, Token, TtgOp, Ty, Value};
use crate::pipeline::modulo;

/// Which products of loops are one iteration late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Late {
    /// Those whose stages are released late.
    pub(super) released: bool,
    /// The second one of two.
    pub(super) second: bool,
}

impl Late {
    /// Those that a schedule wants for a kernel with rings. Where the user says of an accumulator that none of its MMAs stays in flight, none does.
    pub(super) fn of(rings: &Kernel, schedule: &Schedule) -> Late {
        let none_in_flight = rings.values.iter().any(|value| matches!(value.ty, Ty::Acc(_, _, 0)));
        Late { released: schedule.peeled && !none_in_flight, second: schedule.shifted }
    }
}

/// Schedules for the loops of a laid-out kernel that have products which can be late, and which kinds there are.
pub(super) fn overlapped(kernel: &Kernel, late: Late) -> (Vec<Body>, Late) {
    let (mut found, mut kinds) = (Vec::new(), Late { released: false, second: false });
    for (number, (looped, body)) in bodies(kernel).into_iter().enumerate() {
        let step = kernel.op(looped).args.get(2).and_then(|v| kernel.int_constant(*v));
        let simple = matches!(kernel.op(looped).kind, OpKind::For(ForKind::Sequential | ForKind::Pipelined));
        if !simple || modulo::is_left(kernel, looped) || step != Some(1) {
            continue;
        }
        // A schedule that cannot be carried out is none, and not a reason to take a simpler one for the whole kernel.
        let carried_out = |places: Vec<Planned>| {
            let body = Body { number, places, peeled: true, unmasked: false };
            let scheduled = annotate(kernel, std::slice::from_ref(&body))?;
            let expanded = modulo::expand(&scheduled).ok()?;
            // A wait that only the late product needs, for what the next iteration writes to registers that it reads, takes its overlap away.
            let waits = |kernel: &Kernel| complete::waits_for_registers(kernel).len();
            (waits(&expanded) <= waits(kernel)).then_some(body)
        };
        let two = if late.second { Two::of(kernel, body).map(|two| two.places(kernel)) } else { None };
        let second = two.and_then(carried_out);
        let released = if late.released && second.is_none() { released_late(kernel, body) } else { None };
        let released = released.and_then(carried_out);
        kinds.second |= second.is_some();
        kinds.released |= released.is_some();
        found.extend(second.or(released));
    }
    (found, kinds)
}

/// The schedules of bodies that are found for the rings which are filled ahead, and instead of some those of loops with late products.
pub(super) fn with_overlapped(
    kernel: &Kernel,
    Filled { rings, schedule, .. }: &Filled,
    find: impl Fn(&Kernel, &[Prefetched]) -> Vec<Body>,
) -> Vec<Body> {
    let mut found = find(kernel, &schedule.prefetched());
    for body in overlapped(kernel, Late::of(rings, schedule)).0 {
        found.retain(|other| other.number != body.number);
        found.push(body);
    }
    found.sort_by_key(|body| body.number);
    found
}

/// The places of the operations of a body with one product that adds to what the loop carries, and for nothing else: the wait for it and what
/// releases its stages come behind the next product.
fn released_late(kernel: &Kernel, body: Block) -> Option<Vec<Planned>> {
    let (end, ops) = kernel.block(body).ops.split_last()?;
    let users = |value: Value| -> Vec<OpId> {
        ops.iter().copied().filter(|id| kernel.operands_within(*id).contains(&value)).collect()
    };
    let adds = |product: &Product| {
        let sum = *kernel.op(product.wait).results.first()?;
        let mut passed = kernel.op(*end).args.iter().enumerate().filter(|(_, v)| **v == sum);
        let (Some((at, _)), None) = (passed.next(), passed.next()) else { return None };
        let carried = *kernel.block(body).args.get(1 + at)?;
        let own = product.operand(kernel, 2) == Some(carried) && users(carried).len() == 1 && users(sum).is_empty();
        own.then_some(())
    };
    let products = Product::all(kernel, ops);
    let mut adding = products.iter().filter(|product| adds(product).is_some());
    let (Some(product), None) = (adding.next(), adding.next()) else { return None };
    let mut late = SortedSet::from([product.wait]);
    late.extend(releases(kernel, ops, &issued(kernel, ops, product)?));
    let (late, here): (Vec<OpId>, Vec<OpId>) = ops.iter().copied().partition(|id| late.contains(id));
    let slots = |id: &OpId| {
        let pipe = kernel.op(*id).args.iter().find_map(|v| kernel.ty(*v).ring())?;
        kernel.pipes.get(pipe.index()).map(|pipe| pipe.slots)
    };
    // Without a stage to release, nothing would wait for the product before the end of the loop. A stage is held while the next one is awaited,
    // for which there must be another slot.
    let least = late.iter().filter_map(slots).min();
    if least.is_none_or(|least| least < 2) {
        return None;
    }
    Some(places(ops, &[here, late.clone()].concat(), |id| u16::from(late.contains(id))))
}

/// The operations of a body with two products of warpgroups.
struct Two<'k> {
    ops: &'k [OpId],
    /// The first product: what issues it with what that needs, and what waits for it and releases its stages.
    first: [SortedSet<OpId>; 2],
    /// The second product, likewise, without its accumulator and operand A.
    second: [SortedSet<OpId>; 2],
    /// What computes the second product's accumulator from the carried one.
    scaling: SortedSet<OpId>,
    /// What writes the registers of its operand A or only converts it, and what uses that.
    converting: SortedSet<OpId>,
}

/// A product: its instructions in order, and the wait for them.
struct Product {
    issues: Vec<OpId>,
    wait: OpId,
}

impl Product {
    /// The products of a body, in order.
    fn all(kernel: &Kernel, ops: &[OpId]) -> Vec<Product> {
        let waits = ops.iter().copied().filter(|id| kernel.op(*id).kind == OpKind::Ttg(TtgOp::ComputeWait));
        let product = |wait: OpId| {
            let mut issues = Vec::new();
            let mut at = *kernel.op(wait).args.first()?;
            // This ends: the accumulator of an instruction is defined before it.
            while let Some(id) = ops.iter().copied().find(|id| kernel.op(*id).results.contains(&at))
                && kernel.op(id).kind == OpKind::Nv(NvOp::Wgmma)
            {
                issues.push(id);
                at = *kernel.op(id).args.get(2)?;
            }
            issues.reverse();
            (!issues.is_empty()).then_some(Product { issues, wait })
        };
        waits.filter_map(product).collect()
    }

    /// The operand of the first instruction at a place: A, B or the accumulator.
    fn operand(&self, kernel: &Kernel, place: usize) -> Option<Value> {
        kernel.op(*self.issues.first()?).args.get(place).copied()
    }
}

impl<'k> Two<'k> {
    fn of(kernel: &'k Kernel, body: Block) -> Option<Two<'k>> {
        let (end, ops) = kernel.block(body).ops.split_last()?;
        let [first, second] = &Product::all(kernel, ops)[..] else { return None };
        let place = |id: &OpId| ops.iter().position(|other| other == id);
        // The second product adds to what the loop carries, and its result is passed on.
        let sum = *kernel.op(second.wait).results.first()?;
        let at = kernel.op(*end).args.iter().position(|v| *v == sum)?;
        let carried = *kernel.block(body).args.get(1 + at)?;
        let reached = from(kernel, ops, carried);
        let of_second: SortedSet<OpId> = second.issues.iter().copied().collect();
        let mut scaling = SortedSet::new();
        for id in reached.iter().filter(|id| !of_second.contains(id) && **id != second.wait) {
            // What uses the accumulator before the product must be only for it.
            if kernel.op(*id).kind.effect() != Effect::Pure || place(id) > place(second.issues.first()?) {
                return None;
            }
            scaling.insert(*id);
        }
        // Operand A depends on the first product, or there would be nothing to overlap with.
        let scores = *kernel.op(first.wait).results.first()?;
        let a = second.operand(kernel, 0)?;
        let of_scores = from(kernel, ops, scores);
        if a != scores && !of_scores.iter().any(|id| kernel.op(*id).results.contains(&a)) {
            return None;
        }
        let issued = issued(kernel, ops, second)?;
        let mut converting: SortedSet<OpId> = converting(kernel, ops, a, &issued).into_iter().collect();
        // What writes registers that the product reads until it is waited for, and what uses these tiles, comes behind that.
        let writing = same_registers::writers(kernel, second.issues.iter().copied(), ops);
        for id in writing.into_iter().filter(|id| !issued.contains(id)) {
            converting.insert(id);
            let users = kernel.op(id).results.iter().flat_map(|v| from(kernel, ops, *v));
            converting.extend(users.filter(|user| !issued.contains(user) && !of_second.contains(user)));
        }
        let whole = |product: &Product, issued: &SortedSet<OpId>| {
            let mut ends = SortedSet::from([product.wait]);
            ends.extend(releases(kernel, ops, issued));
            ends
        };
        let second_ends = whole(second, &issued);
        let mut needed = needed(kernel, ops, &first.issues);
        needed.extend(fence(kernel, ops, first));
        // The wait for the first stage, without what the second product is.
        let own: SortedSet<OpId> = needed.iter().copied().filter(|id| !issued.contains(id)).collect();
        let first_ends = whole(first, &own);
        Some(Two { ops, first: [own, first_ends], second: [issued, second_ends], scaling, converting })
    }

    /// The stage and the place of each operation.
    fn places(&self, kernel: &Kernel) -> Vec<Planned> {
        let [issue_first, end_first] = &self.first;
        let [issue_second, end_second] = &self.second;
        let is_late = |id: &OpId| issue_second.contains(id) || end_second.contains(id);
        let is_name = |id: &OpId| {
            modulo::is_renewable(kernel, *id, false) && !issue_second.contains(id) && !uses_late(kernel, self.ops, *id)
        };
        // Operations that two of these sets contain are of the first one. Numbers and names are first, so that all may use them.
        let group = |id: &OpId| match id {
            id if issue_second.contains(id) => 1,
            id if end_second.contains(id) => 4,
            id if self.scaling.contains(id) => 5,
            id if self.converting.contains(id) => 6,
            id if issue_first.contains(id) || is_name(id) => 0,
            id if end_first.contains(id) => 2,
            _ => 3,
        };
        let mut order: Vec<OpId> = self.ops.to_vec();
        // A stable order: operations of one group keep the order of the program.
        order.sort_by_key(group);
        places(self.ops, &order, |id| u16::from(is_late(id)))
    }
}

/// Whether a name or number depends on a result that is not a name or number of the body itself.
fn uses_late(kernel: &Kernel, ops: &[OpId], id: OpId) -> bool {
    let made = |v: &Value| ops.iter().copied().find(|id| kernel.op(*id).results.contains(v));
    kernel
        .operands_within(id)
        .iter()
        .filter_map(made)
        .any(|by| !modulo::is_renewable(kernel, by, false) || uses_late(kernel, ops, by))
}

/// The operations of a body that use a value, themselves or by way of others.
fn from(kernel: &Kernel, ops: &[OpId], value: Value) -> SortedSet<OpId> {
    let (mut values, mut found) = (SortedSet::from([value]), SortedSet::new());
    for id in ops {
        if kernel.operands_within(*id).iter().any(|v| values.contains(v)) {
            found.insert(*id);
            values.extend(kernel.op(*id).results.iter().copied());
        }
    }
    found
}

/// The operations of a body that these need, and these.
fn needed(kernel: &Kernel, ops: &[OpId], of: &[OpId]) -> SortedSet<OpId> {
    let mut found: SortedSet<OpId> = of.iter().copied().collect();
    let mut values: SortedSet<Value> = of.iter().flat_map(|id| kernel.operands_within(*id)).collect();
    for id in ops.iter().rev() {
        if kernel.op(*id).results.iter().any(|v| values.contains(v)) {
            found.insert(*id);
            values.extend(kernel.operands_within(*id));
        }
    }
    found
}

/// The fence before the instructions of a product.
fn fence(kernel: &Kernel, ops: &[OpId], product: &Product) -> Option<OpId> {
    let first = product.issues.first()?;
    let before = ops.iter().take_while(|id| *id != first);
    before.filter(|id| kernel.op(**id).kind == OpKind::Nv(NvOp::WgmmaFence)).last().copied()
}

/// What issues a product: its instructions, the fence, the wait for the stage of operand B, and the names of operands. Numbers are left
/// where they are.
fn issued(kernel: &Kernel, ops: &[OpId], product: &Product) -> Option<SortedSet<OpId>> {
    let mut found: SortedSet<OpId> = product.issues.iter().copied().collect();
    found.insert(fence(kernel, ops, product)?);
    let mut open: Vec<Value> =
        product.issues.iter().flat_map(|id| kernel.op(*id).args.get(..2).unwrap_or_default()).copied().collect();
    // This ends: each operation is added once.
    while let Some(value) = open.pop() {
        let Some(id) = ops.iter().copied().find(|id| kernel.op(*id).results.contains(&value)) else { continue };
        let own = match kernel.ty(value) {
            Ty::Smem(..) | Ty::Token(..) => true,
            Ty::Tile(..) => same_registers::takes_part(&kernel.op(id).kind),
            Ty::Scalar(_) | Ty::Tensor(..) | Ty::Source(..) | Ty::Compute(..) | Ty::Acc(..) | Ty::Barrier(_) => false,
        };
        if own && found.insert(id) {
            open.extend(&kernel.op(id).args);
        }
    }
    Some(found)
}

/// What ends reading the stages that these operations wait for.
fn releases(kernel: &Kernel, ops: &[OpId], issued: &SortedSet<OpId>) -> Vec<OpId> {
    let mut tokens: SortedSet<Value> = issued.iter().flat_map(|id| &kernel.op(*id).results).copied().collect();
    tokens.retain(|v| matches!(kernel.ty(*v), Ty::Token(Token::Rperm, _)));
    let mut found = Vec::new();
    for id in ops {
        let op = kernel.op(*id);
        let ends = matches!(op.kind, OpKind::Ttg(TtgOp::Consumed | TtgOp::Release));
        if ends && op.args.iter().any(|v| tokens.contains(v)) {
            found.push(*id);
            tokens.extend(op.results.iter().copied());
        }
    }
    found
}

/// The casts that are only for an operand.
fn converting(kernel: &Kernel, ops: &[OpId], operand: Value, issued: &SortedSet<OpId>) -> Vec<OpId> {
    let mut found: Vec<OpId> = Vec::new();
    let mut at = operand;
    // From the operand of the first instruction, which is a part of it, back to what is converted. This ends: what computes an operand is before it.
    while let Some(id) = ops.iter().copied().find(|id| kernel.op(*id).results.contains(&at)) {
        let only = ops
            .iter()
            .filter(|user| kernel.operands_within(**user).contains(&at))
            .all(|user| issued.contains(user) || found.contains(user));
        let is_cast = matches!(kernel.op(id).kind, OpKind::Cast(_));
        if !(issued.contains(&id) || is_cast && only) {
            break;
        }
        if is_cast {
            found.push(id);
        }
        let Some(from) = kernel.op(id).args.first().copied() else { break };
        at = from;
    }
    found
}
