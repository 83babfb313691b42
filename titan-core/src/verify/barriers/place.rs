//! Rules 46 to 53: the placement of regions and barriers, the initialisation of barriers, and hardware limits. Only the rule that barriers
//! are initialised before use depends on the order of operations.

use crate::analysis::forms::is_input;
use crate::analysis::number::root;
use crate::collections::SortedMap;
use crate::diag::Code;
use crate::ir::op_table::mnemonic;
use crate::ir::{BarrierTy, Block, Kernel, Loc, NvOp, Op, OpKind, RegionOp, Stated, Tcgen05Op, TtgOp, Ty, Value};
use crate::verify::coexecution::barriers::index::out_of_range;
use crate::verify::coexecution::barriers::objects;
use crate::verify::roles::{beginning, roles_op, threads};
use crate::verify::{Error, SHARED_BYTES};

/// The size of an mbarrier in bytes, and its alignment (PTX ISA, "mbarrier").
const WORD: u64 = 8;

/// Violations of rules 46 to 53.
pub(in crate::verify) fn check(kernel: &Kernel) -> Vec<Error> {
    let mut errors = Vec::new();
    fences(kernel, &mut errors);
    if !objects::any(kernel) {
        return errors;
    }
    regions(kernel, &mut errors);
    words(kernel, &mut errors);
    super::lives::lives(kernel, &mut errors);
    copies(kernel, &mut errors);
    super::numbers::participants(kernel, &mut errors);
    super::tensor::check(kernel, &mut errors);
    tokens(kernel, &mut errors);
    outside(kernel, &mut errors);
    errors.extend(super::boxes::check(kernel));
    errors.extend(super::strided::check(kernel));
    errors
}

pub(super) fn error(errors: &mut Vec<Error>, code: Code, loc: Loc, title: impl Into<String>) {
    errors.push(Error::new(code, loc, title));
}

/// The placement of a region: its offset, its size in bytes, and its number of parts.
fn placed(kernel: &Kernel, value: Value) -> Option<(u64, u64, u64)> {
    let OpKind::Region(RegionOp::Place { offset, bytes, parts }) = kernel.def_op(value)?.kind else { return None };
    Some((u64::from(offset), u64::from(bytes), u64::from(parts)))
}

/// The offset and the size in bytes of a region or of one of its parts, and the region.
pub(super) fn part(kernel: &Kernel, value: Value) -> Option<(u64, u64, Value)> {
    let op = kernel.def_op(value)?;
    if op.kind == OpKind::Region(RegionOp::At) {
        let (offset, bytes, parts) = placed(kernel, op.args[0])?;
        return Some((offset, bytes / parts.max(1), op.args[0]));
    }
    placed(kernel, value).map(|(offset, bytes, _)| (offset, bytes, value))
}

/// Checks rule 46: a region is within shared memory, and has the parts that are selected.
fn regions(kernel: &Kernel, errors: &mut Vec<Error>) {
    kernel.walk(&mut |_, op| match (&op.kind, &op.args[..]) {
        (OpKind::Region(RegionOp::Place { offset, bytes, parts }), _) => {
            let (name, end) = (kernel.display_name(op.results[0]), u64::from(*offset) + u64::from(*bytes));
            if end > SHARED_BYTES {
                error(
                    errors,
                    Code::RegionMade,
                    op.loc,
                    format!("`{name}` ends at byte {end}: a program has {SHARED_BYTES} bytes of shared memory"),
                );
            }
            if bytes % parts != 0 {
                error(
                    errors,
                    Code::RegionMade,
                    op.loc,
                    format!("`{name}` has {bytes} bytes, which do not divide into {parts} equal parts"),
                );
            }
        }
        (OpKind::Region(RegionOp::At) | OpKind::Nv(NvOp::MbarrierAt), [of, index]) => {
            let (n, name) = (count_of(kernel, *of), kernel.display_name(*of));
            let (Some(n), picked) = (n, kernel.int_constant(*index)) else {
                let title = format!("`{name}` is an element already: it has no elements of its own");
                return error(errors, Code::RegionMade, op.loc, title);
            };
            if let Some(c) = picked.filter(|c| !(0..i64::from(n)).contains(c)) {
                errors.push(out_of_range(op.loc, &format!("`{name}`"), c, i64::from(n)));
            }
        }
        (_, _) => {}
    });
}

