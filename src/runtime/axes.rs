//! Views in which an axis is divided into two, or two adjacent ones are joined.
//!
//! Both are reshapes that name the axis instead of all extents, so that host code that is generic in the other axes can write them.

use super::layout::{Layout, MAX_RANK};
use super::tensor::Tensor;
use super::view::{View, ViewMut};
use crate::error::{Error, Result};
use crate::lang::Elem;

impl<const R: usize> Layout<R> {
    /// Axis `axis` divided into two of these extents; `Q` is `R + 1`.
    fn split_axis<const Q: usize>(&self, axis: usize, extents: [usize; 2]) -> Result<Layout<Q>> {
        const { assert!(Q == R + 1 && Q <= MAX_RANK, "a divided axis makes one more, up to 8") };
        let [outer, inner] = extents;
        let found = self.shape[axis];
        if outer.checked_mul(inner) != Some(found) {
            let problem = format!("axis {axis} has extent {found}, which is not {outer} times {inner}");
            let help = "choose two extents whose product is that of the axis, or `slice` the axis first";
            return Err(Error::AxisView { operation: "split_axis", problem, help });
        }
        // A stride along an axis of one element is never used; without elements, none is.
        let outer_stride = if self.is_empty() { 1 } else { inner.saturating_mul(self.strides[axis]) };
        let pair = [outer_stride, self.strides[axis]];
        let shape = std::array::from_fn(|d| split(&self.shape, axis, extents, d));
        let strides = std::array::from_fn(|d| split(&self.strides, axis, pair, d));
        Layout { elem: self.elem, offset: self.offset, shape, strides }.packed("split_axis")
    }

    /// Axes `axis` and `axis + 1` as one; `Q` is `R - 1`.
    fn join_axes<const Q: usize>(&self, axis: usize) -> Result<Layout<Q>> {
        const { assert!(Q + 1 == R, "two joined axes make one less") };
        let (outer, far) = (self.shape[axis], self.strides[axis]);
        let (inner, near) = (self.shape[axis + 1], self.strides[axis + 1]);
        let Some(extent) = outer.checked_mul(inner) else {
            // Only without elements: the product of all extents is known to be a number otherwise.
            return Err(Error::TooLarge { shape: self.shape.to_vec() });
        };
        let stride = match (outer, inner) {
            _ if self.is_empty() => 1,
            (1, _) => near,
            (_, 1) => far,
            _ if inner.checked_mul(near) == Some(far) => near,
            _ => {
                let problem = format!(
                    "the elements of axes {axis} and {} are not equally far apart (extents {:?}, strides {:?})",
                    axis + 1,
                    self.shape,
                    self.strides
                );
                let help = "join the axes of a `.copy()`, or join them before the other view is made";
                return Err(Error::AxisView { operation: "join_axes", problem, help });
            }
        };
        let shape = std::array::from_fn(|d| join(&self.shape, axis, extent, d));
        let strides = std::array::from_fn(|d| join(&self.strides, axis, stride, d));
        Layout { elem: self.elem, offset: self.offset, shape, strides }.packed("join_axes")
    }
}

/// Entry `d` of these, of which the one of `axis` becomes two.
fn split(of: &[usize], axis: usize, [outer, inner]: [usize; 2], d: usize) -> usize {
    match d.checked_sub(axis) {
        None => of[d],
        Some(0) => outer,
        Some(1) => inner,
        Some(_) => of[d - 1],
    }
}

/// Entry `d` of these, of which those of `axis` and the next one become one.
fn join(of: &[usize], axis: usize, one: usize, d: usize) -> usize {
    match d.checked_sub(axis) {
        None => of[d],
        Some(0) => one,
        Some(_) => of[d + 1],
    }
}

