//! Rules 36 to 40: tokens are consumed once on every path, and borrows of stages end before the stages are released.
//!
//! The walk follows every path of a block with its live tokens. At joins the arms must agree; at the end of a loop body the tokens of
//! its head must be live again. An MMA in flight borrows the stages of its operands; carried MMAs borrow carried stages, so the walk
//! repeats a body until the borrows no longer change.

mod state;

use self::state::{State, borrow_of, rename};
use super::{named, ring_of};
use crate::collections::{SortedMap, SortedSet};
use crate::diag::Code;
use crate::ir::{Block, Family, Fill, Flow, Kernel, Loc, Op, OpId, OpKind, Pipe, Token, TtgOp, Ty, UnOp, Use, Value};
use crate::verify::{Error, defect};

/// Violations of rules 36 to 40.
pub(in crate::verify) fn check(kernel: &Kernel) -> Vec<Error> {
    let mut poison = SortedSet::new();
    kernel.walk(&mut |_, op| {
        let may = matches!(
            op.kind,
            OpKind::Ttg(TtgOp::Fill(Fill::Poison) | TtgOp::AsyncProduce { skipped: Some(Fill::Poison), .. })
        );
        poison.extend(op.args.first().filter(|_| may).and_then(|slot| ring_of(kernel, *slot)));
    });
    let mut walk = Walk {
        kernel,
        poison,
        loops: Vec::new(),
        errors: Vec::new(),
        reported: SortedSet::new(),
        not_there: SortedSet::new(),
        one_path: SortedMap::new(),
    };
    walk.block(kernel.body, State::default());
    for (token, error) in std::mem::take(&mut walk.one_path) {
        walk.report(token, error);
    }
    walk.errors
}

struct Loop {
    /// The tokens at the head of the loop, without the carried ones.
    head: SortedMap<Value, Option<Loc>>,
    exits: Vec<State>,
    /// The borrows of carried MMAs, as found at the ends of the body.
    carried: SortedMap<Value, SortedSet<Value>>,
    args: Vec<Value>,
}

struct Walk<'a> {
    kernel: &'a Kernel,
    /// The rings whose stages may be poisoned.
    poison: SortedSet<Pipe>,
    loops: Vec<Loop>,
    errors: Vec<Error>,
    /// The tokens for which an error has been reported.
    reported: SortedSet<Value>,
    /// What a second use of a token gives, and what follows from that: without the second use it is not there, so it is not lost either.
    not_there: SortedSet<Value>,
    /// The errors of tokens that are used on one path only. If such a token is used after the paths join, the mistake is that second use:
    /// a use on the other path would not correct it.
    one_path: SortedMap<Value, Error>,
}

