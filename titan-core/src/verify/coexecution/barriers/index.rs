//! The element of an array that an index selects.
//!
//! It follows from the counter from which the index is computed: element `t mod n` of `n` belongs to time `t`. Where an element is
//! selected, its index must be proved in range; where it is used, its time must be known relative to the clock of the array.

use super::super::linear::Linear;
use super::super::run::{Fault, Run, defect};
use super::super::state::State;
use super::event::{At, refuse};
use super::objects::Named;
use crate::diag::Code;
use crate::verify::Error;

/// A constant index out of range.
pub(in crate::verify) fn out_of_range(at: crate::ir::Loc, name: &str, index: i64, n: i64) -> Error {
    let has = if n == 1 { "one element".to_owned() } else { format!("{n} elements") };
    Error::new(Code::RegionMade, at, format!("index {index} is out of range: {name} has {has}"))
}

/// The help for an index of `n` elements that is computed from a sum which may overflow `i32`.
fn wraps(n: impl std::fmt::Display) -> String {
    format!(
        "it is computed from a sum that may exceed 2147483647: bound the sum with `require(..)`, or carry the index and the parity in the loop, `s + 1 == {n} ? 0 : s + 1` and `p ^ (s + 1 == {n})`"
    )
}

impl Run<'_> {
    /// Checks that the index of a selected element is in range.
    pub(super) fn picked(&mut self, state: &mut State, at: At<'_>) -> Result<(), Fault> {
        let Some(result) = at.op.results.first() else { return defect(at.id, "a selection without a result") };
        let barrier = self.objects.barrier(*result).map(|b| (b, &self.objects.barriers[b.object]));
        let memory = self.objects.memory(*result).map(|m| (m, &self.objects.memories[m.object]));
        let found = barrier
            .map(|(b, own)| (b, (own.n, own.all), &own.name))
            .or(memory.map(|(m, own)| (m, (own.n, own.all), &own.name)));
        let Some((named, (n, all), name)) = found.map(|(named, n, name)| (named, n, name.clone())) else {
            return defect(at.id, "a selected element of no array");
        };
        // An element that is selected by constants only is a separate object; rule 46 has compared the constant with the number of
        // elements.
        let Some(index) = self.index(state, at.role, (named, n)) else { return Ok(()) };
        let number = index.clone();
        if let Some(c) = index.as_constant() {
            return if (0..n).contains(&c) { Ok(()) } else { refuse(out_of_range(at.op.loc, &name, c, all)) };
        }
        // A remainder of a number that is not negative is from 0 to by - 1.
        if self.symbols.cyclic(&index).is_some_and(|(_, by)| by <= n) {
            return Ok(());
        }
        // Neither a constant nor a remainder: then 0 ≤ index ≤ n - 1 must follow from what is known.
        let last = Linear::constant(n - 1).minus(&index);
        let holds = |l: Linear| state.facts.is_not_negative_within(&l, &|atom| self.symbols.range(atom));
        if holds(index) && holds(last) {
            return Ok(());
        }
        let range = if all == 1 { "is 0".to_owned() } else { format!("is from 0 to {}", all - 1) };
        let title = format!("it could not be shown that this index of {name} {range}");
        refuse(Error::new(Code::NotShown, at.op.loc, title).help(if all == 1 {
            "an array of one element needs no index: name the array itself".to_owned()
        } else if self.symbols.may_wrap(&number) {
            wraps(all)
        } else {
            format!("use `t % {all}` of a counter `t` that cannot be negative")
        }))
    }

    /// The index of an element in ascending order; `None` if it is not selected by an index.
    pub(super) fn index(&mut self, state: &mut State, role: usize, (named, n): (Named, i64)) -> Option<Linear> {
        let index = self.symbols.int(named.index?, &state.roles[role].env, &mut state.facts);
        // An array that is used from its end on is renumbered, so that times ascend in it as in all others.
        let index = if named.backwards { Linear::constant(n - 1).minus(&index) } else { index };
        let known = state.facts.resolved(&index);
        Some(if known.as_constant().is_some() { known } else { index })
    }

    /// The element that an index selects, relative to the clock of the array.
    pub(super) fn slot(
        &mut self,
        state: &mut State,
        at: At<'_>,
        (named, n): (Named, i64),
        (object, name): (usize, &str),
    ) -> Result<i64, Fault> {
        let Some(counter) = self.counter(state, at, (named, n), name)? else { return Ok(0) };
        // Which element it is, relative to the clock of the array: in an arbitrary round, neither number is known, but
        // their difference modulo n is.
        match state.facts.resolved(&counter.minus(&state.machine.origins[object])).residue(n) {
            Some(slot) => Ok(slot),
            None => refuse(self.not_shown(
                at,
                format!("this index cannot be related to earlier indices of {name}"),
                &counter,
            )),
        }
    }

    /// The counter `t` of an index `t mod n`.
    pub(super) fn counter(
        &mut self,
        state: &mut State,
        at: At<'_>,
        (named, n): (Named, i64),
        name: &str,
    ) -> Result<Option<Linear>, Fault> {
        let Some(index) = self.index(state, at.role, (named, n)) else { return Ok(None) };
        match (self.symbols.cyclic(&index), index.as_constant()) {
            (Some((counter, by)), _) if by == n => Ok(Some(counter)),
            (Some((_, by)), _) => refuse(self.not_shown(
                at,
                format!("this index of {name} repeats every {by} steps, but {n} of its elements are used"),
                &index,
            )),
            (None, Some(c)) if (0..n).contains(&c) => Ok(Some(index)),
            (None, Some(c)) => refuse(out_of_range(at.op.loc, name, c, n)),
            (None, None) => refuse(self.not_shown(
                at,
                format!(
                    "it could not be shown which element of {name} this is: the index is not known to be `t % {n}` of a counter `t`"
                ),
                &index,
            )),
        }
    }

    pub(super) fn not_shown(&self, at: At<'_>, title: String, number: &Linear) -> Error {
        let error = Error::new(Code::NotShown, at.op.loc, title);
        if self.symbols.may_wrap(number) {
            return error.help(wraps("n"));
        }
        error.help(
            "count the steps in one `i32`, `t`: with `n` elements, the index is `t % n` and the parity `(t / n) % 2`",
        )
    }

    pub(super) fn several(&self, at: At<'_>) -> Error {
        Error::new(Code::BarrierWord, at.op.loc, "this operation takes one barrier, not an array of them")
            .help("select one with `ttg.nv.mbarrier.at`")
    }
}
