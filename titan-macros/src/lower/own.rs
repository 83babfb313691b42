//! Checks that each output tile is stored or skipped once on every path. rustc accepts a tile that is dropped. One that is stored twice is
//! a moved value for it, but it would also point into the library.
//!
//! The state of a tile is followed along the paths as rustc follows moves: the state after a branch is that of the arms that reach it, the
//! state after a loop that of the exits from it. A loop is lowered once, so the state at the end of an iteration must be that at its start.
//!
//! Deliberately absent: exits from the loop over tiles itself, which leave out the tiles that come after; the verifier rejects these.

use super::{FnLower, Lowered, OwnVal, Val};
use crate::ast::Expr;
use proc_macro2::Span;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::{OpKind, TtgOp, Unit, Value};

/// Whether an output tile has been stored or skipped at a point of the program.
#[derive(Debug, Clone, Copy)]
pub(super) enum Used {
    /// On no path.
    No,
    /// On every path; the last place.
    Yes(Span),
    /// On some paths, which meet after this branch or loop.
    Partly { at: Span, by: Meeting },
}

/// Where paths meet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Meeting {
    Branch,
    Loop,
}

impl Used {
    /// Where the tile may have been stored or skipped, and in which words.
    const fn before(self) -> Option<(Span, &'static str)> {
        match self {
            Used::No => None,
            Used::Yes(first) => Some((first, "it is stored or skipped here")),
            Used::Partly { at, by: Meeting::Branch } => Some((at, "it is stored or skipped in one arm of this branch")),
            Used::Partly { at, by: Meeting::Loop } => {
                Some((at, "it is stored or skipped on some paths through this loop"))
            }
        }
    }

    /// The state where two paths meet.
    fn join(self, other: Used, at: Span, by: Meeting) -> Used {
        match (self, other) {
            (Used::No, Used::No) => Used::No,
            (Used::Yes(place), Used::Yes(_)) => Used::Yes(place),
            (partly @ Used::Partly { .. }, _) | (_, partly @ Used::Partly { .. }) => partly,
            (Used::No, Used::Yes(_)) | (Used::Yes(_), Used::No) => Used::Partly { at, by },
        }
    }
}

/// The state of an output tile.
#[derive(Debug, Clone)]
pub(super) struct OwnState {
    pub(super) name: String,
    pub(super) span: Span,
    /// The number of loops around its creation.
    pub(super) level: usize,
    used: Used,
    /// Its loop has been lowered completely.
    gone: bool,
    /// An error has been reported.
    reported: bool,
}

