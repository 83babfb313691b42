//! Rules 28 to 33, 35 and 62: declarations, the contents of stages, and the ends of roles. The roles that use a ring are in `sides`, accesses
//! of roles to tensors in `tensors`. Nothing here depends on the order of operations.

use super::{sides, tensors};
use crate::collections::SortedSet;
use crate::diag::{Code, counted};
use crate::ir::op_table::mnemonic;
use crate::ir::{
    Def, Field, Kernel, Loc, NvOp, Op, OpId, OpKind, Pipe, PipeDecl, PipeSpace, RegionOp, RoleDecl, TtgOp, Ty, Value,
};
use crate::verify::roles::roles_op;
use crate::verify::{Error, SHARED_BYTES};

/// The maximum number of warps of a program.
const MAX_WARPS: u32 = 32;

/// Violations of rules 28 to 33, 35 and 62.
pub(in crate::verify) fn check(kernel: &Kernel) -> Vec<Error> {
    let mut errors = Vec::new();
    roles(kernel, &mut errors);
    rings(kernel, &mut errors);
    if !errors.is_empty() {
        return errors;
    }
    contents(kernel, &mut errors);
    sides::check(kernel, &mut errors);
    values(kernel, &mut errors);
    errors.extend(tensors::check(kernel));
    memory(kernel, &mut errors);
    ends(kernel, &mut errors);
    errors
}

/// Violations of rules 28, 29, 32, 33 and 35, in a program whose rings are lowered to barriers.
pub(in crate::verify) fn declared(kernel: &Kernel) -> Vec<Error> {
    let mut errors = Vec::new();
    roles(kernel, &mut errors);
    rings(kernel, &mut errors);
    if errors.is_empty() {
        values(kernel, &mut errors);
        errors.extend(tensors::check(kernel));
        ends(kernel, &mut errors);
    }
    errors
}

/// Checks rule 28: there is one `ttg.roles`, at the top level, which ends the kernel.
fn roles(kernel: &Kernel, errors: &mut Vec<Error>) {
    let mut error = |loc: Loc, title: String| errors.push(Error::new(Code::RolesAttr, loc, title));
    let mut found: Vec<(OpId, Loc)> = Vec::new();
    kernel.walk(&mut |id, op| {
        if op.kind == OpKind::Ttg(TtgOp::Roles) {
            found.push((id, op.loc));
        }
    });
    let top = &kernel.block(kernel.body).ops;
    for (i, (id, loc)) in found.iter().enumerate() {
        let Some(at) = top.iter().position(|o| o == id) else {
            error(
                *loc,
                "the roles are split inside of a loop, branch or role: they are split once, for the whole kernel"
                    .to_owned(),
            );
            continue;
        };
        if i > 0 {
            error(*loc, "the roles are split a second time".to_owned());
        }
        // The programs of a cluster wait for each other when their roles have ended.
        let of_cluster = |op: &Op| {
            kernel.laid_out.is_some() && matches!(op.kind, OpKind::Nv(NvOp::ClusterArrive | NvOp::ClusterWait))
        };
        let ends = |op: &Op| op.kind == OpKind::Return || of_cluster(op);
        if let Some(after) = top[at + 1..].iter().map(|o| kernel.op(*o)).find(|o| !ends(o)) {
            error(after.loc, format!("`{}` after the roles: the kernel ends with them", mnemonic(&after.kind)));
        }
    }
    let loc = found.first().map_or(Loc::default(), |(_, loc)| *loc);
    if found.is_empty() && !kernel.roles.is_empty() {
        error(
            loc,
            format!(
                "the kernel declares {}, but its warps are never split into them",
                counted(kernel.roles.len(), "role")
            ),
        );
    }
    for (i, role) in kernel.roles.iter().enumerate() {
        if kernel.roles[..i].iter().any(|r| r.name == role.name) {
            error(loc, format!("two roles are called `{}`", role.name));
        }
        if role.warps == 0 {
            error(loc, format!("the role `{}` has no warps", role.name));
        }
        if !(1..=RoleDecl::MAX_INSTANCES).contains(&role.instances) {
            let most = RoleDecl::MAX_INSTANCES;
            error(loc, format!("the role `{}` has {} instances: 1 to {most} are possible", role.name, role.instances));
        }
    }
    let warps: u64 = kernel.roles.iter().map(|r| u64::from(r.warps) * u64::from(r.instances)).sum();
    if warps > u64::from(MAX_WARPS) {
        error(loc, format!("the roles have {warps} warps together: a program has at most {MAX_WARPS}"));
    }
}

