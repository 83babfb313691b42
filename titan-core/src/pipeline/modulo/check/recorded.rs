//! The dependences between the operations of loops, for whoever chooses a schedule.
//!
//! They are those by which the checker judges: the loop is expanded with the schedule that changes nothing, and the checker records what
//! executions touch in the order of the program. Of two executions that touch one object, and one of which changes it, the later one depends
//! on the earlier one. What holds in the last iteration that is recorded, holds in all: which iterations two executions are apart that touch
//! one object does not depend on their numbers ([`super`]).
//!
//! ```text
//! for %t {                                  dependences, with the distance in iterations
//!     %slot = acquire                       acquire → copy 0
//!     copy %src to %slot                    copy → wait 0: the stage that it fills
//!     %r = ready                            ready → wait 0
//!     %s = wait %r                          wait → load 0
//!     %x = load %s                          load → release 0: the stage that is read
//!     release %s                            release → acquire 3: the slot that it sets free, in a ring of 3
//! }
//! ```
//!
//! Deliberately absent: latencies. Dependences that follow from others by way of a third execution of the same object.

use super::super::{Violation, expand};
use super::compared;
use super::frame::{Moment, Touch};
use super::touches::Object;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Def, Kernel, OpId, OpKind, Planned, Value};

/// Why an operation depends on another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It uses what the other one computes.
    Value,
    /// It acquires the slot of a ring that the other one sets free.
    Slot,
    /// Both touch something else that one of them changes.
    Order,
}

/// A dependence between two operations of a loop's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependence {
    /// The operation that comes first.
    pub from: OpId,
    /// The one that depends on it.
    pub to: OpId,
    /// By how many iterations the second one is later.
    pub distance: u32,
    /// Why.
    pub why: Why,
}

/// A loop and the dependences between the operations of its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dependent {
    /// The loop.
    pub looped: OpId,
    /// The operations of its body without the terminator, in the order of the program.
    pub ops: Vec<OpId>,
    /// The dependences, sorted.
    pub dependences: Vec<Dependence>,
}

/// The dependences between the operations of all loops of a laid-out kernel, in program order.
///
/// # Errors
/// A kernel with operations that loops with schedules do not contain.
pub fn dependences(kernel: &Kernel) -> Result<Vec<Dependent>, Violation> {
    let mut before = kernel.clone();
    let mut loops = Vec::new();
    kernel.walk(&mut |id, op| loops.extend(op.kind.is_loop().then_some((id, op.regions.first().copied()))));
    let mut found = Vec::new();
    for (looped, body) in loops {
        let Some((_, ops)) = body.and_then(|body| kernel.block(body).ops.split_last()) else { continue };
        for (order, id) in (0..).zip(ops) {
            // One stage, in the order of the program: expansion changes nothing, and every execution is recorded in the
            // order that must be kept.
            before.ops[id.index()].planned = Some(Planned { stage: 0, order });
        }
        found.push((looped, ops.to_vec()));
    }
    let slots = kernel.pipes.iter().map(|pipe| pipe.slots).max().unwrap_or(0);
    // An acquisition touches the slot of a release D iterations earlier at most, D being the greatest number of slots.
    // With D + 3 iterations, the last one has all of its predecessors in the record.
    let iterations = i32::try_from(slots).map_or(i32::MAX, |slots| slots.saturating_add(3));
    let touched = compared(&before, &expand(&before)?, Some(iterations))?;
    let dependent = |(looped, ops): (OpId, Vec<OpId>)| {
        let mut all = SortedSet::new();
        values(kernel, looped, &ops, &mut all);
        objects(&ops, touched.get(&looped).map_or(&[][..], Vec::as_slice), &mut all);
        let dependences = all.iter().copied().filter(|of| of.distance > 0 || of.from != of.to).collect();
        Dependent { looped, ops, dependences }
    };
    Ok(found.into_iter().map(dependent).collect())
}

/// Adds the dependences of uses on what computes the values.
fn values(kernel: &Kernel, looped: OpId, ops: &[OpId], all: &mut SortedSet<Dependence>) {
    let op = kernel.op(looped);
    let Some(body) = op.regions.first().map(|body| kernel.block(*body)) else { return };
    let next = body.ops.last().map_or(&[][..], |end| &kernel.op(*end).args);
    let carried = body.args.get(usize::from(op.kind != OpKind::Loop)..).unwrap_or_default();
    for to in ops {
        for value in kernel.operands_within(*to) {
            let mut from: Option<Value> = Some(value);
            // What is only passed on was computed so many iterations before; a value that is passed on for ever comes from outside.
            // Example: `mma %acc` with `carry(%acc)` and `continue %sum`: %acc is no result, its place passes on %sum,
            // which the MMA of the iteration before computes: distance 1.
            for distance in (0..).take(carried.len() + 1) {
                let Some(value) = from else { break };
                if let Def::Result(from, _) = kernel.value(value).def {
                    if ops.contains(&from) {
                        all.insert(Dependence { from, to: *to, distance, why: Why::Value });
                    }
                    break;
                }
                from = carried.iter().position(|own| *own == value).and_then(|place| next.get(place).copied());
            }
        }
    }
}

/// The latest execution that changes an object, and those that touch it since.
#[derive(Default)]
struct Latest {
    changed: Option<Moment>,
    touched: Vec<Moment>,
}

/// Adds the dependences between executions that touch one object.
fn objects(ops: &[OpId], log: &[Touch], all: &mut SortedSet<Dependence>) {
    let last = log.iter().map(|((n, _), _, _)| *n).max().unwrap_or(0);
    let mut latest: SortedMap<Object, Latest> = SortedMap::new();
    for (now, object, changes) in log {
        let Latest { changed, touched } = latest.entry(*object).or_default();
        // What only touches the object depends on the last change. What changes it depends on that change and on all
        // that touched the object since; those before the last change precede it already, so that dependences on them
        // follow.
        let before = changed.iter().chain(touched.iter().filter(|_| *changes)).copied();
        for (n, place) in before.filter(|_| now.0 == last) {
            let ends = ops.get(place).copied().zip(ops.get(now.1).copied());
            let distance = u32::try_from(now.0 - n);
            if let (Some((from, to)), Ok(distance)) = (ends, distance) {
                // Only the last iteration is used: earlier ones lack predecessors from before the beginning of the
                // record.
                let why = if matches!(object, Object::Freed(..)) { Why::Slot } else { Why::Order };
                all.insert(Dependence { from, to, distance, why });
            }
        }
        if *changes {
            *changed = Some(*now);
            touched.clear();
        } else {
            touched.push(*now);
        }
    }
}
