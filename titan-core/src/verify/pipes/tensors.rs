//! Rules 33 and 34: concurrent accesses of roles to outputs, and copies from them.

use crate::analysis::access::{Kind, Update, kind_of, update};
use crate::analysis::forms::is_input;
use crate::analysis::number::{root, tensor_of};
use crate::analysis::turns::{Turn, Turns, each_turn};
use crate::collections::{SortedMap, SortedSet};
use crate::diag::Code;
use crate::ir::op_table::mnemonic;
use crate::ir::{Kernel, Loc, LocalOp, Op, OpKind, TtgOp, Unit, Value};
use crate::verify::Error;
use crate::verify::roles::threads;
use std::cell::LazyCell;

/// Violations of rule 33.
pub(super) fn check(kernel: &Kernel) -> Vec<Error> {
    let mut errors = Vec::new();
    outputs(kernel, &mut errors);
    errors
}

/// An access to an output: its role, its kind, its operation, and its turn.
#[derive(Clone)]
struct Touch {
    role: usize,
    kind: Kind,
    /// What an atomic update does.
    update: Option<Update>,
    name: &'static str,
    loc: Loc,
    turn: Option<Turn>,
}

impl Touch {
    /// Whether two accesses to one element must be ordered.
    fn conflicts(&self, other: &Touch) -> bool {
        conflict(self.kind, other.kind) || self.update != other.update
    }
}

/// Checks rule 33: an output that one role stores, scatters to or updates atomically is not accessed by another role, with two exceptions.
/// Several roles may scatter to it, or several may update it atomically by the same operation, since the results of these are defined: a sum
/// and a maximum of one element, on the other hand, depend on which comes first. And several roles may access it in turn, each in other
/// iterations of the loop over tiles, whose parts of the output are disjoint.
fn outputs(kernel: &Kernel, errors: &mut Vec<Error>) {
    let mut touches: SortedMap<usize, Vec<Touch>> = SortedMap::new();
    let threads = threads(kernel);
    // The analysis is created only for conflicts, which most kernels do not have.
    let turns = LazyCell::new(|| Turns::new(kernel));
    for (role, (_, block)) in threads.iter().enumerate() {
        each_turn(kernel, *block, &mut |id, turn| {
            let op = kernel.op(id);
            for (tensor, kind) in touched(kernel, op) {
                if let Some(param) = root(kernel, tensor).filter(|p| !is_input(kernel, *p)) {
                    let (update, turn) = (update(op), turn.cloned());
                    let name = mnemonic(&op.kind);
                    touches.entry(param).or_default().push(Touch { role, kind, update, name, loc: op.loc, turn });
                }
            }
        });
    }
    for (param, touches) in touches {
        let tensor = kernel.display_name(kernel.param(param));
        let mut told = SortedSet::new();
        let in_turn = |a: &Touch, b: &Touch| {
            let both = a.turn.as_ref().zip(b.turn.as_ref());
            both.is_some_and(|(a, b)| turns.exclude(a, b) && turns.divides(param))
        };
        for (i, new) in touches.iter().enumerate() {
            let old = touches[..i].iter().find(|old| old.role != new.role && old.conflicts(new) && !in_turn(old, new));
            let Some(old) = old.filter(|old| told.insert((old.role, new.role))) else { continue };
            let (first, second) = (&threads[old.role].0, &threads[new.role].0);
            let title = match (old.update, new.update) {
                (Some(_), Some(_)) => format!(
                    "`{tensor}` is updated by `{}` in {first} and by `{}` in {second}: nothing orders the two",
                    old.name, new.name
                ),
                (_, _) => {
                    let again = if old.kind == new.kind { "by" } else { done(new.kind) };
                    format!("`{tensor}` is {} {first} and {again} {second}: nothing orders the two", done(old.kind))
                }
            };
            let help = if (old.kind, new.kind) == (Kind::Write, Kind::Write) {
                "let one role store it, or split it into two outputs"
            } else {
                "do both in one role, or take two outputs"
            };
            let mut error =
                Error::new(Code::TwoWriters, new.loc, title).related(old.loc, "the other access").help(help);
            if old.turn.is_some() && new.turn.is_some() {
                error = error.help(
                    "or let the roles take tiles in turn: in different arms of the same `if`, or under conditions of the tile of which \
                     at most one holds, such as `i % 2 == 0` and `i % 2 == 1`",
                );
            }
            errors.push(error);
        }
    }
}