impl Walk<'_> {
    fn report(&mut self, value: Value, error: Error) {
        if self.reported.insert(value) {
            self.errors.push(error);
        }
    }

    /// The location of the operation that defines a value.
    fn born(&self, value: Value) -> Loc {
        self.kernel.def_op(value).map_or_else(Loc::default, |op| op.loc)
    }

    /// Walks a block; returns the state at its `yield`, or at the end of a role.
    fn block(&mut self, block: Block, mut state: State) -> Option<State> {
        for arg in &self.kernel.block(block).args {
            self.make(*arg, &mut state);
        }
        for id in self.kernel.block(block).ops.clone() {
            let op = self.kernel.op(id);
            if op.kind.is_terminator() {
                return self.leave(op, state);
            }
            state = self.op(id, op, state)?;
        }
        Some(state)
    }

    fn make(&self, value: Value, state: &mut State) {
        if self.kernel.ty(value).is_linear() {
            state.tokens.insert(value, None);
            state.level.insert(value, self.loops.len());
        }
    }

    fn op(&mut self, id: OpId, op: &Op, mut state: State) -> Option<State> {
        let mut state = match op.kind.family() {
            Family::Flow(Flow::If) => self.branch(op, state)?,
            Family::Flow(Flow::For(_) | Flow::Loop) => self.looped(op, state)?,
            Family::Ttg(TtgOp::Roles) => {
                for region in &op.regions {
                    if let Some(end) = self.block(*region, state.clone()) {
                        self.all_gone(&end, 0, op.loc);
                    }
                }
                state
            }
            // `TtgOp::uses` determines the use of tokens by operations on rings; operations of other dialects consume them.
            Family::Ttg(_)
            | Family::Data(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_)
            | Family::Flow(Flow::Yield | Flow::Break(_) | Flow::Continue(_) | Flow::Return) => {
                self.plain(id, op, &mut state);
                state
            }
        };
        for result in &op.results {
            self.make(*result, &mut state);
        }
        Some(state)
    }

    fn plain(&mut self, id: OpId, op: &Op, state: &mut State) {
        let again = op.args.iter().any(|v| matches!(state.tokens.get(v), Some(Some(_))));
        for arg in &op.args {
            if let (Ty::Smem(..), false) = (self.kernel.ty(*arg), again) {
                self.read(*arg, op, state);
            }
        }
        let how = if let OpKind::Ttg(t) = &op.kind { t.uses() } else { Use::Move };
        for (i, arg) in op.args.iter().enumerate() {
            if self.kernel.ty(*arg).is_linear() && !op.args[..i].contains(arg) {
                self.take(*arg, op, how, state);
            }
        }
        self.borrow(id, op, state);
        if again || op.args.iter().any(|v| self.not_there.contains(v)) {
            self.not_there.extend(&op.results);
        }
        if let OpKind::Ttg(TtgOp::Consumed) = op.kind {
            self.released(op.args[0], op, state);
        }
        if let (OpKind::Ttg(TtgOp::ReadPerm), [stage]) = (&op.kind, &op.args[..]) {
            self.sound(*stage, op, state);
        }
    }

    /// Borrows or consumes a token.
    fn take(&mut self, token: Value, op: &Op, how: Use, state: &mut State) {
        match state.tokens.get(&token) {
            Some(None) if how == Use::Move => {
                state.tokens.insert(token, Some(op.loc));
            }
            Some(None) | None => {}
            Some(Some(before)) => {
                let error = Error::new(
                    Code::TokenTwice,
                    op.loc,
                    format!("{} is used a second time", named(self.kernel, token)),
                );
                let error = error.related(*before, "it is used here first");
                self.report(token, error.help("every token of a pipeline is used once"));
            }
        }
    }

    /// Checks the read of a tile in shared memory: its stage must not have been released.
    fn read(&mut self, tile: Value, op: &Op, state: &State) {
        for stage in state.borrows.get(&tile).into_iter().flatten() {
            if let Some(Some(given)) = state.tokens.get(stage) {
                let title = format!("{} is read after it was released", named(self.kernel, *stage));
                let error = Error::new(Code::EarlyRelease, op.loc, title).related(*given, "it is released here");
                self.report(*stage, error.help("load what is needed later to registers first, with `.load()`"));
            }
        }
    }

    /// Updates the borrows after an operation.
    fn borrow(&mut self, id: OpId, op: &Op, state: &mut State) {
        let of = |state: &State, v: &Value| state.borrows.get(v).cloned().unwrap_or_default();
        match (&op.kind, &op.args[..]) {
            (OpKind::Ttg(TtgOp::View { .. }), [stage]) => {
                state.borrows.insert(op.results[0], SortedSet::from([*stage]));
            }
            (OpKind::Ttg(TtgOp::AccMma), [acc, own, a, b]) => {
                let mut stages: SortedSet<Value> =
                    of(state, acc).into_iter().chain(of(state, a)).chain(of(state, b)).collect();
                stages.remove(own);
                state.borrows.insert(op.results[0], stages);
            }
            (OpKind::Ttg(TtgOp::Split(_)), whole) => {
                state.parts.extend(op.results.iter().map(|part| (*part, id)));
                borrow_of(state, whole, &op.results);
            }
            (OpKind::Ttg(TtgOp::Join), parts) => self.join(op, parts, state),
            // A tile in shared memory, or an MMA in flight, borrows the stages of its operands.
            (_, args) => {
                let stages: SortedSet<Value> = args.iter().flat_map(|v| of(state, v)).collect();
                let borrows = |v: &&Value| matches!(self.kernel.ty(**v), Ty::Smem(..) | Ty::Compute(..) | Ty::Acc(..));
                state.borrows.extend(op.results.iter().filter(borrows).map(|v| (*v, stages.clone())));
            }
        }
    }

    /// Joins all parts of one split: a borrow of a part becomes a borrow of the whole.
    fn join(&mut self, op: &Op, parts: &[Value], state: &mut State) {
        let split = parts.first().and_then(|p| state.parts.get(p)).copied();
        let wanted = split.map_or(&[][..], |id| &self.kernel.op(id).results[..]);
        let mut sorted = [parts.to_vec(), wanted.to_vec()];
        sorted.iter_mut().for_each(|list| list.sort_unstable());
        if sorted[0] != sorted[1] {
            let foreign = parts.iter().any(|p| !wanted.contains(p));
            let title = if foreign {
                "parts of different stages are joined".to_owned()
            } else if parts.len() < wanted.len() {
                format!("only {} of the {} parts of a stage are joined", parts.len(), wanted.len())
            } else {
                "a part of a stage is joined twice".to_owned()
            };
            let error = Error::new(Code::ReadersApart, op.loc, title);
            let error = split.map_or(error.clone(), |id| error.related(self.kernel.op(id).loc, "it is split here"));
            self.report(op.results[0], error.help("join every part, once"));
            self.reported.extend(parts.iter().chain(wanted));
        }
        borrow_of(state, parts, &op.results);
    }

    /// Checks the release of a stage: no MMA in flight may read it.
    fn released(&mut self, stage: Value, op: &Op, state: &State) {
        let in_flight = state.tokens.iter().filter(|(_, used)| used.is_none()).map(|(token, _)| *token);
        let reader = in_flight
            .filter(|t| matches!(self.kernel.ty(*t), Ty::Compute(..) | Ty::Acc(..)))
            .find(|t| state.borrows.get(t).is_some_and(|b| b.contains(&stage)));
        if let Some(reader) = reader {
            let title = format!(
                "{} is released while {} still reads it",
                named(self.kernel, stage),
                named(self.kernel, reader)
            );
            let error = Error::new(Code::EarlyRelease, op.loc, title).related(self.born(reader), "it starts here");
            self.report(stage, error.help("`.wait()` for the MMA first, or let an `Acc` take the stage"));
        }
    }

    fn sound(&mut self, stage: Value, op: &Op, state: &State) {
        let may = ring_of(self.kernel, stage).filter(|p| self.poison.contains(p));
        if let (Some(pipe), false) = (may, state.sound.contains(&stage)) {
            let ring = self.kernel.pipe_name(pipe);
            let title = format!(
                "{} is read, but it may be poison: a copy to `{ring}` may be skipped",
                named(self.kernel, stage)
            );
            let error = Error::new(Code::PoisonRead, op.loc, title);
            self.report(
                stage,
                error.help("`if let Some(stage) = ready.wait_filled() { .. }`, or fill with zeros instead"),
            );
        }
    }

    /// The stage that is known not to be poisoned in an arm of a branch: the second arm of `if poisoned`, the first of `if !poisoned`.
    fn asked(&self, cond: Value) -> Option<(Value, usize)> {
        let op = self.kernel.def_op(cond)?;
        match (&op.kind, &op.args[..]) {
            (OpKind::Ttg(TtgOp::Poisoned), [stage]) => Some((*stage, 1)),
            (OpKind::Unary(UnOp::Not), [inner]) => self.asked(*inner).map(|(stage, arm)| (stage, 1 - arm)),
            (_, _) => None,
        }
    }

    fn branch(&mut self, op: &Op, state: State) -> Option<State> {
        let asked = self.asked(op.args[0]);
        let mut ends = Vec::new();
        for (arm, region) in op.regions.iter().enumerate() {
            let mut inside = state.clone();
            inside.sound.extend(asked.filter(|(_, sound)| *sound == arm).map(|(stage, _)| stage));
            if let Some(mut end) = self.block(*region, inside) {
                self.gone_but(&end, &state, op.loc);
                let given = self.kernel.block(*region).ops.last().map_or(&[][..], |id| &self.kernel.op(*id).args);
                rename(&mut end, given, &op.results);
                ends.push(end);
            }
        }
        self.join_paths(ends, &state, op.loc)
    }

    /// Checks that tokens that a region creates are consumed at its end.
    fn gone_but(&mut self, end: &State, before: &State, exit: Loc) {
        for (token, used) in &end.tokens {
            if used.is_none() && !before.tokens.contains_key(token) {
                self.lost(*token, exit);
            }
        }
    }

    /// At a join, all paths must agree on the tokens that were live before.
    fn join_paths(&mut self, ends: Vec<State>, before: &State, loc: Loc) -> Option<State> {
        let mut ends = ends.into_iter();
        let mut joined = ends.next()?;
        for end in ends {
            for token in before.tokens.keys() {
                let (a, b) = (joined.tokens.get(token).copied().flatten(), end.tokens.get(token).copied().flatten());
                if a.is_some() != b.is_some() && !self.not_there.contains(token) {
                    let title = format!("{} is used on one path only", named(self.kernel, *token));
                    let error = Error::new(Code::TokenLost, self.born(*token), title).related(loc, "of this branch");
                    let error = error.related(a.or(b).unwrap_or_default(), "it is used here");
                    self.one_path.entry(*token).or_insert(error.help("use it on the other path too"));
                }
                joined.tokens.insert(*token, a.or(b));
            }
            for (value, stages) in end.borrows {
                joined.borrows.entry(value).or_default().extend(stages);
            }
            joined.sound.retain(|s| end.sound.contains(s));
        }
        joined.tokens.retain(|t, _| before.tokens.contains_key(t));
        Some(joined)
    }

    fn looped(&mut self, op: &Op, mut state: State) -> Option<State> {
        let bounds = if op.kind == OpKind::Loop { 0 } else { 3 };
        let skip = usize::from(bounds > 0);
        let init = op.args.get(bounds..).unwrap_or_default().to_vec();
        let Some(body) = op.regions.first().copied() else { return Some(state) };
        let args: Vec<Value> = self.kernel.block(body).args.iter().skip(skip).copied().collect();
        for value in &init {
            if self.kernel.ty(*value).is_linear() {
                self.take(*value, op, Use::Move, &mut state);
            }
        }
        let mut inside = state.clone();
        rename(&mut inside, &init, &args);
        loop {
            let head = state.tokens.clone();
            self.loops.push(Loop { head, exits: Vec::new(), carried: SortedMap::new(), args: args.clone() });
            self.block(body, inside.clone());
            let done = self.loops.pop()?;
            let before = inside.borrows.clone();
            for (value, stages) in &done.carried {
                inside.borrows.entry(*value).or_default().extend(stages);
            }
            if inside.borrows != before {
                continue;
            }
            let mut ends = done.exits;
            for end in &mut ends {
                end.tokens.retain(|t, _| state.tokens.contains_key(t));
            }
            if op.kind != OpKind::Loop {
                // A `for` exits at its head.
                let mut end = inside.clone();
                rename(&mut end, &args, &op.results);
                end.tokens.retain(|t, _| state.tokens.contains_key(t));
                ends.push(end);
            }
            return self.join_paths(ends, &state, op.loc);
        }
    }

    /// Handles a terminator. It consumes the tokens that it passes on; no other tokens of the region may be live.
    fn leave(&mut self, op: &Op, mut state: State) -> Option<State> {
        for arg in &op.args {
            if self.kernel.ty(*arg).is_linear() {
                self.take(*arg, op, Use::Move, &mut state);
            }
        }
        match op.kind.family() {
            Family::Flow(Flow::Yield) => return Some(state),
            Family::Flow(Flow::Return) => self.all_gone(&state, 0, op.loc),
            Family::Flow(Flow::Break(n) | Flow::Continue(n)) => {
                let at = self.loops.len().checked_sub(1 + n as usize)?;
                self.all_gone(&state, at + 1, op.loc);
                self.end_of(at, op, state);
            }
            Family::Flow(Flow::For(_) | Flow::Loop | Flow::If)
            | Family::Data(_)
            | Family::Ttg(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => self.errors.push(defect(op.loc, "a block without a terminator")),
        }
        None
    }

    /// Handles the end of an iteration, or of a loop.
    fn end_of(&mut self, at: usize, op: &Op, mut state: State) {
        if let OpKind::Break(_) = op.kind {
            self.loops[at].exits.push(state);
            return;
        }
        for (token, before) in self.loops[at].head.clone() {
            if let (None, Some(Some(used))) = (before, state.tokens.get(&token)) {
                let title = format!(
                    "{} is created outside a loop and used in it: the next iteration would use it a second time",
                    named(self.kernel, token)
                );
                let error = Error::new(Code::TokenTwice, *used, title).related(self.born(token), "it is created here");
                self.report(token, error);
            }
        }
        let args = self.loops[at].args.clone();
        rename(&mut state, &op.args, &args);
        for arg in args {
            let stages = state.borrows.get(&arg).cloned().unwrap_or_default();
            self.loops[at].carried.entry(arg).or_default().extend(stages);
        }
    }

    /// Reports tokens that were created inside loop number `level` and are still live.
    fn all_gone(&mut self, state: &State, level: usize, exit: Loc) {
        for (token, used) in &state.tokens {
            if used.is_none() && state.level.get(token).copied().unwrap_or(0) >= level {
                self.lost(*token, exit);
            }
        }
    }

    fn lost(&mut self, token: Value, exit: Loc) {
        if self.not_there.contains(&token) {
            return;
        }
        let kernel = self.kernel;
        let name = named(kernel, token);
        let (code, what, help) = match kernel.ty(token) {
            Ty::Token(Token::Slot, _) => (
                Code::TokenLost,
                "is never filled, so its readers wait forever",
                "`.copy(..).commit()`, or `.zero().commit()`: a copy without `.commit()` is not made",
            ),
            Ty::Token(Token::Ready, _) => (Code::TokenLost, "is never completed", "`.wait()` for it, and release it"),
            Ty::Token(Token::Part, _) => {
                (Code::ReadersApart, "is never joined, so the stage cannot be released", "`Stage::join([..])`")
            }
            Ty::Token(Token::Written, _) => (Code::TokenLost, "is never stored", "`.store(&mut c, [..])`"),
            Ty::Token(Token::Store, _) => {
                (Code::TokenLost, "is never waited for, so its slot is never free again", "`.wait()` for it")
            }
            Ty::Compute(..) => (Code::TokenLost, "is never waited for", "`.wait()` gives its result"),
            Ty::Acc(..) => (
                Code::TokenLost,
                "is never finished, so the stages that its MMAs read are never released",
                "`.finish()` gives its tile",
            ),
            Ty::Token(Token::Stage | Token::Rperm | Token::Consumed, _)
            | Ty::Scalar(_)
            | Ty::Tile(..)
            | Ty::Tensor(..)
            | Ty::Source(..)
            | Ty::Smem(..)
            | Ty::Barrier(_) => (
                Code::TokenLost,
                "is never released, so its slot is never free again",
                "`.release()` it, or let an `Acc` take it",
            ),
        };
        let mut error = Error::new(code, self.born(token), format!("{name} {what}"));
        if exit != Loc::default() && exit != self.born(token) {
            error = error.related(exit, "control leaves here");
        }
        self.report(token, error.help(help));
    }
}
