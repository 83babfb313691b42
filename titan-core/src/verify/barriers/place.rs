//! Rules 46 to 53: where regions and barriers lie, how barriers begin, and numbers that a program does not have. Nothing here
//! depends on the order of operations, but that barriers begin before all else.

#![expect(clippy::wildcard_enum_match_arm, reason = "only these dialects are named")]

use super::super::pipes::{roles_op, threads};
use crate::analysis::forms::is_input;
use crate::analysis::number::root;
use crate::diag::Code;
use crate::ir::op_table::mnemonic;
use crate::ir::{AmdOp, Block, Kernel, Loc, NvOp, Op, OpId, OpKind, Raw, RegionOp, TtgOp, Ty, Value};
use crate::verify::{Error, SHARED_BYTES};
use std::collections::BTreeMap;

/// Arrivals of an mbarrier (PTX ISA, "mbarrier.init").
const MAX_COUNT: u32 = (1 << 20) - 1;
/// Registers of a multiprocessor (CUDA programming guide, same table).
const REGISTERS: u64 = 65_536;
/// Warps of a warpgroup (PTX ISA, "wgmma").
const WARPGROUP: u32 = 4;
/// Bytes of an mbarrier, and its alignment (PTX ISA, "mbarrier").
const WORD: u64 = 8;

/// Breaks of rules 46 to 53.
pub(in crate::verify) fn check(kernel: &Kernel) -> Vec<Error> {
    let mut errors = Vec::new();
    fences(kernel, &mut errors);
    if !super::objects::any(kernel) {
        return errors;
    }
    regions(kernel, &mut errors);
    words(kernel, &mut errors);
    lives(kernel, &mut errors);
    copies(kernel, &mut errors);
    participants(kernel, &mut errors);
    tokens(kernel, &mut errors);
    outside(kernel, &mut errors);
    errors
}

fn error(errors: &mut Vec<Error>, code: Code, loc: Loc, title: impl Into<String>) {
    errors.push(Error::new(code, loc, title));
}

/// A region as it is placed: first byte, bytes, parts.
fn placed(kernel: &Kernel, value: Value) -> Option<(u64, u64, u64)> {
    match kernel.def_op(value)?.kind {
        OpKind::Region(RegionOp::Place { offset, bytes, parts }) => {
            Some((u64::from(offset), u64::from(bytes), u64::from(parts)))
        }
        _ => None,
    }
}

/// The bytes of a region or of one of its parts, and how many there are.
fn part(kernel: &Kernel, value: Value) -> Option<(u64, u64, Value)> {
    let op = kernel.def_op(value)?;
    if op.kind == OpKind::Region(RegionOp::At) {
        let (offset, bytes, parts) = placed(kernel, op.args[0])?;
        return Some((offset, bytes / parts.max(1), op.args[0]));
    }
    placed(kernel, value).map(|(offset, bytes, _)| (offset, bytes, value))
}

/// Rule 46: a region lies in shared memory, and has the parts that are picked.
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
                    format!("`{name}` has {bytes} bytes, which are not {parts} equal parts"),
                );
            }
        }
        (OpKind::Region(RegionOp::At) | OpKind::Nv(NvOp::MbarrierAt), [of, index]) => {
            let (n, name) = (count_of(kernel, *of), kernel.display_name(*of));
            let (Some(n), picked) = (n, kernel.int_constant(*index)) else {
                let title = format!("`{name}` is one of several already: a part of a part is not picked");
                return error(errors, Code::RegionMade, op.loc, title);
            };
            if let Some(c) = picked.filter(|c| !(0..i64::from(n)).contains(c)) {
                error(errors, Code::RegionMade, op.loc, format!("there is no `{name}[{c}]`: there are {n}"));
            }
        }
        (_, _) => {}
    });
}

fn count_of(kernel: &Kernel, of: Value) -> Option<u32> {
    match kernel.def_op(of)?.kind {
        OpKind::Region(RegionOp::Place { parts, .. }) => Some(parts),
        OpKind::Nv(NvOp::MbarrierAlloc { n, .. }) => Some(n),
        _ => None,
    }
}