/// The tensors that an operation accesses itself, with the kind of access. Copies to rings and regions have a separate rule; a copy by threads
/// to a tile in shared memory is an ordinary read.
fn touched(kernel: &Kernel, op: &Op) -> Vec<(Value, Kind)> {
    let own = kind_of(&op.kind).filter(|kind| match kind {
        Kind::Read => !matches!(op.kind, OpKind::Ttg(_) | OpKind::Nv(_) | OpKind::Amd(_)),
        Kind::Write | Kind::Scatter | Kind::Atomic => true,
    });
    let copies = matches!(op.kind, OpKind::Local(LocalOp::Copy { .. } | LocalOp::Fetch { .. })).then_some(Kind::Read);
    let first = op.args.first().and_then(|named| tensor_of(kernel, *named)).zip(own.or(copies));
    let offsets = matches!(op.kind, OpKind::Segment | OpKind::RaggedCount { .. } | OpKind::RaggedTile { .. });
    let offsets = op.args.get(1).filter(|_| offsets).map(|off| (*off, Kind::Read));
    first.into_iter().chain(offsets).collect()
}

/// Whether accesses of two roles to one element must be ordered, apart from atomic updates by different operations.
const fn conflict(a: Kind, b: Kind) -> bool {
    match (a, b) {
        (Kind::Read, Kind::Read) | (Kind::Scatter, Kind::Scatter) | (Kind::Atomic, Kind::Atomic) => false,
        (Kind::Read, Kind::Write | Kind::Scatter | Kind::Atomic)
        | (Kind::Write, Kind::Read | Kind::Write | Kind::Scatter | Kind::Atomic)
        | (Kind::Scatter, Kind::Read | Kind::Write | Kind::Atomic)
        | (Kind::Atomic, Kind::Read | Kind::Write | Kind::Scatter) => true,
    }
}

/// The participle for an access of a role to an output.
const fn done(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "read by",
        Kind::Write => "stored by",
        Kind::Scatter => "scattered to by",
        Kind::Atomic => "updated atomically by",
    }
}

/// Violations of rule 34: no copy reads an output. It is checked together with the output rule, so that a copy from an output is not
/// explained as a part of the output that other programs write. An output to which nothing is stored is T0401.
pub(in crate::verify) fn sources(kernel: &Kernel) -> Vec<Error> {
    let (mut stored, mut errors) = (SortedSet::new(), Vec::new());
    kernel.walk(&mut |_, op| {
        if kind_of(&op.kind).is_some_and(|kind| kind != Kind::Read) {
            stored.extend(op.args.first().and_then(|t| root(kernel, *t)));
        }
    });
    kernel.walk(&mut |_, op| {
        let load = if let OpKind::Ttg(TtgOp::Source(unit, _)) = &op.kind {
            match unit {
                Unit::Tile => "load_tile",
                Unit::Elem => "load_at",
            }
        } else if let OpKind::Ttg(TtgOp::SourceRows { .. }) = &op.kind {
            "gather_rows"
        } else {
            return;
        };
        let source = op.args.first().and_then(|t| root(kernel, *t));
        if let Some(param) = source.filter(|p| !is_input(kernel, *p) && stored.contains(p)) {
            let tensor = kernel.display_name(kernel.param(param));
            let title =
                format!("a copy from `{tensor}`, which is an output: the kernel may write it while the copy is in flight");
            let place = if kernel.roles.is_empty() { "" } else { " in the role that stores it" };
            let error = Error::new(Code::SourceWritten, op.loc, title)
                .help("copy from an input: a parameter that is taken by `&`")
                .help(format!(
                    "or load `{tensor}`{place}: `{tensor}.{load}(..)` reads what the program has stored, or what was there before"
                ));
            errors.push(error);
        }
    });
    errors
}

/// The outputs that an operation writes, except by scatters and atomic updates, whose results are defined in any order.
pub(super) fn written(kernel: &Kernel, op: &Op) -> Vec<usize> {
    let output = |tensor: Value| root(kernel, tensor).filter(|param| !is_input(kernel, *param));
    let ordered = touched(kernel, op).into_iter().filter(|(_, kind)| conflict(*kind, *kind) || *kind == Kind::Read);
    ordered.filter_map(|(tensor, _)| output(tensor)).collect()
}
