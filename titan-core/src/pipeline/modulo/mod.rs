//! Modulo expansion: loops are rewritten so that each operation of a body is executed in the stage and at the place that the schedule of
//! the loop says ([`crate::ir::Planned`]).
//!
//! A body has operations of stages 0 to S - 1. In iteration i of the rewritten loop, the *steady loop*, operations of the last stage belong
//! to iteration i of the original loop, and operations of stage s to iteration i + (S - 1 - s), which is called their *lead*. The steady
//! loop is executed as often as the original one. Before it, the *prologue* executes the operations of earlier stages for the first
//! iterations. At its end, operations of earlier stages have been executed for iterations that do not exist: such an iteration is a
//! *phantom*, and the kernel must allow it, because its operations have no effect (loads from stages that were filled with zeros).
//!
//! # Example
//!
//! The loads of the first fragments from a stage are stage 0, all else is stage 1. The loop has carried the permission to read the next stage
//! (`%s`) before:
//!
//! ```text
//! for %i .. carry(%s = %s0) {               %x0 = load %s0                       the prologue: stage 0 of iteration 0
//!     %x = load %s         stage(0, 5)      for %i .. carry(%s = %s0, %xi = %x0) {
//!     %y = load' %s        stage(1, 0)          %y = load' %s                    iteration i
//!     mma %x               stage(1, 1)          mma %xi                          iteration i, with what was loaded in the iteration before
//!     release %s           stage(1, 2)          release %s
//!     %n = wait next       stage(1, 3)          %n = wait next
//!     mma %y               stage(1, 6)          %x1 = load %n                    iteration i + 1
//!     continue %n                               mma %y
//! }                                             continue %n, %x1
//!                                           }
//! ```
//!
//! # How it works
//!
//! An *instance* (v, c) is what the value v of the original loop is in iteration i + c, in iteration i of the steady loop. Every
//! operation is emitted once, at its lead, and its operands are looked up as instances with the same c (`Steady::at`):
//!
//! * a value from outside of the loop is itself;
//! * the counter is the counter plus c steps;
//! * a value that the loop carries is what the previous iteration passed on, (next, c - 1); with c = 0, the value that the steady
//!   loop carries for it;
//! * the result of an operation with lead c is the result of the emitted operation;
//! * with a lead above c, it was computed in an earlier iteration of the steady loop, which then carries it. What cannot be carried, names of
//!   memory and of stages, is computed again, and so are constants, which would not be known as such any more;
//! * with a lead below c, it is computed too late. Names and numbers are computed again from the instances of their operands; for all else, the
//!   schedule violates a dependence.
//!
//! The look-up ends: c falls along carried values, and along operands the order of the original body falls. Values that the steady loop
//! carries for (v, c) are passed on as (v, c + 1), so that there are at most as many for v as its lead.
//!
//! Deliberately absent: the choice of the schedule; dependences through memory and rings, which whoever chooses the schedule must keep: the
//! checker shows that these are kept; loops
//! that are left early, and `loop`s, which have one stage.

mod around;
mod check;
mod early;
mod peeled;
mod runs;
mod steady;

use super::edit::Edit;
use crate::collections::SortedMap;
use crate::ir::{Block, Def, ForKind, Kernel, NvOp, OpId, OpKind, Planned, Ty};
pub use check::{Dependence, Dependent, Why, check, dependences};
pub(crate) use early::{fills, may_be_guarded};
use steady::Steady;
pub(crate) use steady::is_renewable;

/// Why the schedule of a loop cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The operation at which it is found.
    pub op: OpId,
    /// What is violated.
    pub message: String,
}

/// The kernel with all loops that have a schedule expanded. Operations have no schedule afterwards.
///
/// # Errors
/// Returns the first operation whose place in the schedule is impossible.
pub fn expand(kernel: &Kernel) -> Result<Kernel, Violation> {
    let mut loops = Vec::new();
    kernel.walk(&mut |id, op| {
        let planned = |body: &Block| kernel.block(*body).ops.iter().any(|id| kernel.op(*id).planned.is_some());
        if op.peeled || op.kind.is_loop() && op.regions.iter().any(planned) {
            loops.push(id);
        }
    });
    if loops.is_empty() {
        return Ok(kernel.clone());
    }
    let mut edit = Edit::new(kernel.clone());
    // Inner loops come first: where a prologue copies an operation with loops in it, these are expanded already. What is put before an inner
    // loop gets the stage of that loop, and places before it.
    // The walk lists a loop before those inside of it, so the reversed list has the inner ones first. Each loop is
    // expanded once, and expansion makes no loop with a schedule, so this ends. Numbers of operations stay valid:
    // `Edit` only appends, and renumbering is left to `canonical`.
    for looped in loops.into_iter().rev() {
        let made = Steady::new(edit, looped).and_then(Steady::expand);
        // What was put before an inner loop is no operation of this kernel: what is wrong with that is told of the loop around it.
        let told =
            |why: Violation| if why.op.index() < kernel.ops.len() { why } else { Violation { op: looped, ..why } };
        edit = made.map_err(told)?;
    }
    let mut made = edit.kernel;
    for op in &mut made.ops {
        (op.planned, op.peeled) = (None, false);
    }
    Ok(made.canonical())
}

