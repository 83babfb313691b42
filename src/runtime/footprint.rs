//! Which bytes of a buffer a tensor covers, and whether two tensors share any.
//!
//! Intervals decide most cases. When they overlap, the question is whether Σ sᵢ·xᵢ has a value in common for the two boxes
//! of indices: solved exactly by taking the strides from the largest down, and answered with yes when that takes too long.

use super::layout::{Layout, MAX_RANK};

/// The bytes that a tensor covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footprint {
    /// The first byte.
    lo: i64,
    /// One past the last byte.
    hi: i64,
    /// Bytes of the smallest piece.
    unit: i64,
    /// Stride in units and extent, for the axes that move.
    axes: [(i64, i64); MAX_RANK],
}

/// How many steps the exact test takes before it gives up.
const PATIENCE: u32 = 512;

impl Footprint {
    /// The footprint of a layout. Extents and strides fit in `i64` because the tensor fits in memory.
    pub(crate) fn of<const R: usize>(layout: &Layout<R>) -> Self {
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        // Two packed elements are one unit; layouts of these are even but for the stride of the last axis.
        let per_unit = if layout.elem.bits() == 4 { 2 } else { 1 };
        let unit = number(layout.elem.bytes_for(per_unit));
        if layout.len() == 0 {
            return Footprint { lo: 0, hi: 0, unit, axes: [(0, 1); MAX_RANK] };
        }
        let first = number(layout.offset / per_unit) * unit;
        let mut axes = [(0, 1); MAX_RANK];
        let mut reach = 0;
        let moves = layout.strides.iter().zip(&layout.shape).enumerate();
        for (slot, (axis, (stride, extent))) in axes.iter_mut().zip(moves) {
            let (mut stride, mut extent) = (number(*stride), number(*extent));
            if per_unit == 2 {
                (stride, extent) = if axis + 1 == R { (1, extent / 2) } else { (stride / 2, extent) };
            }
            if extent > 1 && stride != 0 {
                *slot = (stride, extent);
                reach += stride * (extent - 1);
            }
        }
        Footprint { lo: first, hi: first + (reach + 1) * unit, unit, axes }
    }

    /// All of a buffer of so many bytes.
    pub(crate) fn whole(bytes: usize) -> Self {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let mut axes = [(0, 1); MAX_RANK];
        axes[0] = (1, bytes);
        Footprint { lo: 0, hi: bytes, unit: 1, axes }
    }

    /// Whether some byte belongs to both, of tensors in one buffer.
    pub(crate) fn overlaps(&self, other: &Footprint) -> bool {
        if self.lo >= self.hi || other.lo >= other.hi || self.hi <= other.lo || other.hi <= self.lo {
            return false;
        }
        let delta = other.lo - self.lo;
        if self.unit != other.unit || delta % self.unit != 0 {
            return true;
        }
        // Σ s·x - Σ s·y = delta: one term per stride, its range the difference of the index ranges.
        let mut terms: Vec<Term> = Vec::new();
        let both = self.axes.iter().map(|(s, n)| (*s, 0, n - 1)).chain(other.axes.iter().map(|(s, n)| (*s, 1 - n, 0)));
        for (stride, lo, hi) in both.filter(|(stride, ..)| *stride != 0) {
            match terms.iter_mut().find(|t| t.stride == stride) {
                Some(term) => (term.lo, term.hi) = (term.lo + lo, term.hi + hi),
                None => terms.push(Term { stride, lo, hi }),
            }
        }
        terms.sort_unstable_by_key(|t| std::cmp::Reverse(t.stride));
        solvable(&terms, delta / self.unit, &mut PATIENCE.clone())
    }

    /// Whether every byte of `other` lies in the interval of this one, which has no gaps.
    pub(crate) fn covers(&self, other: &Footprint) -> bool {
        self == other || (self.is_dense() && self.lo <= other.lo && other.hi <= self.hi)
    }