fn count_of(kernel: &Kernel, of: Value) -> Option<u32> {
    // Only regions and arrays of barriers have elements to select; others are rejected.
    let made = &kernel.def_op(of)?.kind;
    if let OpKind::Region(RegionOp::Place { parts: n, .. }) | OpKind::Nv(NvOp::MbarrierAlloc { n, .. }) = made {
        Some(*n)
    } else {
        None
    }
}

/// The words of the barriers of an `alloc`.
struct Words {
    name: String,
    loc: Loc,
    first: u64,
    end: u64,
    region: Value,
}

/// Checks rule 47: a barrier has 8 bytes of its own, aligned.
pub(in crate::verify) fn words(kernel: &Kernel, errors: &mut Vec<Error>) {
    let mut all: Vec<Words> = Vec::new();
    kernel.walk(&mut |_, op| {
        let (OpKind::Nv(NvOp::MbarrierAlloc { at, n }), [region]) = (&op.kind, &op.args[..]) else { return };
        let name = kernel.display_name(op.results[0]);
        let Some((offset, bytes, _)) = placed(kernel, *region) else {
            return error(
                errors,
                Code::BarrierWord,
                op.loc,
                format!("`{name}` lies in an element of a region: name the region itself"),
            );
        };
        let (first, end) = (offset + u64::from(*at), offset + u64::from(*at) + WORD * u64::from(*n));
        if first % WORD != 0 {
            error(
                errors,
                Code::BarrierWord,
                op.loc,
                format!("`{name}` begins at byte {first}, which is not a multiple of {WORD}"),
            );
        }
        if end > offset + bytes {
            let region = kernel.display_name(*region);
            error(
                errors,
                Code::BarrierWord,
                op.loc,
                format!("`{name}` ends at byte {end}, but its region `{region}` ends at byte {}", offset + bytes),
            );
        }
        all.push(Words { name, loc: op.loc, first, end, region: *region });
    });
    for (i, one) in all.iter().enumerate() {
        if let Some(other) = all[..i].iter().find(|o| o.first < one.end && one.first < o.end) {
            let title = format!("`{}` and `{}` overlap: each barrier has a word of its own", other.name, one.name);
            errors.push(Error::new(Code::BarrierWord, one.loc, title).related(other.loc, "the other one"));
        }
    }
    let mut seen: Vec<Value> = Vec::new();
    kernel.walk(&mut |_, op| {
        if matches!(op.kind, OpKind::Nv(NvOp::MbarrierAlloc { .. }) | OpKind::Region(RegionOp::At)) {
            return;
        }
        let regions = op
            .args
            .iter()
            .filter(|v| kernel.ty(**v) == Ty::Barrier(BarrierTy::Region))
            .filter_map(|v| part(kernel, *v));
        for (_, _, region) in regions.collect::<Vec<_>>() {
            let Some((first, bytes, _)) = placed(kernel, region).filter(|_| !seen.contains(&region)) else { continue };
            if let Some(own) = all.iter().find(|w| w.region == region || w.first < first + bytes && first < w.end) {
                seen.push(region);
                let title = format!(
                    "`{}` accesses `{}`, in which the word of `{}` lies",
                    mnemonic(&op.kind),
                    kernel.display_name(region),
                    own.name
                );
                errors.push(Error::new(Code::BarrierWord, op.loc, title).related(own.loc, "the barrier"));
            }
        }
    });
}

/// Checks rule 49: copies fit their regions, read inputs, and write outputs that are exempt from the output rule.
fn copies(kernel: &Kernel, errors: &mut Vec<Error>) {
    kernel.walk(&mut |_, op| {
        let Stated::Copies { bytes, bulk } = op.kind.stated() else { return };
        let region = op.args.iter().copied().find(|v| kernel.ty(*v) == Ty::Barrier(BarrierTy::Region));
        let Some((offset, room, whole)) = region.and_then(|v| part(kernel, v)) else { return };
        let name = kernel.display_name(whole);
        if u64::from(bytes) > room {
            error(errors, Code::RegionMade, op.loc, format!("{bytes} bytes do not fit into the {room} bytes of `{name}`"));
        }
        // PTX ISA, "cp.async.bulk": sizes and addresses are multiples of 16.
        let whole_parts = placed(kernel, whole).is_none_or(|(_, all, parts)| all % parts.max(1) == 0);
        if bulk
            && whole_parts
            && (bytes % 16 != 0 || !offset.is_multiple_of(16) || !room.is_multiple_of(16) && region != Some(whole))
        {
            let title = format!(
                "a bulk copy of {bytes} bytes of `{name}`, at byte {offset}: sizes and addresses must be multiples of 16"
            );
            error(errors, Code::RegionMade, op.loc, title);
        }
        if let OpKind::Nv(NvOp::BulkLoad { multicast: 1.., .. }) = op.kind {
            let title = "the arrivals of a multicast copy at the barriers of other programs of the cluster could not be verified";
            errors.push(Error::new(Code::NotShown, op.loc, title).help("leave `multicast` out"));
        }
        tensor(kernel, op, matches!(op.kind, OpKind::Nv(NvOp::BulkStore { .. })), errors);
    });
}

