//! Extents and strides with which memory of others is borrowed.

use super::layout::{Layout, used};
use crate::error::{Error, Result};
use titan_core::ir::Elem;

/// The place of a tensor in a borrowed slice: `titan::cpu::Scope::borrow_strided`, `titan::cuda::borrow_strided`. All numbers count elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strided<const R: usize> {
    /// The position of the first element in the slice.
    pub offset: usize,
    /// The extents.
    pub shape: [usize; R],
    /// The distance of the next element along each axis; 0 repeats the elements, for reading only.
    pub strides: [usize; R],
}

impl<const R: usize> Strided<R> {
    /// The layout in a slice of `len` elements. If it is `exclusive`, no two elements may be one of the slice.
    pub(super) fn layout(&self, operation: &'static str, elem: Elem, len: usize, exclusive: bool) -> Result<Layout<R>> {
        let Strided { offset, shape, strides } = *self;
        let row_major = Layout::row_major(elem, shape)?;
        if row_major.len() == 0 {
            return Ok(row_major);
        }
        let refuse = |problem, help| Err(Error::Strided { operation, problem, help });
        let far = shape
            .iter()
            .zip(strides)
            .try_fold(offset, |far, (n, stride)| far.checked_add((n - 1).checked_mul(stride)?));
        if far.is_none_or(|far| far >= len) {
            let problem = format!(
                "a tensor of shape {shape:?} with strides {strides:?} from element {offset} on reaches beyond the slice, which has {len}"
            );
            return refuse(problem, "check the offset and the strides: they count elements, not bytes");
        }
        let mut axes: Vec<(usize, usize)> = strides.into_iter().zip(shape).filter(|(_, n)| *n > 1).collect();
        axes.sort_unstable();
        let mut reach = 1;
        for (stride, extent) in axes {
            if exclusive && stride < reach {
                let problem = format!("with strides {strides:?}, elements of shape {shape:?} share memory");
                return refuse(problem, "give each axis a stride larger than the range of the inner axes");
            }
            // Within the slice, so it does not overflow.
            reach += (extent - 1) * stride;
        }
        Ok(Layout { elem, offset, shape, strides: used(shape, strides) })
    }
}
