//! Extents and strides with which memory of others is borrowed.

use super::dyn_tensor::padded_row_major;
use super::layout::{Layout, MAX_RANK, used};
use crate::error::{Error, Result};
use titan_core::ir::Elem;

/// The place of a tensor in a borrowed slice: `titan::cpu::Scope::borrow_strided`, `titan::cuda::borrow_strided`. All numbers count elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Strided<const R: usize> {
    /// The position of the first element in the slice.
    pub offset: usize,
    /// The extents.
    pub shape: [usize; R],
    /// The distance of the next element along each axis; 0 repeats the elements, for reading only.
    pub strides: [usize; R],
}

#[cfg(any(feature = "cpu", feature = "cudarc"))]
impl<const R: usize> Strided<R> {
    /// The layout in a slice of `len` elements. If it is `exclusive`, no two elements may be one of the slice.
    pub(super) fn layout(&self, operation: &'static str, elem: Elem, len: usize, exclusive: bool) -> Result<Layout<R>> {
        let Strided { offset, shape, strides } = *self;
        let row_major = Layout::row_major(elem, shape)?;
        if row_major.is_empty() {
            return Ok(row_major);
        }
        inside(operation, (offset, &shape, &strides), len, exclusive)?;
        Ok(Layout { elem, offset, shape, strides: used(shape, strides) })
    }
}

/// The place of a tensor of any rank in borrowed memory, as frameworks describe it at run time: `titan::cpu::Scope::borrow_dyn`,
/// `titan::cuda::borrow_dyn`. All numbers count elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place<'p> {
    /// The position of the first element in the memory.
    pub offset: usize,
    /// The extents, at most 8.
    pub shape: &'p [usize],
    /// The distance of the next element along each axis; 0 repeats the elements, for reading only. `None` for row-major order.
    pub strides: Option<&'p [usize]>,
}

impl Place<'_> {
    /// The rank, and the layout in memory of `len` elements with as many axes of extent 1 before the others as there are too few. If it is
    /// `exclusive`, no two elements may be one of the memory.
    pub(super) fn layout(
        &self,
        operation: &'static str,
        elem: Elem,
        len: usize,
        exclusive: bool,
    ) -> Result<(usize, Layout<MAX_RANK>)> {
        let Place { offset, shape, strides } = *self;
        let (rank, row_major) = padded_row_major(elem, shape)?;
        if row_major.is_empty() {
            return Ok((rank, row_major));
        }
        let first = MAX_RANK - rank;
        let mut distances = row_major.strides;
        if let Some(strides) = strides {
            if strides.len() != rank {
                let problem =
                    format!("{strides:?} are {} strides for the {rank} axes of shape {shape:?}", strides.len());
                return Err(Error::Strided { operation, problem, help: "give one stride for each axis" });
            }
            distances[first..].copy_from_slice(strides);
        }
        inside(operation, (offset, shape, &distances[first..]), len, exclusive)?;
        let strides = used(row_major.shape, distances);
        Ok((rank, Layout { elem, offset, shape: row_major.shape, strides }.packed(operation)?))
    }
}

/// Whether elements from `offset` on with these extents and strides, of which there are some, are inside of `len` elements; if `exclusive`,
/// also whether each is another one.
fn inside(
    operation: &'static str,
    (offset, shape, strides): (usize, &[usize], &[usize]),
    len: usize,
    exclusive: bool,
) -> Result<()> {
    let refuse = |problem, help| Err(Error::Strided { operation, problem, help });
    let far =
        shape.iter().zip(strides).try_fold(offset, |far, (n, stride)| far.checked_add((n - 1).checked_mul(*stride)?));
    if far.is_none_or(|far| far >= len) {
        let problem = format!(
            "a tensor of shape {shape:?} with strides {strides:?} from element {offset} on reaches beyond the slice, which has {len}"
        );
        return refuse(problem, "check the offset and the strides: they count elements, not bytes");
    }
    if !exclusive {
        return Ok(());
    }
    // Axes of one element, and those that there are not, have stride 0, so that they are first and change nothing.
    let mut axes = [(0, 1); MAX_RANK];
    let given = strides.iter().copied().zip(shape.iter().copied()).filter(|(_, n)| *n > 1);
    axes.iter_mut().zip(given).for_each(|(to, axis)| *to = axis);
    axes.sort_unstable();
    let mut reach = 1;
    for (stride, extent) in axes {
        if extent > 1 && stride < reach {
            let problem = format!("with strides {strides:?}, elements of shape {shape:?} share memory");
            return refuse(problem, "give each axis a stride larger than the range of the inner axes");
        }
        // Within the slice, so it does not overflow.
        reach += (extent - 1) * stride;
    }
    Ok(())
}
