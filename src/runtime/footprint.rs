//! The bytes of a buffer that a tensor covers; every device uses the same test of overlap.

use super::layout::Layout;
pub(crate) use titan_core::launch::Footprint;

/// The footprint of a layout. Extents and strides of one with elements fit in `i64`, because the tensor fits in memory.
pub(crate) fn of<const R: usize>(layout: &Layout<R>) -> Footprint {
    let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let axes = layout.shape.iter().zip(&layout.strides).map(|(n, stride)| (number(*n), number(*stride)));
    Footprint::new(layout.elem, number(layout.offset), axes)
}