/// The views between `$R` axes and `$Q`, one less.
macro_rules! axis_views {
    ($($R:literal $Q:literal;)*) => {$(
        impl<T: Elem> Tensor<T, $Q> {
            /// The view with axis `AX` divided into two of these extents, such as columns into heads: axis `AX` of the view counts the parts, axis
            /// `AX + 1` the elements of a part. Every layout can be divided.
            ///
            /// # Errors
            /// If the extent of the axis is not the product (T1112); for a 4-bit type, if the parts of the last axis cut a byte.
            pub fn split_axis<const AX: usize>(&self, extents: [usize; 2]) -> Result<View<'_, T, $R>> {
                const { assert!(AX < $Q, "a tensor of this rank has no such axis") };
                Ok(View::new(self.with_layout(self.layout().split_axis(AX, extents)?)))
            }

            /// The exclusive counterpart of `split_axis`, for writing.
            ///
            /// # Errors
            /// The same as of `split_axis`.
            pub fn split_axis_mut<const AX: usize>(&mut self, extents: [usize; 2]) -> Result<ViewMut<'_, T, $R>> {
                const { assert!(AX < $Q, "a tensor of this rank has no such axis") };
                Ok(ViewMut::new(self.with_layout(self.layout().split_axis(AX, extents)?)))
            }
        }

        impl<T: Elem> ViewMut<'_, T, $Q> {
            /// The exclusive counterpart of `split_axis`, for writing.
            ///
            /// # Errors
            /// The same as of `split_axis`.
            pub fn split_axis_mut<const AX: usize>(&mut self, extents: [usize; 2]) -> Result<ViewMut<'_, T, $R>> {
                const { assert!(AX < $Q, "a tensor of this rank has no such axis") };
                Ok(ViewMut::new(self.with_layout(self.layout().split_axis(AX, extents)?)))
            }
        }

        impl<'a, T: Elem> View<'a, T, $Q> {
            /// The view with axis `AX` divided into two of these extents, as of a tensor.
            ///
            /// # Errors
            /// If the extent of the axis is not the product (T1112); for a 4-bit type, if the parts of the last axis cut a byte.
            pub fn split_axis<const AX: usize>(&self, extents: [usize; 2]) -> Result<View<'a, T, $R>> {
                const { assert!(AX < $Q, "a tensor of this rank has no such axis") };
                Ok(View::new(self.with_layout(self.layout().split_axis(AX, extents)?)))
            }
        }

        impl<T: Elem> Tensor<T, $R> {
            /// The view with axes `AX` and `AX + 1` as one, in row-major order, such as batch and sequence. Their elements must be equally far
            /// apart, as those of a row-major tensor and of its slices along axis 0.
            ///
            /// # Errors
            /// If they are not (T1112): then `.copy()` first.
            pub fn join_axes<const AX: usize>(&self) -> Result<View<'_, T, $Q>> {
                const { assert!(AX + 1 < $R, "a tensor of this rank has no two such axes") };
                Ok(View::new(self.with_layout(self.layout().join_axes(AX)?)))
            }

            /// The exclusive counterpart of `join_axes`, for writing.
            ///
            /// # Errors
            /// The same as of `join_axes`.
            pub fn join_axes_mut<const AX: usize>(&mut self) -> Result<ViewMut<'_, T, $Q>> {
                const { assert!(AX + 1 < $R, "a tensor of this rank has no two such axes") };
                Ok(ViewMut::new(self.with_layout(self.layout().join_axes(AX)?)))
            }
        }

        impl<T: Elem> ViewMut<'_, T, $R> {
            /// The exclusive counterpart of `join_axes`, for writing.
            ///
            /// # Errors
            /// The same as of `join_axes`.
            pub fn join_axes_mut<const AX: usize>(&mut self) -> Result<ViewMut<'_, T, $Q>> {
                const { assert!(AX + 1 < $R, "a tensor of this rank has no two such axes") };
                Ok(ViewMut::new(self.with_layout(self.layout().join_axes(AX)?)))
            }
        }

        impl<'a, T: Elem> View<'a, T, $R> {
            /// The view with axes `AX` and `AX + 1` as one, as of a tensor.
            ///
            /// # Errors
            /// If their elements are not equally far apart (T1112): then `.copy()` first.
            pub fn join_axes<const AX: usize>(&self) -> Result<View<'a, T, $Q>> {
                const { assert!(AX + 1 < $R, "a tensor of this rank has no two such axes") };
                Ok(View::new(self.with_layout(self.layout().join_axes(AX)?)))
            }
        }
    )*};
}
axis_views! { 2 1; 3 2; 4 3; 5 4; 6 5; 7 6; 8 7; }
