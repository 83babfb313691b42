//! Rules 46, 47, 50, 52 and 53: the placement of regions, tiles and barriers, what comes before the roles, tokens and fences. Nothing here
//! depends on the order in which roles execute.

use crate::collections::SortedMap;
use crate::diag::Code;
use crate::ir::op_table::mnemonic;
use crate::ir::{BarrierTy, Block, Encoding, Kernel, Loc, NvOp, Op, OpKind, RegionOp, Tcgen05Op, TtgOp, Ty, Value};
use crate::verify::coexecution::barriers::index::out_of_range;
use crate::verify::roles::{beginning, roles_op, threads};
use crate::verify::{Error, SHARED_BYTES};

/// The size of an mbarrier in bytes, and its alignment (PTX ISA, "mbarrier").
const WORD: u64 = 8;

pub(super) fn error(errors: &mut Vec<Error>, code: Code, loc: Loc, title: impl Into<String>) {
    errors.push(Error::new(code, loc, title));
}

/// The placement of a region: its offset, its size in bytes, and its number of parts.
pub(super) fn placed(kernel: &Kernel, value: Value) -> Option<(u64, u64, u64)> {
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
pub(super) fn regions(kernel: &Kernel, errors: &mut Vec<Error>) {
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
        (OpKind::Region(RegionOp::Tile { offset, .. }), [of]) => tile(kernel, op, (*of, u64::from(*offset)), errors),
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

/// Checks that a tile is within its part of a region, and that it begins where its encoding repeats: addresses in it are computed from that
/// of its first byte, by a mask where it has a swizzle.
fn tile(kernel: &Kernel, op: &Op, (of, offset): (Value, u64), errors: &mut Vec<Error>) {
    let Some((first, room, region)) = part(kernel, of) else {
        let title = "a tile of something that is neither a region nor a part of one";
        return error(errors, Code::RegionMade, op.loc, title);
    };
    // Tiles without a place are refused elsewhere: the kernel is not laid out.
    let Some((tile, encoding)) = op.results.first().and_then(|v| Some((*v, kernel.encoding(*v)?))) else { return };
    let (name, whole) = (kernel.display_name(tile), kernel.display_name(region));
    let (end, is_part) = (offset + u64::from(encoding.bytes()), of != region);
    if end > room {
        let of = if is_part { "its part of" } else { "its region" };
        error(
            errors,
            Code::RegionMade,
            op.loc,
            format!("`{name}` ends at byte {end}, but {of} `{whole}` has {room} bytes"),
        );
    }
    let align = alignment(encoding);
    if !(first + offset).is_multiple_of(align) || is_part && !room.is_multiple_of(align) {
        let parts = if is_part { format!(", in parts of {room} bytes") } else { String::new() };
        let title =
            format!("`{name}` begins at byte {}{parts}: its address must be a multiple of {align}", first + offset);
        error(errors, Code::RegionMade, op.loc, title);
    }
}

/// The alignment of a tile in bytes. Rows that are not swizzled begin at multiples of 16 bytes, or are shorter.
fn alignment(encoding: &Encoding) -> u64 {
    let rows = 1u32 << encoding.pitch.trailing_zeros().min(4);
    u64::from(if encoding.align() > 16 { encoding.align() } else { rows })
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
pub(super) fn words(kernel: &Kernel, errors: &mut Vec<Error>) {
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

/// Checks rule 53: a fence is between two different proxies.
pub(super) fn fences(kernel: &Kernel, errors: &mut Vec<Error>) {
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
pub(super) fn tokens(kernel: &Kernel, errors: &mut Vec<Error>) {
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
pub(super) fn outside(kernel: &Kernel, errors: &mut Vec<Error>) {
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
