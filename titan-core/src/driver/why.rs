//! The reasons why a kernel has no code for a machine with bulk copies, or why threads copy some of its tiles there: notes with the user's
//! names.
//!
//! The reasons come from the decisions themselves: [`crate::plan`] for MMAs that do not use warpgroups, [`crate::analysis::boxes`] for
//! tiles that are no boxes, [`super::rule`] for loops that are not split into a role that copies and one that computes.
//!
//! Deliberately absent: reasons that depend on the arguments of a launch.

use super::rings::{loaded_name, pipelined_loops, with_rings};
use super::schedule::{Ahead, Arguments, Roles, Schedule};
use super::{Made, rule};
use crate::analysis::boxes::{NoBox, of_op as box_of};
use crate::ir::{Kernel, Op, OpId, OpKind, Pipe, TtgOp, Ty, Value};
use crate::pipeline::operands::computed_from;
use crate::plan::{self, Plan};
use crate::target::Target;
use crate::verify::Verified;
use std::fmt;

/// The reasons why a kernel has neither bulk copies nor MMAs of warpgroups; at least one.
pub(super) fn no_gain(kernel: &Verified, target: &Target) -> Vec<String> {
    let plan = plan::plan(kernel, target, true);
    let mut notes = Notes::default();
    if !plan::has_wide_accesses(kernel) {
        notes.add("it accesses single elements only: no tile of a tensor is loaded or stored".to_owned());
        return notes.told();
    }
    mmas(kernel, &plan, &mut notes);
    loops(kernel, (&plan, Arguments::Aligned), &mut notes);
    if notes.all.is_empty() {
        notes.add("no tile is copied in bulk, and no MMA is one of warpgroups".to_owned());
    }
    notes.told()
}

/// The reasons why threads copy tiles of the kernel's rings, in code for a machine with bulk copies; none if all are copied in bulk.
pub(super) fn copied_by_threads(kernel: &Verified, made: &Made) -> Vec<String> {
    let mut notes = Notes::default();
    if made.schedule.roles == Roles::Kept && made.rings.roles.is_empty() {
        let plan = plan::plan(kernel, &made.plan.target, made.plan.aligned);
        loops(kernel, (&plan, made.schedule.arguments), &mut notes);
        // Without a role that copies, only threads do: what else a bulk copy would ask for does not matter.
        if !notes.all.is_empty() {
            return notes.told();
        }
    }
    if let Roles::Split { .. } = made.schedule.roles {
        operands(kernel, made, &mut notes);
    }
    if matches!(made.schedule.roles, Roles::Fused { .. }) {
        let kept = Schedule { roles: Roles::Kept, warps: None, ..made.schedule.clone() };
        if let Some(Err(error)) = with_rings(kernel, &kept).map(|rings| rule::fitted(rings, &made.plan.target, &kept)) {
            notes.add(format!("the same warps execute both roles: {}", error.message));
            return notes.told();
        }
    }
    stages(&made.rings, &made.plan, &mut notes);
    if notes.all.is_empty() && made.lowered.func.maps.is_empty() {
        notes.add("no tile is copied in bulk".to_owned());
    }
    notes.told()
}

/// A list of sentences without duplicates. A reason for several tiles is told once, with all of them.
#[derive(Default)]
struct Notes {
    all: Vec<Note>,
}

struct Note {
    /// The tiles that are not copied in bulk, for this reason; none: the text is the whole sentence.
    tiles: Vec<String>,
    text: String,
}

impl Notes {
    fn add(&mut self, text: String) {
        if !self.all.iter().any(|note| note.tiles.is_empty() && note.text == text) {
            self.all.push(Note { tiles: Vec::new(), text });
        }
    }

    fn tile(&mut self, tile: String, why: &dyn fmt::Display) {
        let text = why.to_string();
        match self.all.iter_mut().find(|note| !note.tiles.is_empty() && note.text == text) {
            Some(known) if known.tiles.contains(&tile) => {}
            Some(known) => known.tiles.push(tile),
            None => self.all.push(Note { tiles: vec![tile], text }),
        }
    }

    /// The sentences.
    fn told(self) -> Vec<String> {
        let sentence = |Note { tiles, text }| match &tiles[..] {
            [] => text,
            [tile] => format!("{tile} is not copied in bulk: {text}"),
            [first @ .., last] => format!("{} and {last} are not copied in bulk: {text}", first.join(", ")),
        };
        self.all.into_iter().map(sentence).collect()
    }
}

