//! Schedules of loops that someone has written: a laid-out kernel with stages and places as text, as `titan emit --stage scheduled` prints it, changed
//! by hand or by a program.
//!
//! Everything that comes before layouts (slots, roles, the walk over tiles) is decided by the rule, and the text must be the kernel that was laid out by
//! that. What the text says of a loop (stages, places, `peeled`, `unmasked`) takes the place of what was chosen. It is believed as little as what the
//! modulo scheduler finds: the loops are expanded by it, and the checkers of expanded loops, of loops without masks and of barrier programs judge.
//!
//! Deliberately absent: the text of anything else in a [`Schedule`].

use super::order::{annotate, bodies};
use super::road::InStages;
use super::{
    Arguments, Backend, Body, LowerError, Made, Prepared, Stages, ahead, carried_out, prepared, stages_of, swing,
};
use crate::collections::SortedSet;
use crate::ir::{Kernel, OpId, Planned};
use crate::target::Target;
use crate::text::print;
use crate::verify::Verified;

/// The stages of a kernel on the way to one variant, as [`super::stages`], with the schedules of loops from the text of a laid-out kernel.
///
/// # Errors
/// Returns an error if the text is not this kernel as it is laid out for the machine, or its schedules cannot be carried out; and the errors of
/// [`super::compile`].
pub fn stages_written(
    kernel: &Verified,
    backend: &dyn Backend,
    arguments: impl Into<Arguments>,
    shared_bytes: Option<u32>,
    written: &Kernel,
) -> Result<Stages, LowerError> {
    let arguments = arguments.into();
    stages_of(kernel, backend, shared_bytes, |target| as_written(kernel, target, arguments, written))
}

fn as_written(kernel: &Verified, target: &Target, arguments: Arguments, written: &Kernel) -> Result<Made, LowerError> {
    let Prepared { mut filled, laid_out, loops: _, pays } = prepared(kernel, target, arguments, None)?;
    is_laid_out(&laid_out, target, written)?;
    let refused = |op, why: &str| LowerError::refused(written, op, why.to_owned(), HELP);
    filled.schedule.bodies.clear();
    filled.schedule.unmasked = false;
    let bodies = bodies(written);
    let of_loops: SortedSet<OpId> = bodies.iter().flat_map(|(_, body)| &written.block(*body).ops).copied().collect();
    let mut outside = None;
    written.walk(&mut |id, op| {
        if op.planned.is_some() && !of_loops.contains(&id) {
            outside = outside.or(Some(id));
        }
    });
    if let Some(op) = outside {
        return Err(refused(Some(op), "it has a place in a schedule, and is directly in the body of no loop"));
    }
    for (number, (looped, body)) in bodies.into_iter().enumerate() {
        let Some((_, ops)) = written.block(body).ops.split_last() else { continue };
        let places =
            places(written, ops).map_err(|op| refused(Some(op), "the schedule of the loop has no place for it"))?;
        let op = written.op(looped);
        let body = Body { number, places, peeled: op.peeled, unmasked: op.unmasked };
        let with = swing::with(written, &filled.schedule, ops, body);
        filled.schedule = with.ok_or_else(|| refused(Some(looped), "it fills a ring ahead that roles share"))?;
    }
    if !ahead::agrees(&laid_out, &filled.schedule) {
        return Err(refused(None, "two loops fill a ring, and not equally far ahead"));
    }
    let Some(scheduled) = annotate(&laid_out, &filled.schedule.bodies) else {
        return Err(refused(None, "it has other loops than the kernel"));
    };
    let loops = InStages::expanded(&scheduled).map_err(|why| {
        let at = scheduled.op(why.op).planned.map(|Planned { stage, order }| format!("at stage({stage}, {order}), "));
        LowerError::refused(&scheduled, Some(why.op), at.unwrap_or_default() + &why.message, HELP)
    })?;
    let made = carried_out(filled, laid_out, Some(loops)).map_err(|stop| stop.error().of_a_schedule(HELP))?;
    Ok(Made { pays, ..made })
}

/// What to do about a text that is not a schedule of the kernel.
const HELP: &str = "`titan emit --stage scheduled` prints the schedule that is chosen for this kernel and target; change stages and places in that";

/// The places of the operations of a body; the order in which they are written if none has a place.
///
/// # Errors
/// Returns the first operation without a place, if others have one.
fn places(kernel: &Kernel, ops: &[OpId]) -> Result<Vec<Planned>, OpId> {
    let planned = |id: &OpId| kernel.op(*id).planned;
    if ops.iter().all(|id| planned(id).is_none()) {
        // Bodies have fewer operations than places have numbers.
        return Ok((0..).zip(ops).map(|(order, _)| Planned { stage: 0, order }).collect());
    }
    ops.iter().map(|id| planned(id).ok_or(*id)).collect()
}

/// Checks that a text without its schedules is this laid-out kernel.
fn is_laid_out(laid_out: &Kernel, target: &Target, written: &Kernel) -> Result<(), LowerError> {
    let mut bare = written.clone();
    for op in &mut bare.ops {
        (op.planned, op.peeled, op.unmasked) = (None, false, false);
    }
    let (is, was) = (print(&bare), print(laid_out));
    if is == was {
        return Ok(());
    }
    let lines = is.lines().map(Some).chain(std::iter::repeat(None)).zip(was.lines().map(Some).chain([None]));
    let differ = lines.into_iter().find(|(is, was)| is != was).unwrap_or_default();
    let said = |line: Option<&str>| line.map_or_else(|| "its end".to_owned(), |line| format!("`{}`", line.trim()));
    let message = format!(
        "what is written is not this kernel as it is laid out for {}: {} is in the place of {}",
        target.name,
        said(differ.0),
        said(differ.1)
    );
    Err(LowerError { help: Some(HELP.to_owned()), ..LowerError::of_kernel(&laid_out.sig.full_name(), message) })
}
