//! The bits of a memory that a tensor covers, and whether two tensors share any.
//!
//! Intervals decide most cases. If they overlap, the question is whether Σ sᵢ·xᵢ has a common value for the two boxes of indices. This is
//! solved exactly, with the strides in descending order; if that takes too many steps, the answer is yes.

use crate::ir::Elem;

/// The maximum number of axes that are distinguished, among those with more than one element.
const AXES: usize = 8;
/// The maximum number of steps of the exact test.
const PATIENCE: u32 = 512;
/// Sums of numbers below this limit do not overflow.
const FAR: i128 = 1 << 110;

/// The bits that a tensor covers, in units of 4 bits (nibbles), the size of the smallest elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The first nibble.
    lo: i128,
    /// One past the last nibble.
    hi: i128,
    /// The number of nibbles of an element.
    unit: i128,
    /// For each axis with more than one element, its positive stride in elements and its extent.
    axes: [(i64, i64); AXES],
    /// Whether the axes describe the elements exactly; otherwise only the interval is known.
    exact: bool,
}

impl Footprint {
    /// The footprint of the elements with these extents and strides, both in elements, from element `first` of a memory on.
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

    /// The footprint of a whole memory of this many bytes.
    #[must_use]
    pub fn whole(bytes: usize) -> Self {
        Footprint::new(Elem::U8, 0, [(i64::try_from(bytes).unwrap_or(i64::MAX), 1)])
    }

    /// Whether there are no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.lo >= self.hi
    }

    /// The range from the first to the last element, from the start of the memory.
    #[must_use]
    pub const fn elements(&self) -> (i128, i128) {
        (self.lo.div_euclid(self.unit), self.hi.div_euclid(self.unit) - 1)
    }

    /// The range from the first byte to the end; `0..0` without elements. A byte of which only one nibble is covered is included.
    #[must_use]
    pub const fn bytes(&self) -> std::ops::Range<i128> {
        self.lo.div_euclid(2)..self.hi.div_euclid(2) + self.hi.rem_euclid(2)
    }

    /// Whether an element of one overlaps an element of the other, partly or completely, if both tensors are in the same memory.
    #[must_use]
    pub fn overlaps(&self, other: &Footprint) -> bool {
        if self.is_empty() || other.is_empty() || self.hi <= other.lo || other.hi <= self.lo {
            return false;
        }
        if self == other || !(self.exact && other.exact) {
            return true;
        }
        // The first and the last nibble of a footprint are covered. One without gaps that contains either shares it.
        if self.has_an_end_of(other) && self.is_dense() || other.has_an_end_of(self) && other.is_dense() {
            return true;
        }
        // The equation is Σ s·x + u - Σ s·y - v = other.lo - self.lo, for indices x and y and nibbles u and v inside of an element. It has
        // one term for each stride, with the difference of the ranges of indices as its range.
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

    /// Whether every byte of `other` is in the interval of this footprint, and that has no gaps.
    #[must_use]
    pub fn covers(&self, other: &Footprint) -> bool {
        self == other || other.is_empty() || (self.is_dense() && self.lo <= other.lo && other.hi <= self.hi)
    }

    /// Whether the first or the last nibble of another footprint is in the interval of this one. Neither is empty.
    fn has_an_end_of(&self, other: &Footprint) -> bool {
        let interval = self.lo..self.hi;
        interval.contains(&other.lo) || interval.contains(&(other.hi - 1))
    }

    fn moving(&self) -> impl Iterator<Item = (i128, i128)> {
        self.axes.iter().filter(|(stride, _)| *stride != 0).map(|(s, n)| (i128::from(*s), i128::from(*n)))
    }

    /// Whether there are no gaps: in ascending order of strides, each axis repeats a range without gaps at distances that leave none.
    fn is_dense(&self) -> bool {
        // Axes that do not move are (0, 1), and change nothing.
        let mut axes = self.axes;
        axes.sort_unstable();
        let mut run = 1;
        self.exact
            && axes.into_iter().all(|(stride, extent)| {
                let joins = i128::from(stride) <= run;
                run += i128::from(stride) * i128::from(extent - 1);
                joins
            })
    }
}

/// The term `stride · k` with `lo ≤ k ≤ hi`.
struct Term {
    stride: i128,
    lo: i128,
    hi: i128,
}

/// Whether the sum of the terms, in descending order of strides, can be `target`.
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