/// Barriers of an `alloc`: their words.
struct Words {
    name: String,
    loc: Loc,
    first: u64,
    end: u64,
    region: Value,
}

/// Rule 47: a barrier has 8 bytes of its own, aligned.
fn words(kernel: &Kernel, errors: &mut Vec<Error>) {
    let mut all: Vec<Words> = Vec::new();
    kernel.walk(&mut |_, op| {
        let (OpKind::Nv(NvOp::MbarrierAlloc { at, n }), [region]) = (&op.kind, &op.args[..]) else { return };
        let name = kernel.display_name(op.results[0]);
        let Some((offset, bytes, _)) = placed(kernel, *region) else {
            return error(
                errors,
                Code::BarrierWord,
                op.loc,
                format!("`{name}` lies in a part of a region: name the region"),
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
                format!("`{name}` ends at byte {end}, but `{region}` at byte {}", offset + bytes),
            );
        }
        all.push(Words { name, loc: op.loc, first, end, region: *region });
    });
    for (i, one) in all.iter().enumerate() {
        if let Some(other) = all[..i].iter().find(|o| o.first < one.end && one.first < o.end) {
            let title = format!("`{}` and `{}` have a word together", other.name, one.name);
            errors.push(Error::new(Code::BarrierWord, one.loc, title).related(other.loc, "the other one"));
        }
    }
    let mut seen: Vec<Value> = Vec::new();
    kernel.walk(&mut |_, op| {
        if matches!(op.kind, OpKind::Nv(NvOp::MbarrierAlloc { .. }) | OpKind::Region(RegionOp::At)) {
            return;
        }
        let regions =
            op.args.iter().filter(|v| kernel.ty(**v) == Ty::Raw(Raw::Region)).filter_map(|v| part(kernel, *v));
        for (_, _, region) in regions.collect::<Vec<_>>() {
            let Some((first, bytes, _)) = placed(kernel, region).filter(|_| !seen.contains(&region)) else { continue };
            if let Some(own) = all.iter().find(|w| w.region == region || w.first < first + bytes && first < w.end) {
                seen.push(region);
                let title = format!(
                    "`{}` holds the word of `{}`, and `{}` touches it",
                    kernel.display_name(region),
                    own.name,
                    mnemonic(&op.kind)
                );
                errors.push(Error::new(Code::BarrierWord, op.loc, title).related(own.loc, "the barrier"));
            }
        }
    });
}

/// Where barriers begin: the operations before anything of a role.
fn beginning(kernel: &Kernel) -> &[OpId] {
    let top = &kernel.block(kernel.body).ops;
    let end = roles_op(kernel).and_then(|r| top.iter().position(|o| *o == r)).unwrap_or(top.len());
    &top[..end]
}

/// Rule 48: barriers are initialised once, before all else, and fenced.
fn lives(kernel: &Kernel, errors: &mut Vec<Error>) {
    let begin = beginning(kernel);
    let mut inits: BTreeMap<Value, Vec<(OpId, Loc)>> = BTreeMap::new();
    kernel.walk(&mut |id, op| {
        if let (OpKind::Nv(NvOp::MbarrierInit { count }), [alloc]) = (&op.kind, &op.args[..]) {
            if !(1..=MAX_COUNT).contains(count) {
                let name = kernel.display_name(*alloc);
                error(
                    errors,
                    Code::BarrierCount,
                    op.loc,
                    format!("`{name}` counts {count} arrivals: 1 to {MAX_COUNT} are possible"),
                );
            }
            inits.entry(*alloc).or_default().push((id, op.loc));
        }
    });
    kernel.walk(&mut |id, op| {
        if let (OpKind::Nv(NvOp::MbarrierAlloc { .. }), [alloc]) = (&op.kind, &op.results[..]) {
            one_life(kernel, (id, *alloc), inits.get(alloc).map_or(&[], Vec::as_slice), begin, errors);
        }
    });
}