/// The reasons why MMAs do not use warpgroups.
fn mmas(kernel: &Kernel, plan: &Plan, notes: &mut Notes) {
    let mut any = false;
    kernel.walk(&mut |id, op| {
        any |= plan::operands(op).is_some();
        if let (Some(why), Some(result)) = (plan.no_group(kernel, id), op.results.first()) {
            let name = kernel.name_or_line(*result);
            notes.add(format!("the MMA that gives {name} is not one of warpgroups: {why}"));
        }
    });
    // Rings that the kernel declares are copied in bulk without MMAs too.
    if !any && kernel.roles.is_empty() {
        notes.add("it has no MMA, and of its loops only tiles of MMAs of warpgroups are copied in bulk".to_owned());
    }
}

/// Why copies cannot run ahead of the rest of a program in a role of their own.
const DEPENDS: &str =
    "what is copied depends on what is computed, or on an exit from a loop or from the middle of a branch";

/// The reasons why loops are not split into a role that copies in bulk and one that computes.
fn loops(kernel: &Verified, (plan, arguments): (&Plan, Arguments), notes: &mut Notes) {
    if !kernel.roles.is_empty() {
        stages(kernel, plan, notes);
        return;
    }
    let pipelined = pipelined_loops(kernel);
    if pipelined.is_empty() {
        notes.add("it has no loop over `pipelined(..)`, whose copies could run ahead".to_owned());
        return;
    }
    let before = notes.all.len();
    for looped in &pipelined {
        loaded(kernel, plan, *looped, notes);
    }
    if !plan.uses_warpgroups() || notes.all.len() > before {
        return;
    }
    let not_split = "no role of its own copies the tiles of the loop over `pipelined(..)`";
    let Some(loops) = rule::loops_to_split(kernel, plan).map(|l| l.together).filter(|loops| !loops.is_empty()) else {
        notes.add(format!("{not_split}: threads need them in registers, or where they lie is not known ahead"));
        return;
    };
    let roles = Roles::Split { warps: plan.warps.next_multiple_of(plan.target.role_warps.max(1)) };
    let shared_bytes = plan.target.shared_bytes;
    let schedule = Schedule { arguments, shared_bytes, roles, loops, ..Schedule::default() };
    match with_rings(kernel, &schedule).map(|rings| rule::fitted(rings, &plan.target, &schedule)) {
        None => notes.add(format!("{not_split}: {DEPENDS}")),
        Some(Err(error)) => notes.add(format!("{not_split}: {}", error.message)),
        Some(Ok(_)) => {}
    }
}

/// The reasons why operands of MMAs that a loop loads are in no ring of the role that copies.
fn operands(kernel: &Verified, made: &Made, notes: &mut Notes) {
    let plan = plan::plan(kernel, &made.plan.target, made.plan.aligned);
    let all = vec![true; kernel.sig.params.len()];
    for (number, looped) in pipelined_loops(kernel).into_iter().enumerate() {
        let Some(body) = kernel.op(looped).regions.first() else { continue };
        let rings: Vec<&Ahead> = made.schedule.loops.iter().filter(|ahead| ahead.number == number).collect();
        for (at, id) in kernel.block(*body).ops.iter().enumerate() {
            let op = kernel.op(*id);
            let (OpKind::Load(..), [tile]) = (&op.kind, &op.results[..]) else { continue };
            let encoding = plan.smem_resident.get(tile.index()).and_then(Option::as_ref);
            let copied = rings.iter().any(|ahead| ahead.loads.contains(&at));
            if let Some(why) = encoding.filter(|_| !copied).and_then(|e| box_of(kernel, op, e, &all).err()) {
                notes.tile(loaded_name(kernel, *tile), &why);
            }
        }
    }
}

/// The reasons why tiles that a loop loads are no boxes.
fn loaded(kernel: &Kernel, plan: &Plan, looped: OpId, notes: &mut Notes) {
    let Some(body) = kernel.op(looped).regions.first() else { return };
    let all = vec![true; kernel.sig.params.len()];
    let computed = computed_from(kernel, looped);
    kernel.walk_block(*body, &mut |_, op| {
        let Some(tile) = op.results.first().filter(|tile| !computed.contains(tile)) else { return };
        let name = loaded_name(kernel, *tile);
        if let OpKind::GatherRows { .. } = op.kind {
            notes.tile(name.clone(), &NoBox::Gathered);
        }
        let OpKind::Load(..) = op.kind else { return };
        match plan.smem_resident.get(tile.index()).and_then(Option::as_ref) {
            Some(encoding) => {
                if let Err(why) = box_of(kernel, op, encoding, &all) {
                    notes.tile(name, &why);
                }
            }
            None => notes.tile(name, &"it is read in registers, not only by MMAs in shared memory"),
        }
    });
}

/// The reasons why tiles of the stages of rings are no boxes.
fn stages(kernel: &Kernel, plan: &Plan, notes: &mut Notes) {
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
                notes.tile(source_name(kernel, named, pipe, *source), &why);
            }
        }
    });
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