/// The last stage in the schedule of a loop, whose body without its terminator is given, and how iterations are treated that do not exist.
fn stages(kernel: &Kernel, looped: OpId, ops: &[OpId]) -> Result<(u16, early::Beyond), Violation> {
    let at = |op: OpId, message: &str| Err(Violation { op, message: message.to_owned() });
    let mut taken = SortedMap::new();
    let mut stages = 1;
    for id in ops {
        let Some(Planned { stage, order }) = kernel.op(*id).planned else {
            return at(*id, "the schedule of the loop has no place for this operation");
        };
        // Places must differ, so that the order of the body is determined. Two operations at one place would be sorted
        // by whatever came first.
        if taken.insert(order, *id).is_some() {
            return at(*id, "the schedule of the loop has two operations at this place");
        }
        // The bound keeps `lead`, the turns of the prologue and the constants made of them small numbers that cannot
        // overflow.
        if stage >= MOST {
            return at(*id, "the schedule of the loop has too many stages");
        }
        stages = stages.max(stage + 1);
    }
    // The prologue computes the counter of iteration j as `lo + j · step`, which is false where iterations are dealt to
    // programs.
    if stages > 1 && kernel.op(looped).kind == OpKind::For(ForKind::Distributed) {
        return at(looped, "the schedule has several stages for a loop whose iterations are distributed over programs");
    }
    // An operation that runs ahead was executed already for iterations that the loop, once it is left, never has.
    // Guards cannot say which these are, since the number of iterations is not known at the beginning.
    if stages > 1 && is_left(kernel, looped) {
        return at(looped, "the schedule has several stages for a loop that is left early");
    }
    if let Some(part) = apart(kernel, ops) {
        return at(
            part,
            "the schedule executes this operation, which makes operand A of an MMA, in another stage than the MMA",
        );
    }
    // With stages 0, 1, 2 the leads are 2, 1, 0: iteration i of the steady loop executes stage 0 for iteration i + 2,
    // stage 1 for i + 1, stage 2 for i.
    let lead = |id: &OpId| kernel.op(*id).planned.map_or(0, |planned| stages - 1 - planned.stage);
    if kernel.op(looped).peeled {
        return peeled::stages(kernel, looped, stages);
    }
    let ops: Vec<(OpId, u16)> = ops.iter().map(|id| (*id, lead(id))).collect();
    Ok((stages - 1, early::beyond(kernel, &ops)?))
}

/// What makes operand A in registers of an asynchronous MMA of the same body, in another stage. The words that such an MMA reads are written where the
/// operand is made, and are no value that a loop could carry.
fn apart(kernel: &Kernel, ops: &[OpId]) -> Option<OpId> {
    let stage = |id: OpId| kernel.op(id).planned.map(|planned| planned.stage);
    for id in ops {
        let mut inside = vec![*id];
        kernel.op(*id).regions.iter().for_each(|region| kernel.walk_block(*region, &mut |id, _| inside.push(id)));
        for mma in inside.into_iter().map(|id| kernel.op(id)).filter(|op| op.kind == OpKind::Nv(NvOp::Wgmma)) {
            let Some(a) = mma.args.first().filter(|a| matches!(kernel.ty(**a), Ty::Tile(..))) else { continue };
            if let Def::Result(maker, _) = kernel.value(*a).def
                && ops.contains(&maker)
                && stage(maker) != stage(*id)
            {
                return Some(maker);
            }
        }
    }
    None
}

/// Whether a loop may be left, or an iteration of it ended, by other operations than the end of its body; its schedule then has one stage.
pub(crate) fn is_left(kernel: &Kernel, looped: OpId) -> bool {
    let op = kernel.op(looped);
    let body = op.regions.first().and_then(|body| kernel.block(*body).ops.split_last());
    let Some((end, ops)) = body else { return true };
    op.kind == OpKind::Loop
        || kernel.op(*end).kind != OpKind::Continue(0)
        || ops.iter().any(|id| leaves(kernel, *id, 0))
}

/// The maximum number of stages.
const MOST: u16 = 64;

/// Whether an operation, inside of so many loops of the body, leaves the loop or begins its next iteration.
fn leaves(kernel: &Kernel, id: OpId, depth: u32) -> bool {
    let op = kernel.op(id);
    let inner = depth + u32::from(op.kind.is_loop());
    if let OpKind::Break(n) | OpKind::Continue(n) = op.kind {
        return n >= depth;
    }
    let nested = op.regions.iter().flat_map(|region| &kernel.block(*region).ops);
    op.kind == OpKind::Return || nested.into_iter().any(|id| leaves(kernel, *id, inner))
}
