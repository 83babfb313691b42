//! The reasons why a kernel has no code of its own for a machine with bulk copies, or why threads copy some of its tiles there, for the log.
//!
//! The rule asks where it decides, with its plan: which MMAs do not use warpgroups ([`crate::plan`]), which tiles are no boxes
//! ([`crate::analysis::boxes`]). Why a loop is not split into a role that copies and one that computes it knows itself.
//!
//! Deliberately absent: reasons that depend on the arguments of a launch.

use super::log::{Alternative, Log, Why};
use super::rings::{loaded_name, pipelined_loops};
use super::schedule::Ahead;
use crate::analysis::boxes::{NoBox, of_op as box_of};
use crate::ir::{GridSpec, Kernel, Op, OpId, OpKind, Pipe, TtgOp, Ty, Value};
use crate::pipeline::operands::computed_from;
use crate::pipeline::walk::NoWalk;
use crate::plan::{self, Plan};
use crate::verify::Verified;

/// The log of a kernel without a role that copies in bulk; `why` its loops are not split, or its roles do not keep their own warps.
pub(super) fn not_in_bulk(kernel: &Verified, plan: &Plan, why: Option<Why>) -> Log {
    let mut log = Log::default();
    // Where no MMA is one of warpgroups, bulk copies are a gain by themselves.
    let for_copies = plan.target.group_atoms.is_empty();
    if !plan.uses_warpgroups() && (!for_copies || why.is_none()) {
        mmas(kernel, plan, &mut log);
    }
    let loops = pipelined_loops(kernel);
    if !kernel.roles.is_empty() {
        match why {
            Some(why @ Why::Refused(_)) => log.add(Alternative::Apart, why),
            None | Some(_) => log.extend(not_filled_in_bulk(kernel, plan)),
        }
    } else if loops.is_empty() {
        log.add(Alternative::OwnCode, Why::NoLoop);
    } else {
        let mut loaded = Log::default();
        loops.iter().for_each(|looped| self::loaded(kernel, plan, *looped, &mut loaded));
        match why.filter(|_| (for_copies || plan.uses_warpgroups()) && loaded.is_empty()) {
            Some(why) => log.add(Alternative::Split, why),
            None => log.extend(loaded),
        }
    }
    if log.is_empty() {
        log.add(Alternative::OwnCode, Why::NoBulk);
    }
    if let GridSpec::Extents(_) = kernel.sig.grid {
        log.add(Alternative::Walk, Why::NoWalk(NoWalk::NoRoles));
    }
    log
}

/// The MMAs that do not use warpgroups.
fn mmas(kernel: &Kernel, plan: &Plan, log: &mut Log) {
    let mut any = false;
    kernel.walk(&mut |id, op| {
        any |= plan::operands(op).is_some();
        let why = plan.mmas.get(&id).and_then(|mma| mma.no_group.clone());
        if let (Some(why), Some(result)) = (why, op.results.first()) {
            log.add(Alternative::Group(kernel.name_or_line(*result)), Why::NoGroup(why));
        }
    });
    // Rings that the kernel declares are copied in bulk without MMAs too.
    if !any && kernel.roles.is_empty() {
        log.add(Alternative::OwnCode, Why::NoMma);
    }
}

/// The operands of MMAs that a loop loads, and that are in no ring of the role that copies.
pub(super) fn not_loaded_in_bulk(kernel: &Verified, plan: &Plan, rings: &[Ahead]) -> Log {
    let mut log = Log::default();
    let all = vec![true; kernel.sig.params.len()];
    for (number, looped) in pipelined_loops(kernel).into_iter().enumerate() {
        let Some(body) = kernel.op(looped).regions.first() else { continue };
        for (at, id) in kernel.block(*body).ops.iter().enumerate() {
            let op = kernel.op(*id);
            let (OpKind::Load(..), [tile]) = (&op.kind, &op.results[..]) else { continue };
            let encoding = plan.smem_resident.get(tile.index()).and_then(Option::as_ref);
            let copied = rings.iter().any(|ahead| ahead.number == number && ahead.loads.contains(&at));
            if let Some(why) = encoding.filter(|_| !copied).and_then(|e| box_of(kernel, op, e, &all).err()) {
                log.add(Alternative::Bulk(loaded_name(kernel, *tile)), Why::NoBox(why));
            }
        }
    }
    log
}

/// The tiles that a loop loads and that are no boxes.
fn loaded(kernel: &Kernel, plan: &Plan, looped: OpId, log: &mut Log) {
    let Some(body) = kernel.op(looped).regions.first() else { return };
    let all = vec![true; kernel.sig.params.len()];
    let computed = computed_from(kernel, looped);
    kernel.walk_block(*body, &mut |_, op| {
        let Some(tile) = op.results.first().filter(|tile| !computed.contains(tile)) else { return };
        let mut add = |why: Why| log.add(Alternative::Bulk(loaded_name(kernel, *tile)), why);
        if let OpKind::GatherRows { .. } = op.kind {
            add(Why::NoBox(NoBox::Gathered));
        }
        let OpKind::Load(..) = op.kind else { return };
        match plan.smem_resident.get(tile.index()).and_then(Option::as_ref).map(|e| box_of(kernel, op, e, &all)) {
            Some(Err(why)) => add(Why::NoBox(why)),
            Some(Ok(_)) => {}
            None => add(Why::Read),
        }
    });
}

/// The tiles of the stages of rings that are no boxes.
pub(super) fn not_filled_in_bulk(kernel: &Kernel, plan: &Plan) -> Log {
    let mut log = Log::default();
    kernel.walk(&mut |_, op| {
        let (OpKind::Ttg(TtgOp::AsyncProduce { skipped, .. }), [slot, sources @ ..]) = (&op.kind, &op.args[..]) else {
            return;
        };
        let Ty::Token(_, pipe) = kernel.ty(*slot) else { return };
        for (field, source) in sources.iter().enumerate() {
            let Some(named) = kernel.def_op(*source).filter(|op| matches!(op.kind, OpKind::Ttg(_))) else { continue };
            let encoding = plan.stages.get(pipe.index()).and_then(|fields| fields.get(field));
            let why = match encoding {
                _ if skipped.is_some() => Some(NoBox::Conditional),
                Some(encoding) => box_of(kernel, named, encoding, &plan.aligned_rows()).err(),
                None => None,
            };
            if let Some(why) = why {
                log.add(Alternative::Bulk(source_name(kernel, named, pipe, *source)), Why::NoBox(why));
            }
        }
    });
    log
}

/// The name of what is copied: that of the tile, or else of its tensor and ring.
fn source_name(kernel: &Kernel, op: &Op, pipe: Pipe, source: Value) -> String {
    let ring = kernel.pipe_name(pipe);
    match (&kernel.value(source).name, op.args.first()) {
        (Some(name), _) => format!("`{name}`"),
        (None, Some(tensor)) => format!("the tile of {} in `{ring}`", kernel.name_or_line(*tensor)),
        (None, None) => format!("a tile in `{ring}`"),
    }
}