fn one_life(
    kernel: &Kernel,
    (made, alloc): (OpId, Value),
    inits: &[(OpId, Loc)],
    begin: &[OpId],
    errors: &mut Vec<Error>,
) {
    let name = kernel.display_name(alloc);
    let loc = kernel.op(made).loc;
    let Some((init, at)) = inits.first() else {
        let title = format!("`{name}` is never initialised");
        errors.push(Error::new(Code::BarrierLife, loc, title).help("`ttg.nv.mbarrier.init`, before the roles part"));
        return;
    };
    if let Some((_, again)) = inits.get(1) {
        let title = format!("`{name}` is initialised a second time");
        errors.push(Error::new(Code::BarrierLife, *again, title).related(*at, "the first time"));
    }
    let Some(begins) = begin.iter().position(|o| o == init) else {
        let title = format!("`{name}` is initialised where others may use it already");
        errors.push(
            Error::new(Code::BarrierLife, *at, title)
                .help("initialise barriers before the roles part, outside of loops and branches"),
        );
        return;
    };
    let mine = Uses { kernel, alloc };
    if let Some(early) = begin[..begins].iter().find_map(|o| mine.first_in(*o)) {
        errors.push(
            Error::new(Code::BarrierLife, early, format!("`{name}` is used before it is initialised"))
                .related(*at, "it is initialised here"),
        );
        return;
    }
    let fence = begin[begins..].iter().position(|o| matches!(kernel.op(*o).kind, OpKind::Nv(NvOp::FenceMbarrierInit)));
    let used = begin[begins + 1..].iter().position(|o| mine.first_in(*o).is_some());
    let late = fence.is_none_or(|f| used.is_some_and(|u| u + 1 < f));
    if let Some(user) = mine.asynchronous().filter(|_| late) {
        let title =
            format!("`{name}` is used by bulk copies or other programs, which may not know that it is initialised");
        let error = Error::new(Code::BarrierLife, *at, title).related(user, "it is used here");
        errors.push(error.help("`ttg.nv.fence.mbarrier_init` after it"));
    }
}

/// Who uses the barriers of an `alloc`.
struct Uses<'k> {
    kernel: &'k Kernel,
    alloc: Value,
}

impl Uses<'_> {
    fn is_use(&self, op: &Op) -> bool {
        let own = |v: &Value| {
            *v == self.alloc
                || self
                    .kernel
                    .def_op(*v)
                    .is_some_and(|o| o.kind == OpKind::Nv(NvOp::MbarrierAt) && o.args[0] == self.alloc)
        };
        let names = matches!(op.kind, OpKind::Nv(NvOp::MbarrierAt | NvOp::MbarrierInit { .. }));
        !names && op.args.iter().any(own)
    }

    /// The first use in an operation or in the blocks inside.
    fn first_in(&self, id: OpId) -> Option<Loc> {
        let op = self.kernel.op(id);
        if self.is_use(op) {
            return Some(op.loc);
        }
        let mut found = None;
        for region in &op.regions {
            self.kernel.walk_block(*region, &mut |_, inner| {
                if found.is_none() && self.is_use(inner) {
                    found = Some(inner.loc);
                }
            });
        }
        found
    }

    /// A use through which hardware other than the program's threads arrives.
    fn asynchronous(&self) -> Option<Loc> {
        let mut found = None;
        let mut cluster = false;
        self.kernel.walk(&mut |_, op| {
            let bulk = matches!(op.kind, OpKind::Nv(NvOp::BulkLoad { .. }));
            cluster |= matches!(op.kind, OpKind::Nv(NvOp::ClusterArrive | NvOp::ClusterWait));
            if found.is_none() && bulk && self.is_use(op) {
                found = Some(op.loc);
            }
        });
        found.or_else(|| self.kernel.def_op(self.alloc).filter(|_| cluster).map(|o| o.loc))
    }
}

