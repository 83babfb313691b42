//! Copies between host slices in row-major order and tensors of any layout.
//!
//! The elements of a layout are runs of contiguous ones. A layout with few, long runs is copied run by run; one whose
//! runs are short but which covers its span densely, such as a transposed matrix, is read as a whole and reordered here. Before a write, the
//! elements are brought into the order of the memory instead, because what lies between the elements of a layout may be of another tensor and
//! must not be written.
//!
//! Allocations whose size depends on the user are made by [`host_vec`], which may fail; other allocations have at most [`PIECE`]
//! elements.

use super::backend::Storage;
use super::device::advance;
use super::layout::Layout;
use crate::error::{Error, Result};
use crate::lang::Elem;
use std::cmp::Reverse;

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
    read_each(storage, layout, &mut out)?;
    Ok(out)
}

/// Fills a slice of as many elements with all elements, in row-major order. After an error some may be overwritten.
pub(crate) fn read_into<T: Elem, const R: usize>(storage: &Storage, layout: &Layout<R>, out: &mut [T]) -> Result<()> {
    read_each(storage, layout, &mut Slice { rest: out })
}

/// Where elements go that are read, one run after the other.
trait Sink<T> {
    fn put(&mut self, run: &[T]);
}

impl<T: Elem> Sink<T> for Vec<T> {
    fn put(&mut self, run: &[T]) {
        self.extend_from_slice(run);
    }
}

/// The part of a slice that has not been filled.
struct Slice<'a, T> {
    rest: &'a mut [T],
}

impl<T: Elem> Sink<T> for Slice<'_, T> {
    fn put(&mut self, run: &[T]) {
        let (filled, rest) = std::mem::take(&mut self.rest).split_at_mut(run.len());
        filled.copy_from_slice(run);
        self.rest = rest;
    }
}

fn read_each<T: Elem, const R: usize>(storage: &Storage, layout: &Layout<R>, out: &mut impl Sink<T>) -> Result<()> {
    if layout.is_empty() {
        return Ok(());
    }
    let mut source = Source { storage, bytes: Vec::new() };
    let (start, span) = (layout.offset, layout.reach());
    let runs = Runs::of(layout);
    if runs.len < SHORT_RUN && span / 2 <= layout.len() {
        let mut all = host_vec::<T>(span)?;
        source.read(start, span, &mut all)?;
        return runs.for_each(|offset, len| {
            out.put(&all[offset - start..][..len]);
            Ok(())
        });
    }
    runs.for_each(|offset, len| source.read(offset, len, out))
}

/// Overwrites all elements with this one.
pub(crate) fn fill<T: Elem, const R: usize>(storage: &Storage, layout: &Layout<R>, value: T) -> Result<()> {
    if layout.is_empty() {
        return Ok(());
    }
    // All elements become the same, so the order in which they come does not matter.
    let layout = layout.permute(by_stride(layout))?;
    let runs = Runs::of(&layout);
    // Runs of the 4-bit types are even, so pairs stay together.
    let piece = T::pack(&vec![value; runs.len.min(PIECE)]);
    runs.for_each(|offset, len| {
        let (from, bytes) = (T::ELEM.bytes_for(offset), T::ELEM.bytes_for(len));
        if piece.iter().all(|byte| *byte == piece[0]) {
            return storage.fill(from, bytes, piece[0]);
        }
        let mut parts = (0..bytes).step_by(piece.len());
        parts.try_for_each(|at| storage.write(from + at, &piece[..piece.len().min(bytes - at)]))
    })
}