/// Checks rule 29: rings have slots and contents, and operations refer to existing rings.
fn rings(kernel: &Kernel, errors: &mut Vec<Error>) {
    for (i, pipe) in kernel.pipes.iter().enumerate() {
        let name = kernel.pipe_name(Pipe::new(i));
        let mut error = |title: String| errors.push(Error::new(Code::RingMade, pipe.loc, title));
        if !(1..=PipeDecl::MAX_SLOTS).contains(&pipe.slots) {
            error(format!("`{name}` has {} slots: 1 to {} are possible", pipe.slots, PipeDecl::MAX_SLOTS));
        }
        if pipe.fields.is_empty() || pipe.fields.len() > PipeDecl::MAX_FIELDS {
            error(format!(
                "a stage of `{name}` holds {} tiles: 1 to {} are possible",
                pipe.fields.len(),
                PipeDecl::MAX_FIELDS
            ));
        }
        if let Some(problem) = pipe.fields.iter().find_map(|f| f.shape.problem()) {
            error(format!("a stage of `{name}`: {problem}"));
        }
        if pipe.bytes() > u64::from(u32::MAX) {
            error(format!("a stage of `{name}` has {} bytes", pipe.bytes()));
        }
    }
    let exists = |ty: Ty| if let Ty::Token(_, pipe) = ty { kernel.pipe(pipe).is_some() } else { true };
    if let Some(value) = kernel.values.iter().find(|v| !exists(v.ty)) {
        let loc = if let Def::Result(op, _) = value.def { kernel.op(op).loc } else { Loc::default() };
        errors.push(Error::new(Code::RingMade, loc, format!("`{}` names a ring that does not exist", value.ty)));
    }
}

/// Checks rule 62: the slots of all rings, and the regions that the program places itself, fit in shared memory. The barriers of rings are
/// not counted. A target may have less memory; a ring then has fewer slots there.
fn memory(kernel: &Kernel, errors: &mut Vec<Error>) {
    let regions = placed_bytes(kernel);
    let mut sum = regions;
    for (i, pipe) in kernel.pipes.iter().enumerate().filter(|(_, p)| p.space == PipeSpace::Shared) {
        let own = pipe.bytes().saturating_mul(pipe.slots.into());
        sum = sum.saturating_add(own);
        if sum <= SHARED_BYTES {
            continue;
        }
        let name = kernel.pipe_name(Pipe::new(i));
        let (slots, take) =
            if pipe.slots == 1 { ("one slot".to_owned(), "takes") } else { (format!("{} slots", pipe.slots), "take") };
        let all = match (i, regions) {
            (0, 0) => String::new(),
            (_, 0) => format!(", with the rings before it {sum}"),
            (0, _) => format!(", with the regions that are placed {sum}"),
            (_, _) => format!(", with the regions that are placed and the rings before it {sum}"),
        };
        let title = format!(
            "`{name}` does not fit into shared memory: {slots} of {} bytes {take} {own} bytes{all}, and a program has at most {SHARED_BYTES}",
            pipe.bytes()
        );
        return errors.push(Error::new(Code::RingMemory, pipe.loc, title).help(fewer_slots(kernel, i, regions)));
    }
}

/// The numbers of slots with which all rings fit, also those that are declared after `first`: fewer slots of `first`, if that is enough, else of
/// one other ring, else of several.
fn fewer_slots(kernel: &Kernel, first: usize, regions: u64) -> String {
    let shared = |p: &PipeDecl| p.space == PipeSpace::Shared;
    let mut rings: Vec<(usize, u64, u64)> = kernel
        .pipes
        .iter()
        .enumerate()
        .filter(|(_, p)| shared(p))
        .map(|(i, p)| (i, p.bytes().max(1), p.slots.into()))
        .collect();
    let name = |i: usize| kernel.pipe_name(Pipe::new(i));
    let sum = |rings: &[(usize, u64, u64)]| {
        rings.iter().fold(regions, |sum, (_, bytes, slots)| sum.saturating_add(bytes.saturating_mul(*slots)))
    };
    let all = sum(&rings);
    let alone = |(i, bytes, slots): &(usize, u64, u64)| {
        let fit = SHARED_BYTES.saturating_sub(all.saturating_sub(bytes.saturating_mul(*slots))) / bytes;
        (fit > 0).then(|| format!("give `{}` at most {fit} of its {slots} slots, or smaller tiles", name(*i)))
    };
    let own = rings.iter().find(|(i, ..)| *i == first).and_then(alone);
    if let Some(help) = own.or_else(|| rings.iter().find_map(alone)) {
        return help;
    }
    while sum(&rings) > SHARED_BYTES {
        let Some((_, _, slots)) = rings
            .iter_mut()
            .filter(|(_, _, slots)| *slots > 1)
            .max_by_key(|(_, bytes, slots)| bytes.saturating_mul(*slots))
        else {
            return "make tiles of the rings smaller, in `Smem<T, ..>`: fewer slots are not possible".to_owned();
        };
        *slots -= 1;
    }
    let fewer = rings.iter().filter(|(i, _, slots)| *slots < kernel.pipes[*i].slots.into());
    let fewer: Vec<String> = fewer
        .map(|(i, _, slots)| format!("`{}` at most {slots} of its {} slots", name(*i), kernel.pipes[*i].slots))
        .collect();
    match &fewer[..] {
        [others @ .., last] if !others.is_empty() => format!("give {} and {last}, or smaller tiles", others.join(", ")),
        fewer => format!("give {}, or smaller tiles", fewer.join(", ")),
    }
}