fn tensor(kernel: &Kernel, op: &Op, stores: bool, errors: &mut Vec<Error>) {
    let Some(param) = op.args.first().and_then(|t| root(kernel, *t)) else { return };
    let name = kernel.display_name(kernel.param(param));
    if !stores && !is_input(kernel, param) {
        let title = format!("a copy from `{name}`, which the kernel may write while the copy is in flight");
        error(errors, Code::SourceWritten, op.loc, title);
    }
    let exempt = kernel.def_op(op.args[0]).is_some_and(|o| o.kind == OpKind::Shared);
    if stores && is_input(kernel, param) {
        error(errors, Code::StoreToInput, op.loc, format!("`{}` to `{name}`, which is an input", mnemonic(&op.kind)));
    } else if stores && !exempt {
        let title = format!("it is not known which part of `{name}` a bulk copy stores");
        errors.push(
            Error::new(Code::Overlap, op.loc, title).help(format!("`shared %{name}` takes it out of the output rule")),
        );
    }
}

/// Checks rule 53: a fence is between two different proxies.
fn fences(kernel: &Kernel, errors: &mut Vec<Error>) {
    kernel.walk(&mut |_, op| {
        if let OpKind::Ttg(TtgOp::Fence { from, to, .. }) = op.kind
            && from == to
        {
            let title = format!("a fence between the {from} proxy and itself orders nothing");
            errors.push(
                Error::new(Code::FencePointless, op.loc, title)
                    .help("name the proxy of the accesses before, and that of those after"),
            );
        }
    });
}

/// Checks rule 52: the tokens of a class are numbered in program order, role by role.
fn tokens(kernel: &Kernel, errors: &mut Vec<Error>) {
    for (_, block) in threads(kernel) {
        let mut next: SortedMap<crate::ir::Class, u32> = SortedMap::new();
        kernel.walk_block(block, &mut |_, op| {
            let Some(Ty::Barrier(BarrierTy::Vtok(class, n))) = op.results.first().map(|v| kernel.ty(*v)) else {
                return;
            };
            let wanted = next.entry(class).or_insert(0);
            if n != *wanted {
                let title = format!(
                    "the {} group of `{class}` in the text has number {n}: its number must be {wanted}",
                    ordinal(*wanted)
                );
                error(errors, Code::GroupOrder, op.loc, title);
            }
            *wanted += 1;
        });
    }
}

fn ordinal(n: u32) -> String {
    match n {
        0 => "first".to_owned(),
        1 => "second".to_owned(),
        2 => "third".to_owned(),
        n => format!("{}th", n + 1),
    }
}

/// Checks rule 50: before the roles start, barriers are only allocated and initialised, and elements only selected by constants.
fn outside(kernel: &Kernel, errors: &mut Vec<Error>) {
    if roles_op(kernel).is_none() {
        return;
    }
    let mut blocks: Vec<Block> = Vec::new();
    let mut report = |op: &Op| {
        let constant = op.args.get(1).is_none_or(|index| kernel.int_constant(*index).is_some());
        let makes = matches!(
            op.kind,
            OpKind::Region(RegionOp::Place { .. } | RegionOp::At)
                | OpKind::Nv(
                    NvOp::MbarrierAlloc { .. }
                        | NvOp::MbarrierAt
                        | NvOp::MbarrierInit { .. }
                        | NvOp::FenceMbarrierInit
                        | NvOp::Tcgen05(Tcgen05Op::Alloc { .. } | Tcgen05Op::Relinquish { .. })
                )
        ) && constant;
        if !makes && matches!(op.kind, OpKind::Region(_) | OpKind::Nv(_) | OpKind::Amd(_)) {
            let title = format!("the effect of `{}` before `ttg.roles` could not be verified", mnemonic(&op.kind));
            errors.push(Error::new(Code::NotShown, op.loc, title).help("move it into a role"));
        }
    };
    for id in beginning(kernel) {
        let op = kernel.op(*id);
        report(op);
        blocks.extend(&op.regions);
    }
    for block in blocks {
        kernel.walk_block(block, &mut |_, op| report(op));
    }
}