/// Rule 49: copies fit their regions, come from what does not change and go to what the output rule leaves open.
fn copies(kernel: &Kernel, errors: &mut Vec<Error>) {
    kernel.walk(&mut |_, op| {
        let (bytes, bulk) = match op.kind {
            OpKind::Nv(NvOp::BulkLoad { bytes, .. } | NvOp::BulkStore { bytes, .. }) => (bytes, true),
            OpKind::Nv(NvOp::CpAsync { bytes }) | OpKind::Amd(AmdOp::BufferLoadLds { bytes, .. }) => (bytes, false),
            _ => return,
        };
        let region = op.args.iter().copied().find(|v| kernel.ty(*v) == Ty::Raw(Raw::Region));
        let Some((offset, room, whole)) = region.and_then(|v| part(kernel, v)) else { return };
        let name = kernel.display_name(whole);
        if u64::from(bytes) > room {
            error(errors, Code::RegionMade, op.loc, format!("{bytes} bytes do not fit into {room} of `{name}`"));
        }
        // PTX ISA, "cp.async.bulk": size and addresses are multiples of 16.
        let whole_parts = placed(kernel, whole).is_none_or(|(_, all, parts)| all % parts.max(1) == 0);
        if bulk
            && whole_parts
            && (bytes % 16 != 0 || !offset.is_multiple_of(16) || !room.is_multiple_of(16) && region != Some(whole))
        {
            let title = format!(
                "a bulk copy of {bytes} bytes of `{name}`, at byte {offset}: sizes and places are multiples of 16"
            );
            error(errors, Code::RegionMade, op.loc, title);
        }
        if let OpKind::Nv(NvOp::BulkLoad { multicast: 1.., .. }) = op.kind {
            let title = "it cannot be shown what a copy to other programs of the cluster does to their barriers";
            errors.push(Error::new(Code::NotShown, op.loc, title).help("leave `multicast` out"));
        }
        tensor(kernel, op, matches!(op.kind, OpKind::Nv(NvOp::BulkStore { .. })), errors);
    });
}

fn tensor(kernel: &Kernel, op: &Op, stores: bool, errors: &mut Vec<Error>) {
    let Some(param) = op.args.first().and_then(|t| root(kernel, *t)) else { return };
    let name = kernel.display_name(kernel.param(param));
    if !stores && !is_input(kernel, param) {
        let title = format!("a copy from `{name}`, which the kernel may write while it is under way");
        error(errors, Code::SourceWritten, op.loc, title);
    }
    let exempt = kernel.def_op(op.args[0]).is_some_and(|o| o.kind == OpKind::Shared);
    if stores && is_input(kernel, param) {
        error(errors, Code::StoreToInput, op.loc, format!("`{}` to `{name}`, which is an input", mnemonic(&op.kind)));
    } else if stores && !exempt {
        let title = format!("which part of `{name}` a bulk copy stores is not known");
        errors.push(
            Error::new(Code::Overlap, op.loc, title).help(format!("`shared %{name}` takes it out of the output rule")),
        );
    }
}

/// Rule 51: threads, registers and numbers.
fn participants(kernel: &Kernel, errors: &mut Vec<Error>) {
    let mut named: BTreeMap<u8, (u32, Loc)> = BTreeMap::new();
    let wrong = |errors: &mut Vec<Error>, op: &Op, title: String| error(errors, Code::Participants, op.loc, title);
    kernel.walk(&mut |_, op| match op.kind {
        OpKind::Nv(NvOp::BarrierSync { id, threads } | NvOp::BarrierArrive { id, threads }) => {
            // PTX ISA, "bar": sixteen barriers, whole warps.
            let again = named.contains_key(&id);
            if id >= 16 && !again {
                wrong(errors, op, format!("there is no barrier {id}: a program has 0 to 15"));
            }
            if !again && (threads == 0 || threads % 32 != 0 || threads > 1024) {
                wrong(errors, op, format!("{threads} threads at barrier {id}: whole warps of 32, up to 1024"));
            }
            let (other, loc) = *named.entry(id).or_insert((threads, op.loc));
            if other != threads {
                let title = format!("{threads} threads come to barrier {id} here, and {other} elsewhere");
                errors.push(Error::new(Code::Participants, op.loc, title).related(loc, "the other place"));
            }
        }
        OpKind::Nv(NvOp::SetMaxNReg { registers }) if registers % 8 != 0 || !(24..=256).contains(&registers) => {
            // PTX ISA, "setmaxnreg".
            wrong(errors, op, format!("{registers} registers a thread: multiples of 8 from 24 to 256 are possible"));
        }
        OpKind::Amd(AmdOp::SetPrio { level }) if level > 3 => {
            wrong(errors, op, format!("there is no priority {level}: there are 0 to 3"))
        }
        _ => {}
    });
    warpgroups(kernel, errors);
    registers(kernel, errors);
}

