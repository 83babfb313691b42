//! What a steady loop carries at a place: a value of the loop before, so many iterations ahead. The operation that computes what is passed on states
//! it; the caller compares the value at the head of the loop and in one iteration that is any number.
//!
//! Deliberately absent: steady loops of other kinds whose additional places pass on what was computed outside of the loop, which the rewriter does not
//! make.

use super::Check;
use super::labels::Label;
use crate::ir::{Def, Kernel, Op, OpId, Origin, Value};

impl Check<'_> {
    /// What the steady loop carries at a place, and how many iterations ahead: first what the loop before carries, then results of operations
    /// of the body, as the operation states that computes what is passed on. That it is true is checked.
    pub(super) fn meaning(
        &self,
        inside: &[Value],
        end: &Op,
        mut place: usize,
        carried: &[Value],
    ) -> Option<(Value, i32)> {
        let mut passed = 0;
        // Values that are only passed on from one place to another are as many iterations less ahead.
        // Passed from place to place: for `continue %b, %x` of `carry(%a, %b)`, a is b of the iteration before, which
        // is x of the one before that. Each round but the last moves to another place; if there is a circle of places,
        // the bound ends the loop and the kernel is refused.
        for _ in 0..=inside.len() {
            if let Some(value) = carried.get(place) {
                return (passed == 0).then_some((*value, 0));
            }
            let next = end.args.get(place)?;
            passed += 1;
            if let Some(from) = inside.iter().position(|v| v == next) {
                place = from;
                continue;
            }
            let Def::Result(id, result) = self.after.value(*next).def else { return None };
            // What is passed on at the end of iteration i belongs to iteration i + ahead, and is at the head of
            // iteration i + 1: one less ahead, for each place that it has passed.
            let Origin { op, ahead } = self.after.op(id).origin?;
            let value = self.before.ops.get(op.index())?.results.get(result)?;
            return Some((*value, i32::from(ahead) - passed));
        }
        None
    }

    /// What a peeled steady loop carries at a place, and how many iterations ahead. That it is true is checked.
    pub(super) fn meaning_apart(
        &self,
        inside: &[Value],
        (end, steady): (&Op, OpId),
        place: usize,
    ) -> Option<(Value, i32)> {
        let frame = self.frames.last()?;
        let entered = self.after.op(steady).args.get(3 + place).and_then(|v| self.new.get(v)).copied();
        let stated = self.stated_apart(inside, (end, steady), place, entered);
        // What is computed outside of the loop, or in none of its places, states nothing: it is what the loop before carries at a place
        // that begins with the same value and passes on the same, or a value of another place.
        let next = *end.args.get(place)?;
        let passes_the_same = |own: Value| {
            if inside.contains(&next) {
                frame.carried.contains(&own)
            } else {
                self.known(own) == self.new.get(&next).copied()
            }
        };
        let is_same = |place: &usize| {
            frame.initial.get(*place).copied() == entered
                && frame.next.get(*place).is_some_and(|own| passes_the_same(*own))
        };
        stated.or_else(|| Some((*frame.carried.get((0..frame.carried.len()).find(is_same)?)?, 0)))
    }

    /// The same, as the operation states that computes what is passed on; or its counter. The place is entered with a value of this label.
    fn stated_apart(
        &self,
        inside: &[Value],
        (end, steady): (&Op, OpId),
        place: usize,
        entered: Option<Label>,
    ) -> Option<(Value, i32)> {
        let frame = self.frames.last()?;
        let (mut at, mut passed) = (place, 0);
        // Values that are only passed on from one place to another are as many iterations less ahead. If there is a circle of
        // places, the bound ends the loop.
        for _ in 0..=inside.len() {
            let next = end.args.get(at)?;
            passed += 1;
            if let Some(from) = inside.iter().position(|v| v == next) {
                at = from;
                continue;
            }
            let counter = |kernel: &Kernel, looped: OpId| {
                let body = *kernel.op(looped).regions.first()?;
                kernel.block(body).args.first().copied()
            };
            let (mut value, mut ahead) = if counter(self.after, steady) == Some(*next) {
                // The counter of the steady loop is one iteration ahead.
                (counter(self.before, frame.looped)?, 1 - passed)
            } else {
                let Def::Result(id, result) = self.after.value(*next).def else { return None };
                let Origin { op, ahead } = self.after.op(id).origin?;
                (*self.before.ops.get(op.index())?.results.get(result)?, i32::from(ahead) - passed)
            };
            // The result of an iteration before this one is what the loop before carries for it. Of several places to which it
            // is passed on, that one which begins with the same value; if there are several of these, they are equal for ever.
            // This ends: each round is one iteration less before.
            while ahead < 0 {
                let places = || (0..frame.carried.len()).filter(|place| frame.next.get(*place) == Some(&value));
                let same = places().find(|place| frame.initial.get(*place).copied() == entered);
                value = *frame.carried.get(same.or_else(|| places().next())?)?;
                ahead += 1;
            }
            return Some((value, ahead));
        }
        None
    }
}
