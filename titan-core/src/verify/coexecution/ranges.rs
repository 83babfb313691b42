//! The ranges of loops: iteration counts and indices.

use super::key::{Arg, Key};
use super::linear::{Facts, Linear};
use super::values::Symbols;
use crate::ir::{ForKind, OpKind};

impl Symbols<'_> {
    /// The number of iterations of a range of this span.
    pub(in crate::verify) fn trips(&mut self, span: &Linear, step: i64, facts: &mut Facts) -> Linear {
        if step == 1 {
            return span.clone();
        }
        // ⌈span / step⌉ as a rounded-down quotient. The same span and step give the same atom in every role.
        match self.quotient(&span.plus_const(step - 1), step, facts) {
            Some(trips) => trips,
            None => self.dealt(ForKind::Sequential, [span, &Linear::default(), &Linear::constant(step)], facts),
        }
    }

    /// The index of an iteration of such a range.
    pub(in crate::verify) fn dealt_index(&mut self, kind: ForKind, range: &[Linear; 3], at: &Linear) -> Linear {
        if self.is_single(kind, range.each_ref()) && at.as_constant() == Some(0) {
            return range[0].clone();
        }
        let args = range.iter().chain([at]).map(|l| Arg::Int(l.clone())).collect();
        Linear::atom(self.intern(Key::Op(OpKind::For(kind), args)))
    }

    /// The number of iterations of a range as an unknown: equal ranges have equal numbers of iterations.
    pub(in crate::verify) fn dealt(&mut self, kind: ForKind, range: [&Linear; 3], facts: &mut Facts) -> Linear {
        if self.is_single(kind, range) {
            return Linear::constant(1);
        }
        let args = range.map(|l| Arg::Int(l.clone())).to_vec();
        self.extent(Key::Op(OpKind::For(kind), args), facts)
    }

    /// Whether a range that is distributed over programs has exactly one iteration in an example. Program 0 executes it, whose program id an
    /// example assumes. How many iterations a program executes of a longer range depends on the number of programs, and so on the device.
    fn is_single(&self, kind: ForKind, range: [&Linear; 3]) -> bool {
        let is_example = self.example.is_some() && kind == ForKind::Distributed;
        match range.map(Linear::as_constant) {
            [Some(lo), Some(hi), Some(step)] if is_example => hi > lo && hi.checked_sub(lo).is_some_and(|n| n <= step),
            [_, _, _] => false,
        }
    }
}