/// What four warps do together is done by roles that have them (PTX ISA, "wgmma" and "setmaxnreg").
fn warpgroups(kernel: &Kernel, errors: &mut Vec<Error>) {
    for (role, (_, block)) in
        kernel.roles.iter().zip(threads(kernel)).filter(|(r, _)| !r.warps.is_multiple_of(WARPGROUP))
    {
        let mut first: Option<(&str, Loc)> = None;
        kernel.walk_block(block, &mut |_, op| {
            let together = matches!(op.kind, OpKind::Nv(NvOp::Wgmma | NvOp::SetMaxNReg { .. }));
            first = first.or(together.then(|| (mnemonic(&op.kind), op.loc)));
        });
        if let Some((name, loc)) = first {
            let title =
                format!("`{name}` is done by {WARPGROUP} warps together, and `{}` has {}", role.name, role.warps);
            errors.push(
                Error::new(Code::Participants, loc, title)
                    .help(format!("give the role a multiple of {WARPGROUP} warps")),
            );
        }
    }
}

/// Rule 53: a fence is between two proxies.
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

/// What all roles have at most is there.
fn registers(kernel: &Kernel, errors: &mut Vec<Error>) {
    let mut sum = 0;
    let mut last = None;
    for (role, (_, block)) in kernel.roles.iter().zip(threads(kernel)) {
        let mut most = None;
        kernel.walk_block(block, &mut |_, op| {
            if let OpKind::Nv(NvOp::SetMaxNReg { registers }) = op.kind {
                most = most.max(Some((registers, op.loc)));
            }
        });
        let Some((registers, loc)) = most else { return };
        sum += u64::from(registers) * u64::from(role.warps) * 32;
        last = Some(loc);
    }
    if let Some(loc) = last.filter(|_| sum > REGISTERS) {
        let title = format!("the roles have {sum} registers together: a multiprocessor has {REGISTERS}");
        error(errors, Code::Participants, loc, title);
    }
}

/// Rule 52: tokens of a class are numbered in the order of the text, role by role.
fn tokens(kernel: &Kernel, errors: &mut Vec<Error>) {
    for (_, block) in threads(kernel) {
        let mut next: BTreeMap<crate::ir::Class, u32> = BTreeMap::new();
        kernel.walk_block(block, &mut |_, op| {
            let Some(Ty::Raw(Raw::Vtok(class, n))) = op.results.first().map(|v| kernel.ty(*v)) else { return };
            let wanted = next.entry(class).or_insert(0);
            if n != *wanted {
                let title = format!("group number {n} of `{class}` is the {} in the text", ordinal(*wanted));
                error(errors, Code::GroupOrder, op.loc, format!("{title}: it has number {wanted}"));
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

/// Rule 50: before the roles part, barriers are made and nothing else happens to them.
fn outside(kernel: &Kernel, errors: &mut Vec<Error>) {
    if roles_op(kernel).is_none() {
        return;
    }
    let mut blocks: Vec<Block> = Vec::new();
    let mut report = |op: &Op| {
        let makes = matches!(
            op.kind,
            OpKind::Region(RegionOp::Place { .. } | RegionOp::At)
                | OpKind::Nv(
                    NvOp::MbarrierAlloc { .. } | NvOp::MbarrierAt | NvOp::MbarrierInit { .. } | NvOp::FenceMbarrierInit
                )
        );
        if !makes && matches!(op.kind, OpKind::Region(_) | OpKind::Nv(_) | OpKind::Amd(_)) {
            let title = format!("it cannot be shown what `{}` does before the roles part", mnemonic(&op.kind));
            errors.push(Error::new(Code::NotShown, op.loc, title).help("let a role do it"));
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