/// The number of bytes of shared memory that regions cover.
fn placed_bytes(kernel: &Kernel) -> u64 {
    let mut spans: Vec<(u64, u64)> = Vec::new();
    kernel.walk(&mut |_, op| {
        if let OpKind::Region(RegionOp::Place { offset, bytes, .. }) = op.kind {
            spans.push((offset.into(), u64::from(offset) + u64::from(bytes)));
        }
    });
    spans.sort_unstable();
    let (mut covered, mut end) = (0, 0);
    for (lo, hi) in spans {
        covered += hi.saturating_sub(lo.max(end));
        end = end.max(hi);
    }
    covered
}

/// Checks rule 30: copies, views and stores fit the stage.
fn contents(kernel: &Kernel, errors: &mut Vec<Error>) {
    kernel.walk(&mut |_, op| {
        let OpKind::Ttg(ttg) = &op.kind else { return };
        let token = op.args.iter().find_map(|v| kernel.ty(*v).ring());
        let Some((pipe, decl)) = token.and_then(|p| Some((p, kernel.pipe(p)?))) else { return };
        let found: Vec<Field> = match ttg {
            TtgOp::AsyncProduce { .. } | TtgOp::Write => op.args.iter().filter_map(|v| field(kernel.ty(*v))).collect(),
            TtgOp::View { field: at, elem, shape } => {
                return view((kernel, pipe, decl), op, usize::from(*at), Field { elem: *elem, shape: *shape }, errors);
            }
            TtgOp::StoreIssue(_) => return store((kernel, pipe, decl), op, errors),
            // These do not refer to a tile of the stage, or only by a view.
            TtgOp::Acquire(_)
            | TtgOp::Fill(_)
            | TtgOp::Ready(_)
            | TtgOp::WaitReady
            | TtgOp::Poisoned
            | TtgOp::ReadPerm
            | TtgOp::Split(_)
            | TtgOp::Join
            | TtgOp::Read
            | TtgOp::Consumed
            | TtgOp::Release
            | TtgOp::ComputeIssue
            | TtgOp::ComputeWait
            | TtgOp::AccStart(_)
            | TtgOp::AccMma
            | TtgOp::AccFinish
            | TtgOp::StoreWait => return,
            // These have no token operand.
            TtgOp::Source(..)
            | TtgOp::SourceRows { .. }
            | TtgOp::Roles
            | TtgOp::Finalize
            | TtgOp::Rematerialize
            | TtgOp::Claim(..)
            | TtgOp::Fence { .. } => return,
        };
        let ring = kernel.pipe_name(pipe);
        if found != decl.fields {
            let title =
                format!("a stage of `{ring}` holds {}, but is filled with {}", list(&decl.fields), list(&found));
            errors.push(Error::new(Code::StageContents, op.loc, title).related(decl.loc, "the ring"));
        } else if let TtgOp::AsyncProduce { bytes, .. } = ttg
            && u64::from(*bytes) != decl.bytes()
        {
            let less = if u64::from(*bytes) < decl.bytes() {
                "readers would not wait for the rest"
            } else {
                "readers would wait forever"
            };
            let title = format!("a stage of `{ring}` has {} bytes, but {bytes} are announced: {less}", decl.bytes());
            errors.push(Error::new(Code::StageContents, op.loc, title));
        }
    });
}

/// The field of a stage that a source or tile fills.
const fn field(ty: Ty) -> Option<Field> {
    match ty {
        Ty::Source(elem, shape) | Ty::Tile(elem, shape) => Some(Field { elem, shape }),
        Ty::Scalar(_)
        | Ty::Tensor(..)
        | Ty::Smem(..)
        | Ty::Compute(..)
        | Ty::Acc(..)
        | Ty::Token(..)
        | Ty::Barrier(_) => None,
    }
}

fn list(fields: &[Field]) -> String {
    let one = |f: &Field| format!("{}", Ty::Tile(f.elem, f.shape));
    fields.iter().map(one).collect::<Vec<_>>().join(" and ")
}