    /// From the smallest stride up, each axis repeats a run without gaps at distances that leave none.
    fn is_dense(&self) -> bool {
        let mut axes = self.axes;
        axes.sort_unstable();
        let mut run = 1;
        for (stride, extent) in axes {
            if stride > run {
                return false;
            }
            run += stride * (extent - 1);
        }
        run.checked_mul(self.unit) == Some(self.hi - self.lo)
    }
}

/// `stride · k` with `lo ≤ k ≤ hi`.
struct Term {
    stride: i64,
    lo: i64,
    hi: i64,
}

/// Whether the terms, strides descending, can sum to `target`.
fn solvable(terms: &[Term], target: i64, patience: &mut u32) -> bool {
    let Some((first, rest)) = terms.split_first() else { return target == 0 };
    let least: i64 = rest.iter().map(|t| t.stride * t.lo).sum();
    let most: i64 = rest.iter().map(|t| t.stride * t.hi).sum();
    let from = first
        .lo
        .max((target - most).div_euclid(first.stride) + i64::from((target - most).rem_euclid(first.stride) != 0));
    let to = first.hi.min((target - least).div_euclid(first.stride));
    (from..=to).any(|k| {
        *patience = patience.saturating_sub(1);
        *patience == 0 || solvable(rest, target - k * first.stride, patience)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use titan_core::ir::Elem;

    fn layout(offset: usize, shape: [usize; 2], strides: [usize; 2]) -> Layout<2> {
        Layout { elem: Elem::F32, offset, shape, strides }
    }

    fn elements(l: &Layout<2>) -> Vec<usize> {
        let at = |i: usize| l.offset + i / l.shape[1] * l.strides[0] + i % l.shape[1] * l.strides[1];
        (0..l.len()).map(at).collect()
    }

    #[test]
    fn columns_of_one_matrix_are_apart_although_their_intervals_meet() {
        let (left, right) = (layout(0, [9, 4], [10, 1]), layout(4, [9, 6], [10, 1]));
        assert!(!Footprint::of(&left).overlaps(&Footprint::of(&right)));
        assert!(Footprint::of(&left).overlaps(&Footprint::of(&layout(3, [9, 6], [10, 1]))));
    }

    #[test]
    fn every_other_row_is_apart_from_the_rows_between() {
        let (even, odd) = (layout(0, [5, 7], [14, 1]), layout(7, [5, 7], [14, 1]));
        assert!(!Footprint::of(&even).overlaps(&Footprint::of(&odd)));
    }

    #[test]
    fn an_empty_tensor_shares_nothing() {
        let empty = Footprint::of(&layout(3, [0, 7], [7, 1]));
        assert!(!empty.overlaps(&Footprint::of(&layout(0, [5, 7], [7, 1]))));
    }

    #[test]
    fn as_many_elements_as_bytes_may_leave_gaps() {
        // 2 i + 3 j for i, j < 4: sixteen sums from 0 to 15, twice 6, and never 1.
        let sums = Footprint::of(&layout(0, [4, 4], [2, 3]));
        assert!(!sums.covers(&Footprint::of(&layout(0, [1, 2], [0, 1]))));
        let dense = Footprint::of(&layout(0, [4, 4], [1, 3]));
        assert!(dense.covers(&Footprint::of(&layout(5, [1, 2], [0, 4]))));
    }

    proptest! {
        #[test]
        fn overlap_is_exact_for_small_layouts(
            a in (0usize..20, [0usize..5, 1usize..5], [0usize..12, 0usize..5]),
            b in (0usize..20, [0usize..5, 1usize..5], [0usize..12, 0usize..5]),
        ) {
            let (a, b) = (layout(a.0, a.1, a.2), layout(b.0, b.1, b.2));
            let (ea, eb) = (elements(&a), elements(&b));
            let (fa, fb) = (Footprint::of(&a), Footprint::of(&b));
            prop_assert_eq!(fa.overlaps(&fb), ea.iter().any(|x| eb.contains(x)));
            prop_assert_eq!(fa.overlaps(&fb), fb.overlaps(&fa));
            if fa.covers(&fb) {
                prop_assert!(eb.iter().all(|x| ea.contains(x)));
            }
        }
    }
}