impl FnLower<'_, '_, '_> {
    /// A new output tile.
    pub(super) fn born(&mut self, span: Span) -> usize {
        let level = self.sh.depth;
        self.sh.owns.push(OwnState { name: "_".to_owned(), span, level, used: Used::No, gone: false, reported: false });
        self.sh.owns.len() - 1
    }

    /// Marks an output tile as stored or skipped.
    pub(super) fn consume(&mut self, own: &OwnVal, span: Span) {
        let state = &mut self.sh.owns[own.id];
        if let Some(before) = state.used.before() {
            let title = match state.used {
                Used::Yes(_) => format!("the output tile `{}` is stored or skipped a second time", state.name),
                Used::No | Used::Partly { .. } => {
                    format!("the output tile `{}` may have been stored or skipped before", state.name)
                }
            };
            self.used_again(
                own.id,
                span,
                title,
                before,
                "a tile is stored once: compute its value first, and store that",
            );
        } else {
            state.used = Used::Yes(span);
        }
    }

    /// Checks that an output tile that is read has not been stored or skipped.
    pub(super) fn read_own(&mut self, own: &OwnVal, span: Span) {
        let state = &self.sh.owns[own.id];
        if let Some(before) = state.used.before() {
            let title = format!("the output tile `{}` is used after it was stored or skipped", state.name);
            let help = format!("load what is needed before: `let v = {}.load();`", state.name);
            self.used_again(own.id, span, title, before, &help);
        }
    }

    /// Reports a tile that is used although it may have been stored or skipped before.
    fn used_again(&mut self, id: usize, span: Span, title: String, (place, what): (Span, &str), help: &str) {
        self.sh.owns[id].reported = true;
        self.sh.cx.push(Diagnostic::new(Code::TokenReused, span, title).related(place, what).help(help));
    }

    /// Stores a tile whose owner has been marked by [`FnLower::consume`].
    pub(super) fn store_own(&mut self, own: &OwnVal, value: Value, span: Span) -> Lowered<Val> {
        let mut args = vec![own.tensor];
        args.extend(&own.index);
        args.push(value);
        self.effect(span, OpKind::Store(Unit::Tile), &args)
    }

    /// Stores the tile from a staging slot.
    pub(super) fn store_own_from(&mut self, own: &OwnVal, written: &Expr, span: Span) -> Lowered<Val> {
        self.consume(own, span);
        let slot = self.expr(written)?;
        let mut args = vec![own.tensor];
        args.extend(&own.index);
        args.push(self.value(slot, written.span)?);
        self.op(span, OpKind::Ttg(TtgOp::StoreIssue(Unit::Tile)), &args).map(Val::Value)
    }

    pub(super) fn skip_own(&mut self, own: &OwnVal, span: Span) -> Val {
        self.consume(own, span);
        Val::Unit
    }

    /// Checks the output tiles where an iteration of the loop with this level ends: those of the loop, and of loops inside of it, have
    /// been stored or skipped on every path, and the others are as they were at the start of the iteration.
    pub(super) fn owns_end_iteration(&mut self, level: usize, exit: Span) {
        for id in 0..self.sh.owns.len() {
            let state = &self.sh.owns[id];
            if state.gone || state.reported {
                continue;
            }
            match (state.level > level, state.used) {
                (true, Used::No) => self.dropped(id, exit),
                (true, Used::Partly { at, by }) => self.partly_used(id, at, by),
                (true, Used::Yes(_)) | (false, Used::No) => {}
                (false, Used::Yes(place) | Used::Partly { at: place, .. }) => {
                    if let Some(entry) = self.loop_at(level).and_then(|l| l.entry.get(id))
                        && matches!(entry, Used::No)
                    {
                        let state = &self.sh.owns[id];
                        let title = format!(
                            "the output tile `{}` comes from outside of a loop, whose next iteration would store or skip it again",
                            state.name
                        );
                        let created = state.span;
                        let help = "store it after the loop, or loop over the tiles";
                        self.used_again(id, place, title, (created, "it is created here"), help);
                    }
                }
            }
        }
    }

    fn dropped(&mut self, id: usize, exit: Span) {
        let state = &mut self.sh.owns[id];
        state.reported = true;
        let title = format!("the output tile `{}` is neither stored nor skipped", state.name);
        let diag = Diagnostic::new(Code::TokenDropped, state.span, title)
            .related(exit, "this is where it is dropped")
            .help(format!("store it, or skip it by `{}.skip()`", state.name));
        self.sh.cx.push(diag);
    }

    fn partly_used(&mut self, id: usize, at: Span, by: Meeting) {
        let state = &mut self.sh.owns[id];
        state.reported = true;
        let name = &state.name;
        let (title, meeting, help) = match by {
            Meeting::Branch => (
                format!("the output tile `{name}` is stored or skipped in one arm only"),
                "this `if`",
                format!("store it in the other arm too, or skip it there by `{name}.skip()`"),
            ),
            Meeting::Loop => (
                format!("the output tile `{name}` is stored or skipped on some paths through a loop only"),
                "this loop may end without it",
                format!(
                    "store it after the loop, or before each `break`; a `for` or `while` also ends without a `break`"
                ),
            ),
        };
        let diag = Diagnostic::new(Code::TokenDropped, state.span, title).related(at, meeting).help(help);
        self.sh.cx.push(diag);
    }

    /// The states of all output tiles at this point.
    pub(super) fn owns_snapshot(&self) -> Vec<Used> {
        self.sh.owns.iter().map(|o| o.used).collect()
    }

    pub(super) fn owns_restore(&mut self, snapshot: &[Used]) {
        for (state, used) in self.sh.owns.iter_mut().zip(snapshot) {
            state.used = *used;
        }
    }

    /// The states where this path meets another one.
    pub(super) fn owns_join(&mut self, other: &[Used], at: Span, by: Meeting) {
        for (state, other) in self.sh.owns.iter_mut().zip(other) {
            state.used = state.used.join(*other, at, by);
        }
    }

    /// The states after a loop with this level, from those at its exits. There are none if nothing leaves the loop: what follows is
    /// unreachable.
    pub(super) fn owns_leave(&mut self, level: usize, exits: &[Vec<Used>], at: Span) {
        for state in self.sh.owns.iter_mut().filter(|state| state.level > level) {
            state.gone = true;
        }
        let Some((first, others)) = exits.split_first() else { return };
        self.owns_restore(first);
        others.iter().for_each(|exit| self.owns_join(exit, at, Meeting::Loop));
    }
}
