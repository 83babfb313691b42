//! Layouts of tensors: offset, extents and strides, all in elements, and the views that can be made.
//!
//! A layout never reaches outside of the memory it was made for: every view is a part of its origin. A layout without elements has
//! the offset 0, and any extents besides the one that is 0: computations with extents, strides and offsets either check for overflow
//! or are for layouts with elements only.
//! The 4-bit types are packed along the last axis, so there the last axis keeps stride 1, and its extent and everything
//! else that counts elements stays even; views that would break this are refused.

use crate::error::{Error, Result};
use titan_core::diag::counted;
use titan_core::ir::Elem;

/// The largest rank of a tensor.
pub const MAX_RANK: usize = 8;

/// An element type, an offset, extents and strides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout<const R: usize> {
    pub(crate) elem: Elem,
    pub(crate) offset: usize,
    pub(crate) shape: [usize; R],
    pub(crate) strides: [usize; R],
}

fn refuse<T>(operation: &'static str, problem: String, help: &'static str) -> Result<T> {
    Err(Error::Layout { operation, problem, help })
}

/// The number of elements of a shape; `None` if it overflows.
pub(crate) fn element_count(shape: &[usize]) -> Option<usize> {
    // A shape with an extent of 0 has no elements, even if the product of the other extents overflows.
    if shape.contains(&0) { Some(0) } else { shape.iter().try_fold(1usize, |n, d| n.checked_mul(*d)) }
}

/// Whether a memory can have this many elements: the numbers of elements and of bytes must fit in `i64`.
fn fits_memory(elem: Elem, elements: usize) -> bool {
    let bits = (elements as u128) * u128::from(elem.bits());
    i64::try_from(elements).is_ok() && i64::try_from(bits.div_ceil(8)).is_ok()
}

impl<const R: usize> Layout<R> {
    /// The row-major layout, from the start of its memory.
    pub(crate) fn row_major(elem: Elem, shape: [usize; R]) -> Result<Self> {
        Layout::unpacked_row_major(elem, shape)?.packed("a new tensor")
    }

    fn unpacked_row_major(elem: Elem, shape: [usize; R]) -> Result<Self> {
        const { assert!(R <= MAX_RANK, "tensors have at most 8 axes") };
        let Some(count) = element_count(&shape).filter(|n| fits_memory(elem, *n)) else {
            return Err(Error::TooLarge { shape: shape.to_vec() });
        };
        let mut strides = [1; R];
        for axis in (1..R).rev() {
            strides[axis - 1] = if count == 0 { 1 } else { strides[axis] * shape[axis] };
        }
        Ok(Layout { elem, offset: 0, shape, strides })
    }

    /// The layout with these strides, in memory that begins with the first element. No two elements may overlap.
    #[cfg(feature = "cuda")]
    pub(crate) fn strided(elem: Elem, shape: [usize; R], strides: [usize; R]) -> Result<Self> {
        const OPERATION: &str = "strides";
        let row_major = Layout::unpacked_row_major(elem, shape)?;
        if row_major.is_empty() {
            return Ok(row_major);
        }
        let mut axes: Vec<(usize, usize)> = strides.into_iter().zip(shape).filter(|(_, n)| *n > 1).collect();
        axes.sort_unstable();
        let mut reach = 1usize;
        for (stride, extent) in axes {
            if stride < reach {
                let problem = format!("with strides {strides:?}, elements of shape {shape:?} share memory");
                return refuse(OPERATION, problem, "give each axis a stride larger than the range of the inner axes");
            }
            let next = (extent - 1).checked_mul(stride).and_then(|far| reach.checked_add(far));
            let Some(next) = next.filter(|n| fits_memory(elem, *n)) else {
                let problem = format!("with strides {strides:?}, shape {shape:?} reaches beyond 2^63 - 1 bytes");
                return refuse(OPERATION, problem, "check the strides: they count elements, not bytes");
            };
            reach = next;
        }
        Layout { elem, offset: 0, shape, strides: used(shape, strides) }.packed(OPERATION)
    }

    /// The number of elements that its memory must have, from the first element of the layout to the last.
    pub(crate) fn reach(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        1 + self.shape.iter().zip(self.strides).map(|(n, stride)| (n - 1) * stride).sum::<usize>()
    }

