//! Rule 31: the roles that fill and read each ring.

use crate::collections::SortedMap;
use crate::diag::Code;
use crate::ir::{Block, Kernel, Loc, Op, OpKind, Pipe, TtgOp, Ty, Value};
use crate::verify::Error;
use crate::verify::roles::{roles_op, threads};

/// The first operations of each role on a ring.
#[derive(Default)]
struct Sides {
    /// The first `acquire` of each role that fills.
    fill: SortedMap<usize, Loc>,
    /// The first `ready` of each role that reads.
    read: SortedMap<usize, Loc>,
    /// The first `write`, which makes it a staging ring.
    write: Option<Loc>,
    copy: Option<Loc>,
}

/// Checks rule 31: one role fills a ring, and at least one reads it; a staging ring is read by stores.
pub(super) fn check(kernel: &Kernel, errors: &mut Vec<Error>) {
    let threads = threads(kernel);
    let mut rings: Vec<Sides> = kernel.pipes.iter().map(|_| Sides::default()).collect();
    for (thread, (_, block)) in threads.iter().enumerate() {
        kernel.walk_block(*block, &mut |_, op| {
            let pipe =
                |token: Option<&Value>| if let Ty::Token(_, p) = kernel.ty(*token?) { Some(p.index()) } else { None };
            let OpKind::Ttg(ttg) = &op.kind else { return };
            match ttg {
                TtgOp::Acquire(p) => drop(rings[p.index()].fill.entry(thread).or_insert(op.loc)),
                TtgOp::Ready(p) => drop(rings[p.index()].read.entry(thread).or_insert(op.loc)),
                TtgOp::Write => pipe(op.args.first()).into_iter().for_each(|p| rings[p].write = Some(op.loc)),
                TtgOp::AsyncProduce { .. } | TtgOp::Fill(_) => {
                    pipe(op.args.first()).into_iter().for_each(|p| rings[p].copy = Some(op.loc));
                }
                // These operations follow one of those above, or use no ring.
                TtgOp::Source(..)
                | TtgOp::SourceRows { .. }
                | TtgOp::WaitReady
                | TtgOp::Poisoned
                | TtgOp::ReadPerm
                | TtgOp::Split(_)
                | TtgOp::Join
                | TtgOp::View { .. }
                | TtgOp::Read
                | TtgOp::Consumed
                | TtgOp::Release
                | TtgOp::ComputeIssue
                | TtgOp::ComputeWait
                | TtgOp::AccStart(_)
                | TtgOp::AccMma
                | TtgOp::AccFinish
                | TtgOp::StoreIssue(_)
                | TtgOp::StoreWait
                | TtgOp::Roles
                | TtgOp::Finalize
                | TtgOp::Rematerialize
                | TtgOp::Claim(..)
                | TtgOp::Fence { .. } => {}
            }
        });
    }
    let early = early(kernel);
    for (pipe, (what, loc)) in &early {
        let title = format!(
            "`{}` is {what} before the roles are split: a ring is filled and read by roles",
            kernel.pipe_name(*pipe)
        );
        let verb = if *what == "filled" { "fills" } else { "reads" };
        let help = format!("move it into the arm of the role that {verb} the ring");
        errors.push(Error::new(Code::WrongSide, *loc, title).help(help));
    }
    for (i, ring) in rings.iter().enumerate().filter(|(i, _)| !early.contains_key(&Pipe::new(*i))) {
        one_ring(kernel, Pipe::new(i), ring, &threads, errors);
    }
}

/// The rings that are filled or read before the warps are specialized into roles, each with the first such operation.
fn early(kernel: &Kernel) -> SortedMap<Pipe, (&'static str, Loc)> {
    let mut found = SortedMap::new();
    let Some(specialized) = roles_op(kernel) else { return found };
    let mut see = |op: &Op| {
        if let OpKind::Ttg(TtgOp::Acquire(pipe)) = op.kind {
            found.entry(pipe).or_insert(("filled", op.loc));
        } else if let OpKind::Ttg(TtgOp::Ready(pipe)) = op.kind {
            found.entry(pipe).or_insert(("read", op.loc));
        }
    };
    for id in kernel.block(kernel.body).ops.iter().take_while(|id| **id != specialized) {
        let op = kernel.op(*id);
        see(op);
        op.regions.iter().for_each(|region| kernel.walk_block(*region, &mut |_, inner| see(inner)));
    }
    found
}

fn one_ring(kernel: &Kernel, pipe: Pipe, ring: &Sides, threads: &[(String, Block)], errors: &mut Vec<Error>) {
    let (name, made) = (kernel.pipe_name(pipe), kernel.pipe(pipe).map_or(Loc::default(), |p| p.loc));
    let mut error = |loc: Loc, title: String, related: Option<(Loc, &str)>, help: String| {
        let error = Error::new(Code::WrongSide, loc, title).help(help);
        errors.push(related.map_or(error.clone(), |(at, what)| error.related(at, what)));
    };
    let mut fill = ring.fill.iter();
    let first = fill.next();
    if let (Some((a, at)), Some((b, loc))) = (first, fill.next()) {
        let title =
            format!("`{name}` is filled by {} and by {}: a ring is filled by one role", threads[*a].0, threads[*b].0);
        let help = format!("let one role fill `{name}`, or make a ring for each of the two");
        error(*loc, title, Some((*at, "the other one")), help);
    }
    let read = ring.read.iter().next();
    match (first, read, ring.write) {
        (None, None, _) => {
            error(made, format!("`{name}` is never filled and never read"), None, format!("remove `{name}`"));
        }
        (None, Some((_, loc)), _) => {
            let title = format!("`{name}` is never filled, so its readers wait forever");
            let help = format!("fill it as often as it is read: `{name}.acquire().copy(x.tile(..)).commit()`");
            error(*loc, title, Some((made, "the ring")), help);
        }
        (Some((_, loc)), None, None) => {
            let title = format!("`{name}` is never read, so its slots are never free again");
            let help =
                format!("read it as often as it is filled: `{name}.ready().wait()`, and `.release()` each stage");
            error(*loc, title, Some((made, "the ring")), help);
        }
        (Some(_), Some((_, loc)), Some(_)) => error(
            *loc,
            format!("`{name}` is a staging ring: its stages are stored, not read"),
            Some((made, "the ring")),
            "make a ring that is copied to, for what is read".to_owned(),
        ),
        (Some(_), Some(_), None) | (Some(_), None, Some(_)) => {}
    }
    if let (Some(copy), Some(write)) = (ring.copy, ring.write) {
        error(
            copy,
            format!("`{name}` is copied to and written: a ring is one or the other"),
            Some((write, "it is written here")),
            "make two rings, one that is copied to and one that is written".to_owned(),
        );
    }
}
