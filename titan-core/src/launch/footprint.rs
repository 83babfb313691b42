//! Which bits of a memory a tensor covers, and whether two tensors share any.
//!
//! Intervals decide most cases. When they overlap, the question is whether Σ sᵢ·xᵢ has a value in common for the two boxes
//! of indices: solved exactly by taking the strides from the largest down, and answered with yes when that takes too long.

use crate::ir::Elem;

/// Axes that are told apart: those of more than one element.
const AXES: usize = 8;
/// How many steps the exact test takes before it gives up.
const PATIENCE: u32 = 512;
/// Sums of numbers below this one do not overflow.
const FAR: i128 = 1 << 110;

/// The bits that a tensor covers, counted in nibbles: the smallest elements have four bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The first nibble.
    lo: i128,
    /// One past the last nibble.
    hi: i128,
    /// Nibbles of an element.
    unit: i128,
    /// Positive stride in elements and extent, for the axes that move.
    axes: [(i64, i64); AXES],
    /// Whether the axes say which elements these are; otherwise only the interval is known.
    exact: bool,
}

impl Footprint {
    /// The footprint of the elements that extents and strides, both in elements, name from element `first` of a memory on.
    pub fn new(elem: Elem, first: i64, axes: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let unit = i128::from(elem.bits() / 4);
        let (mut least, mut most, mut exact, mut empty) = (i128::from(first), i128::from(first), true, false);
        let mut moving = [(0, 1); AXES];
        let mut free = moving.iter_mut();
        for (extent, stride) in axes {
            empty |= extent <= 0;
            if extent <= 1 || stride == 0 {
                continue;
            }
            let far = i128::from(stride) * (i128::from(extent) - 1);
            (least, most) = (least.saturating_add(far.min(0)), most.saturating_add(far.max(0)));
            match (free.next(), stride.checked_abs()) {
                (Some(slot), Some(stride)) => *slot = (stride, extent),
                (None, _) | (_, None) => exact = false,
            }
        }
        if empty {
            return Footprint { lo: 0, hi: 0, unit, axes: [(0, 1); AXES], exact: true };
        }
        exact &= least > -FAR / unit && most < FAR / unit;
        let (lo, hi) = (least.saturating_mul(unit), most.saturating_add(1).saturating_mul(unit));
        Footprint { lo, hi, unit, axes: moving, exact }
    }

    /// All of a memory of so many bytes.
    #[must_use]
    pub fn whole(bytes: usize) -> Self {
        Footprint::new(Elem::U8, 0, [(i64::try_from(bytes).unwrap_or(i64::MAX), 1)])
    }

    /// Whether there are no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.lo >= self.hi
    }

    /// The first element and the last, counted from the start of the memory.
    #[must_use]
    pub const fn elements(&self) -> (i128, i128) {
        (self.lo.div_euclid(self.unit), self.hi.div_euclid(self.unit) - 1)
    }

    /// The first byte and one past the last; `0..0` without elements. A byte of which only a nibble is covered belongs to it.
    #[must_use]
    pub const fn bytes(&self) -> std::ops::Range<i128> {
        self.lo.div_euclid(2)..self.hi.div_euclid(2) + self.hi.rem_euclid(2)
    }

    /// Whether some element belongs in part or whole to both, of tensors in one memory.
    #[must_use]
    pub fn overlaps(&self, other: &Footprint) -> bool {
        if self.is_empty() || other.is_empty() || self.hi <= other.lo || other.hi <= self.lo {
            return false;
        }
        if self == other || !(self.exact && other.exact) {
            return true;
        }
        // Σ s·x + u - Σ s·y - v = other.lo - self.lo for indices x and y and nibbles u and v inside of an element: one term per
        // stride, its range the difference of the index ranges.
        let mut terms: Vec<Term> = Vec::new();
        let mut add = |stride: i128, lo: i128, hi: i128| match terms.iter_mut().find(|t| t.stride == stride) {
            Some(term) => (term.lo, term.hi) = (term.lo + lo, term.hi + hi),
            None => terms.push(Term { stride, lo, hi }),
        };
        add(1, 1 - other.unit, self.unit - 1);
        for (stride, extent) in self.moving() {
            add(stride * self.unit, 0, extent - 1);
        }
        for (stride, extent) in other.moving() {
            add(stride * other.unit, 1 - extent, 0);
        }
        terms.sort_unstable_by_key(|t| std::cmp::Reverse(t.stride));
        solvable(&terms, other.lo - self.lo, &mut PATIENCE.clone())
    }

    /// Whether every byte of `other` lies in the interval of this one, which has no gaps.
    #[must_use]
    pub fn covers(&self, other: &Footprint) -> bool {
        self == other || other.is_empty() || (self.is_dense() && self.lo <= other.lo && other.hi <= self.hi)
    }

    fn moving(&self) -> impl Iterator<Item = (i128, i128)> {
        self.axes.iter().filter(|(stride, _)| *stride != 0).map(|(s, n)| (i128::from(*s), i128::from(*n)))
    }

    /// From the smallest stride up, each axis repeats a run without gaps at distances that leave none.
    fn is_dense(&self) -> bool {
        let mut axes: Vec<(i128, i128)> = self.moving().collect();
        axes.sort_unstable();
        let mut run = 1;
        self.exact
            && axes.into_iter().all(|(stride, extent)| {
                let joins = stride <= run;
                run += stride * (extent - 1);
                joins
            })
    }
}

/// `stride · k` with `lo ≤ k ≤ hi`.
struct Term {
    stride: i128,
    lo: i128,
    hi: i128,
}

/// Whether the terms, strides descending, can sum to `target`.
fn solvable(terms: &[Term], target: i128, patience: &mut u32) -> bool {
    let Some((first, rest)) = terms.split_first() else { return target == 0 };
    let least: i128 = rest.iter().map(|t| t.stride * t.lo).sum();
    let most: i128 = rest.iter().map(|t| t.stride * t.hi).sum();
    let up = i128::from((target - most).rem_euclid(first.stride) != 0);
    let from = first.lo.max((target - most).div_euclid(first.stride) + up);
    let to = first.hi.min((target - least).div_euclid(first.stride));
    (from..=to).any(|k| {
        *patience = patience.saturating_sub(1);
        *patience == 0 || solvable(rest, target - k * first.stride, patience)
    })
}

#[cfg(test)]
mod tests;