fn view((kernel, pipe, decl): (&Kernel, Pipe, &PipeDecl), op: &Op, at: usize, wanted: Field, errors: &mut Vec<Error>) {
    let ring = kernel.pipe_name(pipe);
    let title = match decl.fields.get(at) {
        None => format!("a stage of `{ring}` has {}, and no tile {at}", counted(decl.fields.len(), "tile")),
        Some(found) if *found != wanted => {
            format!("tile {at} of `{ring}` is {}, not {}", list(&[*found]), list(&[wanted]))
        }
        Some(_) => return,
    };
    errors.push(Error::new(Code::StageContents, op.loc, title).related(decl.loc, "the ring"));
}

fn store((kernel, pipe, decl): (&Kernel, Pipe, &PipeDecl), op: &Op, errors: &mut Vec<Error>) {
    let tensor = op.args.first().map(|t| kernel.ty(*t));
    let (Some(Ty::Tensor(elem, rank)), [field]) = (tensor, &decl.fields[..]) else {
        let title = format!(
            "a stage of `{}` holds {} tiles: one is stored at a time",
            kernel.pipe_name(pipe),
            decl.fields.len()
        );
        return errors.push(Error::new(Code::StageContents, op.loc, title));
    };
    if field.elem != elem || field.shape.rank() != usize::from(rank) {
        let title = format!(
            "a stage of `{}` holds {}, which a tensor of `{elem}` and rank {rank} does not take",
            kernel.pipe_name(pipe),
            list(&[*field])
        );
        errors.push(Error::new(Code::StageContents, op.loc, title));
    }
}

/// Checks rule 32: a role does not use a tile that all warps have computed, unless it is a function of scalars.
fn values(kernel: &Kernel, errors: &mut Vec<Error>) {
    let Some(specialized) = roles_op(kernel) else { return };
    let mut outside: SortedSet<Value> = SortedSet::new();
    for id in &kernel.block(kernel.body).ops {
        let op = kernel.op(*id);
        let made_anywhere = matches!(op.kind, OpKind::Splat(_) | OpKind::Iota(_));
        // Rows are selected by a tile of indices.
        let rows = matches!(op.kind, OpKind::Ttg(TtgOp::SourceRows { .. }));
        let of_all = |v: &&Value| rows || !made_anywhere && matches!(kernel.ty(**v), Ty::Tile(..));
        outside.extend(op.results.iter().filter(of_all));
    }
    let mut seen = SortedSet::new();
    for region in &kernel.op(specialized).regions {
        kernel.walk_block(*region, &mut |_, op| {
            for value in op.args.iter().filter(|v| outside.contains(v)) {
                if seen.insert(*value) {
                    let name = kernel.display_name(*value);
                    let what =
                        if matches!(kernel.ty(*value), Ty::Source(..)) { "names rows by a tile" } else { "is a tile" };
                    let title = format!(
                        "`{name}` {what} that all warps compute before the roles are split, and one role uses it"
                    );
                    let made = kernel.def_op(*value).map_or(Loc::default(), |o| o.loc);
                    let error = Error::new(Code::RoleValue, op.loc, title).related(made, "it is computed here");
                    errors.push(error.help("compute it in the role that uses it"));
                }
            }
        });
    }
}

/// Checks rule 35: roles end in `finalize`, which occurs nowhere else.
fn ends(kernel: &Kernel, errors: &mut Vec<Error>) {
    let Some(specialized) = roles_op(kernel) else { return };
    for (role, region) in kernel.roles.iter().zip(&kernel.op(specialized).regions) {
        let ops = &kernel.block(*region).ops;
        let last = ops.len().checked_sub(2).map(|i| kernel.op(ops[i]));
        if last.is_none_or(|op| op.kind != OpKind::Ttg(TtgOp::Finalize)) {
            let loc = ops.last().map_or(Loc::default(), |id| kernel.op(*id).loc);
            let title = format!(
                "the role `{}` does not end in `ttg.pipeline.finalize`: it may end with asynchronous work in flight",
                role.name
            );
            errors.push(Error::new(Code::NotFinalized, loc, title));
        }
        kernel.walk_block(*region, &mut |id, op| {
            let inner = op.kind == OpKind::Ttg(TtgOp::Finalize) && ops.len().checked_sub(2).map(|i| ops[i]) != Some(id);
            if inner || op.kind == OpKind::Return {
                let title = format!(
                    "`{}` in the middle of the role `{}`, which other roles wait for",
                    mnemonic(&op.kind),
                    role.name
                );
                errors.push(Error::new(Code::NotFinalized, op.loc, title));
            }
        });
    }
}
