//! Copies between host slices in row-major order and tensors of any layout.
//!
//! The elements of a layout are runs of contiguous ones. A layout with few, long runs is copied run by run; one whose
//! runs are short but which covers its span densely, such as a transposed matrix, is read as a whole and reordered here.
//!
//! Allocations whose size depends on the user are made by [`host_vec`], which may fail; other allocations have at most [`PIECE`]
//! elements.

use super::backend::Storage;
use super::device::advance;
use super::layout::Layout;
use crate::error::{Error, Result};
use crate::lang::Elem;

/// Layouts whose runs have fewer elements than this are not copied run by run.
const SHORT_RUN: usize = 64;

/// The number of elements that are converted at a time. Even, so that packed pairs stay together.
const PIECE: usize = 1 << 18;

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

/// A vector of `n` zero bytes.
///
/// # Errors
/// If the host has no memory for them.
#[cfg(feature = "simulator")]
pub(super) fn host_bytes(n: usize) -> Result<Vec<u8>> {
    let mut bytes = host_vec(n)?;
    bytes.resize(n, 0);
    Ok(bytes)
}

/// All elements, in row-major order.
pub(crate) fn read<T: Elem, const R: usize>(storage: &Storage, layout: &Layout<R>) -> Result<Vec<T>> {
    let mut out = host_vec(layout.len())?;
    if layout.len() == 0 {
        return Ok(out);
    }
    let mut source = Source { storage, bytes: Vec::new() };
    let (start, span) = (layout.offset, layout.reach());
    let runs = Runs::of(layout);
    if runs.len < SHORT_RUN && span / 2 <= layout.len() {
        let mut all = host_vec::<T>(span)?;
        source.read(start, span, &mut all)?;
        runs.for_each(|offset, len| {
            out.extend_from_slice(&all[offset - start..][..len]);
            Ok(())
        })?;
    } else {
        runs.for_each(|offset, len| source.read(offset, len, &mut out))?;
    }
    Ok(out)
}

/// Overwrites all elements, which are given in row-major order.
pub(crate) fn write<T: Elem, const R: usize>(storage: &Storage, layout: &Layout<R>, data: &[T]) -> Result<()> {
    if data.is_empty() {
        return Ok(());
    }
    let mut rest = data;
    Runs::of(layout).for_each(|offset, len| {
        let run;
        (run, rest) = rest.split_at(len);
        if let Some(bytes) = T::as_bytes(run) {
            return storage.write(T::ELEM.bytes_for(offset), bytes);
        }
        let pieces = run.chunks(PIECE).zip((offset..).step_by(PIECE));
        pieces.into_iter().try_for_each(|(piece, at)| storage.write(T::ELEM.bytes_for(at), &T::pack(piece)))
    })
}

/// Elements in device memory, and room for the bytes of a piece of them.
struct Source<'a> {
    storage: &'a Storage,
    bytes: Vec<u8>,
}

impl Source<'_> {
    /// Appends `n` elements from element `offset` on, for which there is room; both are even for the 4-bit types.
    fn read<T: Elem>(&mut self, offset: usize, n: usize, out: &mut Vec<T>) -> Result<()> {
        for at in (0..n).step_by(PIECE) {
            let len = PIECE.min(n - at);
            self.bytes.resize(T::ELEM.bytes_for(len), 0);
            self.storage.read(T::ELEM.bytes_for(offset + at), &mut self.bytes)?;
            out.append(&mut T::unpack(&self.bytes, len));
        }
        Ok(())
    }
}

/// A layout as runs of contiguous elements, in row-major order.
struct Runs<'a> {
    /// The number of elements of each run.
    len: usize,
    first: usize,
    shape: &'a [usize],
    strides: &'a [usize],
}

impl Runs<'_> {
    /// The runs of a layout that has elements.
    fn of<const R: usize>(layout: &Layout<R>) -> Runs<'_> {
        let inner = layout.contiguous_from();
        let len = layout.shape[inner..].iter().product();
        Runs { len, first: layout.offset, shape: &layout.shape[..inner], strides: &layout.strides[..inner] }
    }

    /// Calls `f` with the start of each run, and its length.
    fn for_each(&self, mut f: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        let mut index = vec![0; self.shape.len()];
        for _ in 0..self.shape.iter().product() {
            let moved: usize = index.iter().zip(self.strides).map(|(i, s)| i * s).sum();
            f(self.first + moved, self.len)?;
            advance(&mut index, self.shape);
        }
        Ok(())
    }
}
