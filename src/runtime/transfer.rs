//! Copies between host slices in row-major order and tensors of any layout.
//!
//! The elements of a layout are runs of contiguous ones. A layout with few, long runs is copied run by run; one whose
//! runs are short but which covers its span densely, a transposed matrix say, is read as a whole and put in order here.

use super::backend::Storage;
use super::device::advance;
use super::layout::Layout;
use crate::error::{Error, Result};
use crate::lang::Elem;
use std::borrow::Cow;

/// Elements of a run below which copying runs one by one does not pay.
const SHORT_RUN: usize = 64;

/// An empty vector with room for `n` elements.
///
/// # Errors
/// If the host has no memory for them: a broadcast view may have more elements than any memory.
pub(super) fn host_vec<T>(n: usize) -> Result<Vec<T>> {
    let mut out = Vec::new();
    let bytes = n.saturating_mul(size_of::<T>());
    let refused = |_| Error::OutOfMemory { bytes, device: "the host".to_owned(), free: None };
    out.try_reserve_exact(n).map_err(refused)?;
    Ok(out)
}

/// All elements, in row-major order.
pub(crate) fn read<T: Elem, const R: usize>(storage: &Storage, layout: &Layout<R>) -> Result<Vec<T>> {
    if layout.len() == 0 {
        return Ok(Vec::new());
    }
    if layout.is_contiguous() {
        return read_run(storage, layout.offset, layout.len());
    }
    let mut out = host_vec(layout.len())?;
    let runs = Runs::of(layout);
    let span = runs.offsets.iter().max().map_or(0, |last| last + runs.len - layout.offset);
    if runs.len < SHORT_RUN && span / 2 <= layout.len() {
        let start = layout.offset;
        let all = read_run::<T>(storage, start, span)?;
        let pick = |offset: &usize| all[offset - start..][..runs.len].iter().copied();
        out.extend(runs.offsets.iter().flat_map(pick));
        return Ok(out);
    }
    for offset in &runs.offsets {
        out.extend(read_run::<T>(storage, *offset, runs.len)?);
    }
    Ok(out)
}

/// Overwrites all elements, which are given in row-major order.
pub(crate) fn write<T: Elem, const R: usize>(storage: &Storage, layout: &Layout<R>, data: &[T]) -> Result<()> {
    if data.is_empty() {
        return Ok(());
    }
    let runs = Runs::of(layout);
    for (offset, run) in runs.offsets.iter().zip(data.chunks(runs.len)) {
        let bytes = T::as_bytes(run).map_or_else(|| Cow::Owned(T::pack(run)), Cow::Borrowed);
        storage.write(T::ELEM.bytes_for(*offset), &bytes)?;
    }
    Ok(())
}

/// `n` elements from element `offset` on; both are even for the 4-bit types.
fn read_run<T: Elem>(storage: &Storage, offset: usize, n: usize) -> Result<Vec<T>> {
    let mut bytes = vec![0; T::ELEM.bytes_for(n)];
    storage.read(T::ELEM.bytes_for(offset), &mut bytes)?;
    Ok(T::unpack(&bytes, n))
}

/// A layout as runs of contiguous elements, in row-major order.
struct Runs {
    /// Elements of each.
    len: usize,
    /// Where each starts.
    offsets: Vec<usize>,
}

impl Runs {
    fn of<const R: usize>(layout: &Layout<R>) -> Runs {
        let inner = layout.contiguous_from();
        let len = layout.shape[inner..].iter().product();
        let (shape, strides) = (&layout.shape[..inner], &layout.strides[..inner]);
        let mut index = vec![0; inner];
        let mut offsets = Vec::new();
        for _ in 0..shape.iter().product() {
            let moved: usize = index.iter().zip(strides).map(|(i, s)| i * s).sum();
            offsets.push(layout.offset + moved);
            advance(&mut index, shape);
        }
        Runs { len, offsets }
    }
}