/// Overwrites all elements of `to` with those of `from`, which has the same extents, without memory for all of them if the runs are long.
pub(crate) fn copy<T: Elem, const R: usize>(from: (&Storage, &Layout<R>), to: (&Storage, &Layout<R>)) -> Result<()> {
    if from.1.is_empty() {
        return Ok(());
    }
    // In the order in which the elements of `to` lie in memory, its runs are as long as they can be.
    let order = by_stride(to.1);
    let layouts = (from.1.permute(order)?, to.1.permute(order)?);
    let inner = layouts.0.contiguous_from().max(layouts.1.contiguous_from());
    let (sources, targets) = (Runs::from_axis(&layouts.0, inner), Runs::from_axis(&layouts.1, inner));
    if sources.len < SHORT_RUN {
        return write_runs(to.0, &layouts.1, &read::<T, R>(from.0, &layouts.0)?);
    }
    let mut bytes = Vec::new();
    sources.for_each_pair(&targets, |source, target, len| {
        for at in (0..len).step_by(PIECE) {
            bytes.resize(T::ELEM.bytes_for(PIECE.min(len - at)), 0);
            from.0.read(T::ELEM.bytes_for(source + at), &mut bytes)?;
            to.0.write(T::ELEM.bytes_for(target + at), &bytes)?;
        }
        Ok(())
    })
}

/// Overwrites all elements, which are given in row-major order.
pub(crate) fn write<T: Elem, const R: usize>(storage: &Storage, layout: &Layout<R>, data: &[T]) -> Result<()> {
    if data.is_empty() {
        return Ok(());
    }
    let order = by_stride(layout);
    if Runs::of(layout).len >= SHORT_RUN || order.is_sorted() {
        return write_runs(storage, layout, data);
    }
    // The data in the order in which the elements lie in memory, such as the columns of a transposed matrix one after the other.
    let given = Layout::row_major(layout.elem, layout.shape)?.permute(order)?;
    let mut ordered = host_vec(data.len())?;
    Runs::of(&given).for_each(|start, len| {
        ordered.put(&data[start..][..len]);
        Ok(())
    })?;
    write_runs(storage, &layout.permute(order)?, &ordered)
}

/// The axes in the order of the distance of their elements in memory, largest first. Axes of one element, whose strides are never used, are
/// first, and axes that are equal stay in order: so the last axis of a 4-bit type, whose pairs are bytes, stays the last one.
fn by_stride<const R: usize>(layout: &Layout<R>) -> [usize; R] {
    let mut order = std::array::from_fn(|axis| axis);
    order.sort_by_key(|&axis| Reverse(if layout.shape[axis] == 1 { usize::MAX } else { layout.strides[axis] }));
    order
}

/// Overwrites the elements of a layout that has some, run by run.
fn write_runs<T: Elem, const R: usize>(storage: &Storage, layout: &Layout<R>, data: &[T]) -> Result<()> {
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
    /// Reads `n` elements from element `offset` on, for which there is room; both are even for the 4-bit types.
    fn read<T: Elem>(&mut self, offset: usize, n: usize, out: &mut impl Sink<T>) -> Result<()> {
        for at in (0..n).step_by(PIECE) {
            let len = PIECE.min(n - at);
            self.bytes.resize(T::ELEM.bytes_for(len), 0);
            self.storage.read(T::ELEM.bytes_for(offset + at), &mut self.bytes)?;
            out.put(&T::unpack(&self.bytes, len));
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
        Runs::from_axis(layout, layout.contiguous_from())
    }

    /// The elements of a layout from axis `inner` on as runs; they are contiguous.
    fn from_axis<const R: usize>(layout: &Layout<R>, inner: usize) -> Runs<'_> {
        let len = layout.shape[inner..].iter().product();
        Runs { len, first: layout.offset, shape: &layout.shape[..inner], strides: &layout.strides[..inner] }
    }

    /// Calls `f` with the start of each run, and its length.
    fn for_each(&self, mut f: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        self.for_each_pair(self, |start, _, len| f(start, len))
    }

    /// Calls `f` with the start of each run and that of the same run in `other`, which has the same extents, and their length.
    fn for_each_pair(&self, other: &Runs<'_>, mut f: impl FnMut(usize, usize, usize) -> Result<()>) -> Result<()> {
        let mut index = vec![0; self.shape.len()];
        for _ in 0..self.shape.iter().product() {
            f(self.start(&index), other.start(&index), self.len)?;
            advance(&mut index, self.shape);
        }
        Ok(())
    }

    /// The start of the run with this index.
    fn start(&self, index: &[usize]) -> usize {
        self.first + index.iter().zip(self.strides).map(|(i, s)| i * s).sum::<usize>()
    }
}
