//! Checks that each output tile is stored or skipped on every path. rustc reports a tile that is stored twice, but accepts one that is
//! dropped, so that is reported here.

use super::{FnLower, Lowered, OwnVal, Val};
use crate::ast::Expr;
use proc_macro2::Span;
use titan_core::diag::{Code, Diagnostic};
use titan_core::ir::{OpKind, TtgOp, Unit, Value};

/// The state of an output tile.
#[derive(Debug, Clone)]
pub(super) struct OwnState {
    pub(super) name: String,
    pub(super) span: Span,
    /// The number of loops around its creation.
    pub(super) level: usize,
    pub(super) consumed: bool,
    /// The branch after which it is stored or skipped on one path only. If it is stored again later, rustc reports that.
    pub(super) partial: Option<Span>,
    /// An error has been reported.
    pub(super) reported: bool,
}

impl FnLower<'_, '_, '_> {
    /// A new output tile.
    pub(super) fn born(&mut self, span: Span) -> usize {
        let level = self.sh.depth;
        self.sh.owns.push(OwnState {
            name: "_".to_owned(),
            span,
            level,
            consumed: false,
            partial: None,
            reported: false,
        });
        self.sh.owns.len() - 1
    }

    /// Marks an output tile as stored or skipped.
    fn consume(&mut self, own: &OwnVal, span: Span) {
        let depth = self.sh.depth;
        let state = &mut self.sh.owns[own.id];
        if state.consumed || depth > state.level {
            // rustc reports the second use of a moved value.
            let title = format!("`{}` may be stored or skipped twice", state.name);
            self.sh.cx.error(Code::TokenReused, span, title);
            state.reported = true;
        }
        state.consumed = true;
    }

    pub(super) fn store_own(&mut self, own: &OwnVal, value: Value, span: Span) -> Lowered<Val> {
        self.consume(own, span);
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

    /// Checks that every tile created at a level deeper than loop `level` (0: the whole function) has been consumed before control flow
    /// leaves to that level.
    pub(super) fn owns_must_end(&mut self, level: usize, exit: Span) {
        self.owns_whole(level.max(1));
        for state in &mut self.sh.owns {
            if state.level >= level.max(1) && !state.consumed && !state.reported {
                state.reported = true;
                let title = format!("the output tile `{}` is neither stored nor skipped", state.name);
                let diag = Diagnostic::new(Code::TokenDropped, state.span, title)
                    .related(exit, "this is where it is dropped")
                    .help(format!("store it, or skip it by `{}.skip()`", state.name));
                self.sh.cx.push(diag);
            }
        }
    }

    /// The tiles that have been consumed so far, for comparing the arms of a branch.
    pub(super) fn owns_snapshot(&self) -> Vec<bool> {
        self.sh.owns.iter().map(|o| o.consumed).collect()
    }

    pub(super) fn owns_restore(&mut self, snapshot: &[bool]) {
        for (state, consumed) in self.sh.owns.iter_mut().zip(snapshot) {
            state.consumed = *consumed;
        }
    }

    /// After a branch of which both arms continue: a tile that is consumed in one must be consumed in the other.
    pub(super) fn owns_join(&mut self, then: &[bool], span: Span) {
        for (state, in_then) in self.sh.owns.iter_mut().zip(then) {
            if state.consumed != *in_then {
                state.partial = state.partial.or(Some(span));
            }
            state.consumed |= in_then;
        }
    }

    /// Checks that tiles created at this level or deeper were stored or skipped in both arms of every branch, or in none.
    fn owns_whole(&mut self, level: usize) {
        for state in self.sh.owns.iter_mut().filter(|s| s.level >= level && !s.reported) {
            let Some(span) = state.partial else { continue };
            state.reported = true;
            let title = format!("the output tile `{}` is stored or skipped in one arm only", state.name);
            let diag = Diagnostic::new(Code::TokenDropped, state.span, title)
                .related(span, "this `if`")
                .help(format!("store it in the other arm too, or skip it there by `{}.skip()`", state.name));
            self.sh.cx.push(diag);
        }
    }

    /// Forgets the tiles that were created inside a loop body.
    pub(super) fn owns_forget(&mut self, level: usize) {
        self.owns_whole(level + 1);
        for state in &mut self.sh.owns {
            if state.level > level {
                state.consumed = true;
            }
        }
    }
}