    /// The offset after a move along an axis, if there are elements.
    fn moved(&self, axis: usize, by: usize) -> usize {
        if self.is_empty() { 0 } else { self.offset + by * self.strides[axis] }
    }

    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        // Layouts are only created for numbers of elements that do not overflow.
        element_count(&self.shape).unwrap_or(usize::MAX)
    }

    /// Whether there are no elements. A product of all extents is not needed for that.
    pub(crate) fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Whether the elements lie one after the other in row-major order.
    pub(crate) fn is_contiguous(&self) -> bool {
        self.contiguous_from() == 0
    }

    /// The first axis from which on the elements lie one after the other in row-major order; `R` if there is none.
    pub(crate) fn contiguous_from(&self) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut expected = 1;
        for axis in (0..R).rev() {
            if self.shape[axis] != 1 && self.strides[axis] != expected {
                return axis + 1;
            }
            expected *= self.shape[axis];
        }
        0
    }

    /// Axis `i` of the result is axis `axes[i]` of this one.
    pub(crate) fn permute(&self, axes: [usize; R]) -> Result<Self> {
        let mut seen = [false; R];
        axes.iter().filter(|a| **a < R).for_each(|a| seen[*a] = true);
        if seen.contains(&false) {
            let problem = format!("{axes:?} does not name each of the axes 0 to {} once", R.saturating_sub(1));
            return refuse("permute", problem, "list every axis exactly once, in the new order");
        }
        Layout { shape: axes.map(|a| self.shape[a]), strides: axes.map(|a| self.strides[a]), ..*self }.packed("permute")
    }

    /// Axes `a` and `b` swapped.
    pub(crate) fn transpose(&self, a: usize, b: usize) -> Result<Self> {
        let mut axes: [usize; R] = std::array::from_fn(|i| i);
        axes.swap(a, b);
        self.permute(axes)
    }

    /// Elements `lo..hi` of an axis.
    pub(crate) fn slice(&self, axis: usize, lo: usize, hi: usize) -> Result<Self> {
        if lo > hi || hi > self.shape[axis] {
            let problem = format!("{lo}..{hi} is out of bounds for axis {axis}, whose extent is {}", self.shape[axis]);
            return refuse("slice", problem, "pass a range within the extent");
        }
        let mut out = *self;
        out.shape[axis] = hi - lo;
        out.offset = out.moved(axis, lo);
        out.packed("slice")
    }

    /// Axis `axis` fixed at `i`; `Q` is `R - 1`.
    pub(crate) fn index<const Q: usize>(&self, axis: usize, i: usize) -> Result<Layout<Q>> {
        const { assert!(Q + 1 == R, "an index removes one axis") };
        if i >= self.shape[axis] {
            let problem = format!("{i} is out of bounds for axis {axis}, whose extent is {}", self.shape[axis]);
            return refuse("index", problem, "pass an index below the extent");
        }
        if self.elem.bits() == 4 && axis + 1 == R {
            let problem = format!("axis {axis} is the packed one: two elements of type `{}` share a byte", self.elem);
            return refuse("index", problem, "slice an even range of the last axis, or index another one");
        }
        let from = |d: usize| if d < axis { d } else { d + 1 };
        Layout {
            elem: self.elem,
            offset: self.moved(axis, i),
            shape: std::array::from_fn(|d| self.shape[from(d)]),
            strides: std::array::from_fn(|d| self.strides[from(d)]),
        }
        .packed("index")
    }

    /// An axis of extent 1 inserted before `axis`; `Q` is `R + 1`.
    pub(crate) fn unsqueeze<const Q: usize>(&self, axis: usize) -> Result<Layout<Q>> {
        const { assert!(Q == R + 1 && Q <= MAX_RANK, "a new axis makes one more, up to 8") };
        // The stride of one element is never used.
        let stride = if axis < R { self.shape[axis].saturating_mul(self.strides[axis]) } else { 1 };
        let at = |d: usize, new: usize, old: &[usize; R]| match d.cmp(&axis) {
            std::cmp::Ordering::Less => old[d],
            std::cmp::Ordering::Equal => new,
            std::cmp::Ordering::Greater => old[d - 1],
        };
        Layout {
            elem: self.elem,
            offset: self.offset,
            shape: std::array::from_fn(|d| at(d, 1, &self.shape)),
            strides: std::array::from_fn(|d| at(d, stride, &self.strides)),
        }
        .packed("unsqueeze")
    }

    /// Other extents for the same elements in row-major order: axes are divided, and adjacent ones joined if their elements are equally far
    /// apart.
    pub(crate) fn reshape<const Q: usize>(&self, shape: [usize; Q]) -> Result<Layout<Q>> {
        if element_count(&shape) != Some(self.len()) {
            let problem = format!("{shape:?} does not have the {} of {:?}", counted(self.len(), "element"), self.shape);
            return refuse("reshape", problem, "choose extents whose product is the number of elements");
        }
        if self.is_empty() {
            return Layout::unpacked_row_major(self.elem, shape)?.packed("reshape");
        }
        let Some(strides) = self.strides_of(shape) else {
            let problem = format!(
                "{shape:?} joins axes whose elements are not equally far apart (extents {:?}, strides {:?})",
                self.shape, self.strides
            );
            return refuse("reshape", problem, "reshape a `.copy()`, or reshape before the other view is made");
        };
        Layout { elem: self.elem, offset: self.offset, shape, strides }.packed("reshape")
    }

    /// The strides of other extents with the same number of elements, which is not 0; `None` if there are none.
    fn strides_of<const Q: usize>(&self, shape: [usize; Q]) -> Option<[usize; Q]> {
        // Runs of elements that are equally far apart, as number and distance, from the last axis on.
        let mut runs: Vec<(usize, usize)> = Vec::new();
        for (extent, stride) in self.shape.into_iter().zip(self.strides).rev().filter(|(extent, _)| *extent != 1) {
            match runs.last_mut() {
                Some((n, step)) if n.checked_mul(*step) == Some(stride) => *n *= extent,
                Some(_) | None => runs.push((extent, stride)),
            }
        }
        // Each run is divided between some of the new axes, also from the last on.
        let (mut strides, mut axis, mut next) = ([1; Q], Q, 1);
        for (n, step) in runs {
            let mut done = 1;
            while done < n {
                axis = axis.checked_sub(1)?;
                strides[axis] = done * step;
                done *= shape[axis];
            }
            if done != n {
                return None;
            }
            next = n * step;
        }
        // All that is left has extent 1.
        strides[..axis].fill(next);
        Some(strides)
    }

    /// Axes of extent 1 repeated to these extents.
    pub(crate) fn broadcast(&self, shape: [usize; R]) -> Result<Self> {
        let mut out = *self;
        for (axis, extent) in shape.into_iter().enumerate() {
            if self.shape[axis] == extent {
                continue;
            }
            if self.shape[axis] != 1 {
                let problem = format!("axis {axis} has extent {}, not 1 or {extent}", self.shape[axis]);
                return refuse("broadcast", problem, "only axes of extent 1 repeat; insert one with `unsqueeze`");
            }
            (out.shape[axis], out.strides[axis]) = (extent, 0);
        }
        if element_count(&out.shape).is_none_or(|n| i64::try_from(n).is_err()) {
            return Err(Error::TooLarge { shape: shape.to_vec() });
        }
        out.packed("broadcast")
    }

    /// The two parts of an axis before and from `at`.
    pub(crate) fn split(&self, axis: usize, at: usize) -> Result<(Self, Self)> {
        if at > self.shape[axis] {
            let problem = format!("{at} is out of bounds for axis {axis}, whose extent is {}", self.shape[axis]);
            return refuse("split", problem, "split at an index from 0 to the extent");
        }
        Ok((self.slice(axis, 0, at)?, self.slice(axis, at, self.shape[axis])?))
    }

    /// Rejects layouts that the packing of the 4-bit types does not allow. Every construction of a layout ends here.
    pub(super) fn packed(self, operation: &'static str) -> Result<Self> {
        if self.is_empty() {
            return Ok(Layout { offset: 0, ..self });
        }
        if self.elem.bits() != 4 {
            return Ok(self);
        }
        let even = self.shape.last().is_some_and(|n| n % 2 == 0) && self.offset.is_multiple_of(2);
        let (last, outer) = self.strides.split_last().map_or((1, &[][..]), |(last, outer)| (*last, outer));
        let aligned = outer.iter().zip(&self.shape).all(|(stride, extent)| *extent == 1 || stride.is_multiple_of(2));
        if even && last == 1 && aligned {
            return Ok(self);
        }
        let problem = format!(
            "elements of type `{}` are packed in pairs along the last axis, and extents {:?} with strides {:?} from \
             element {} cut a pair",
            self.elem, self.shape, self.strides, self.offset
        );
        refuse(operation, problem, "keep the last axis in place, and its extents and ranges even")
    }
}

/// These strides, with 1 along axes of one element, where a stride is never used and any number may be given.
#[cfg(any(feature = "cpu", feature = "cuda"))]
pub(super) fn used<const R: usize>(shape: [usize; R], strides: [usize; R]) -> [usize; R] {
    std::array::from_fn(|d| if shape[d] == 1 { 1 } else { strides[d] })
}

/// `1 element was`, `2 elements were`.
pub(crate) fn were(n: usize, what: &str) -> String {
    format!("{} {}", counted(n, what), if n == 1 { "was" } else { "were" })
}
