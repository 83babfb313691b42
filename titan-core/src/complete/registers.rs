//! Which registers an operation writes.
//!
//! Deliberately absent: accumulators of MMAs in flight, of which the types state that nothing else uses them.

use crate::analysis::same_registers;
use crate::ir::{Family, Flow, Kernel, NvOp, OpId, OpKind, Value};

/// The values whose registers an operation writes. `looped` names the enclosing loop with this number, from the innermost one outwards.
///
/// What a loop carries is in the same registers in all iterations, and so are the results of a loop with a count: these are written when the
/// loop is entered, and where an iteration ends.
pub(super) fn written(kernel: &Kernel, id: OpId, looped: &dyn Fn(u32) -> Option<OpId>) -> Vec<Value> {
    let op = kernel.op(id);
    let carried = |of: OpId| {
        let (op, counters) = (kernel.op(of), usize::from(kernel.op(of).kind != OpKind::Loop));
        let args = op.regions.first().map_or(&[][..], |body| &kernel.block(*body).args);
        args.get(counters..).unwrap_or_default()
    };
    let mut written = op.results.clone();
    match op.kind.family() {
        Family::Flow(Flow::For(_) | Flow::Loop) => written.extend(carried(id)),
        Family::Flow(Flow::Break(n) | Flow::Continue(n)) => {
            let Some(around) = looped(n) else { return written };
            let is_counted = kernel.op(around).kind != OpKind::Loop;
            let places = if matches!(op.kind, OpKind::Break(_)) {
                [&kernel.op(around).results[..], if is_counted { carried(around) } else { &[] }]
            } else {
                [carried(around), &[]]
            };
            // A value that is passed on in its own place is not written.
            let changed = |place: &[Value]| -> Vec<Value> {
                place.iter().zip(&op.args).filter(|(to, from)| to != from).map(|(to, _)| *to).collect()
            };
            written.extend(places.into_iter().flat_map(changed));
        }
        // An MMA accumulates in the registers of the first one of its chain.
        Family::Nv(NvOp::Wgmma) => written.extend(op.results.iter().map(|v| same_registers::home(kernel, *v))),
        // What a branch gives is written in its arms, and is among its results.
        Family::Flow(Flow::If | Flow::Yield | Flow::Return)
        | Family::Data(_)
        | Family::Ttg(_)
        | Family::Local(_)
        | Family::Region(_)
        | Family::Nv(_)
        | Family::Amd(_) => {}
    }
    written
}
