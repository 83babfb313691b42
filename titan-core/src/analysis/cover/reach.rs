//! The indices along an axis of a tensor that the stores of all programs may write: an over-approximation, which is the same for all
//! arguments.
//!
//! A store begins at `Σ cᵢ·tᵢ + r` with `r` in a range, for terms `tᵢ` that differ between programs or depend on the arguments, and writes
//! a number of elements from there on. Whatever integers the terms are, `Σ cᵢ·tᵢ` is a multiple of the greatest common divisor of the
//! `cᵢ`; so every index that is written is congruent modulo this *step* to one in the range of `r`, extended by the elements of the store.
//! If the ranges of terms have a minimum or a maximum, so have the indices.
//!
//! Program indices, iterations and their parts have no maximum here, because a launch checks that there are enough programs, see
//! [`super::needs`].

use crate::analysis::access::AxisClaims;
use crate::analysis::affine::{I32, Term, TermRanges, greatest_divisor};

/// The maximum number of runs of indices that are looked at, in a search for an index that is not written.
const STEPS: usize = 4096;

/// The indices `lo ..= hi` plus multiples of `step`, from `least` to `most`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// The distance from one run of indices to the next; 0 if there is one run.
    pub(super) step: i64,
    /// The first index of a run.
    pub(super) lo: i64,
    /// The last index of the same run.
    pub(super) hi: i64,
    /// The minimum of all indices.
    pub(super) least: Option<i64>,
    /// The maximum of all indices.
    pub(super) most: Option<i64>,
}

impl Reach {
    /// The indices that an access may write along an axis; `None` if it may be any.
    ///
    /// A part of a tensor, such as a slice, states itself what is written, so nothing is claimed along its axis.
    pub(super) fn of(axis: &AxisClaims, ranges: &TermRanges) -> Option<Reach> {
        let (start, extent) = (axis.start.as_ref()?, axis.extent?);
        if axis.cut || extent < 1 {
            return None;
        }
        let (lo, hi) = (start.rest.lo, start.rest.hi.checked_add(extent - 1)?);
        let mut reach = Reach { step: 0, lo, hi, least: Some(lo), most: Some(hi) };
        for (term, by) in &start.terms {
            let (first, last) = bounds(*term, ranges)?;
            let (low, high) = if *by > 0 { (first, last) } else { (last, first) };
            let moved = |from: Option<i64>, to: Option<i64>| {
                to.and_then(|t| t.checked_mul(*by)).and_then(|t| from?.checked_add(t))
            };
            reach.least = moved(reach.least, low);
            reach.most = moved(reach.most, high);
            reach.step = greatest_divisor(reach.step, by.checked_abs()?);
        }
        Some(reach)
    }

    /// The number of indices of a run.
    pub(super) const fn span(&self) -> i64 {
        self.hi - self.lo + 1
    }

    /// The next index after another one that may be written.
    pub(super) fn next(&self, after: i64) -> Option<i64> {
        let first = after.checked_add(1)?.max(self.least.unwrap_or(i64::MIN));
        let at = if self.step == 0 || self.span() >= self.step {
            first
        } else {
            let in_step = first.checked_sub(self.lo)?.rem_euclid(self.step);
            if in_step < self.span() { first } else { first.checked_add(self.step - in_step)? }
        };
        self.most.is_none_or(|most| at <= most).then_some(at)
    }

    /// The last of the adjacent indices from `at` on that may be written; `None` if `at` is not written.
    pub(super) fn run(&self, at: i64) -> Option<i64> {
        if self.least.is_some_and(|least| at < least) || self.most.is_some_and(|most| at > most) {
            return None;
        }
        let most = self.most.unwrap_or(i64::MAX);
        if self.step == 0 || self.span() >= self.step {
            return Some(most);
        }
        let in_step = at.checked_sub(self.lo)?.rem_euclid(self.step);
        let left = (self.span() - 1).checked_sub(in_step)?;
        (left >= 0).then(|| at.saturating_add(left).min(most))
    }
}

/// The first index that is not negative and that none of these may write; `None` if none is found.
pub(super) fn gap(all: &[Reach]) -> Option<i64> {
    let mut at = 0_i64;
    for _ in 0..STEPS {
        match all.iter().filter_map(|r| r.run(at)).max() {
            None => return Some(at),
            Some(last) => at = last.checked_add(1).filter(|next| *next <= I32.hi)?,
        }
    }
    None
}

/// The minimum and the maximum of a term; `None` if nothing is known about it.
fn bounds(term: Term, ranges: &TermRanges) -> Option<(Option<i64>, Option<i64>)> {
    let known = ranges.get(&term).copied();
    match term {
        Term::Program(_) | Term::Work | Term::Part(..) => Some((known.map(|r| r.lo), None)),
        Term::Invariant(_) => Some((known.map(|r| r.lo), known.map(|r| r.hi))),
        Term::Clipped(_) => Some((Some(0), known.map(|r| r.hi))),
        Term::SegmentStart(_) => None,
    }
}
