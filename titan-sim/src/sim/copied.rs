//! What copies read and write of tensors: copies by threads from tiles of an output, and bulk stores of bytes.
//!
//! A copy by threads reads the elements that its warp holds, until it completes if it is asynchronous. Another role, or another thread, that
//! writes them at any time until then races with it, as with a load.
//!
//! A bulk store of contiguous bytes writes as many bytes from its first element on, row after row. One by a tensor map writes a box, of which the
//! program states the first element and the bytes: along the only axis of a tensor, that is all; otherwise its extents are not known. Whatever
//! they are, it writes the elements that all boxes of so many bytes have in common. Those it shares with no other program.
//!
//! Deliberately absent: copies from inputs, which nothing writes.

use super::access::tensor;
use super::machine::{Machine, Obs};
use super::tensor::element;
use super::value::{Named, Source, View};
use super::work::{Res, Span, Touch};
use crate::engine::{AccessKind, Helper, Strength};
use titan_core::analysis::boxes::extents_of;
use titan_core::ir::{Elem, OpId, TileShape};

impl Machine<'_> {
    /// The read of the tile of an output by a copy.
    pub(super) fn read_by_copy(&self, source: &Source) -> Option<Touch> {
        if source.absent || self.is_input(source.view.param) {
            return None;
        }
        let (first, shape) = match &source.what {
            Named::From(first) => (Some(first.as_slice()), Some(source.shape)),
            // They may be anywhere.
            Named::Unknown | Named::Rows(..) => (None, None),
        };
        Some(tensor(&source.view, first, shape, false, false))
    }

    /// Reports the elements of an output that a copy reads, by their numbers in its tile.
    pub(super) fn tell_read_by_copy(
        &self,
        by: (usize, OpId),
        source: &Source,
        mut elements: Vec<usize>,
        helper: Option<Helper>,
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let Named::From(first) = &source.what else { return Ok(()) };
        if source.absent || self.is_input(source.view.param) {
            return Ok(());
        }
        let dims: Vec<usize> = source.shape.iter().map(|n| usize::try_from(*n).unwrap_or(1).max(1)).collect();
        let Some(width) = dims.last().copied() else { return Ok(()) };
        elements.sort_unstable();
        let mut rest = &elements[..];
        while let Some(from) = rest.first().copied() {
            let row = from / width;
            let n = rest.iter().enumerate().take_while(|(i, at)| **at == from + i && **at / width == row).count();
            rest = rest.get(n..).unwrap_or_default();
            let (mut left, mut at) = (from, first.clone());
            for (axis, extent) in dims.iter().enumerate().rev() {
                if let Some(at) = at.get_mut(axis) {
                    *at += i64::try_from(left % extent).unwrap_or(0);
                }
                left /= extent;
            }
            let mut shape = vec![1; dims.len()];
            shape.last_mut().into_iter().for_each(|last| *last = i32::try_from(n).unwrap_or(i32::MAX));
            if let Some(shape) = TileShape::new(&shape) {
                let read = (AccessKind::Read, Strength::Weak);
                self.tell_tensor(by, (&source.view, &at, shape), read, helper, &mut *obs)?;
            }
        }
        Ok(())
    }

    /// The elements that a bulk store of bytes certainly writes: all of them if they are contiguous, or along the only axis; otherwise those
    /// that are in every box.
    pub(super) fn written_in_bulk(&self, view: &View, first: &[i64], (bytes, boxed): (u32, bool)) -> Vec<Touch> {
        if view.outside {
            return Vec::new();
        }
        let only = vec![tensor(view, Some(first), None, true, false)];
        let Some(t) = self.store.setup.tensors.get(view.param).and_then(Option::as_ref) else { return only };
        let n = i64::from(bytes) * 8 / i64::from(t.elem.bits().max(1));
        if boxed && view.extents.len() != 1 {
            let common = in_every_box(bytes, t.elem, view.extents.len());
            return common.map_or(only, |shape| vec![tensor(view, Some(first), Some(shape), true, false)]);
        }
        if let ([axis], [at]) = (&view.axes[..], first) {
            let mut touch = only;
            let start = view.start.get(*axis).copied().unwrap_or(0);
            let extent = view.extents.first().copied().unwrap_or(0);
            for touch in &mut touch {
                if let Span::Tensor { lo, hi, .. } = &mut touch.span
                    && let (Some(lo), Some(hi)) = (lo.get_mut(*axis), hi.get_mut(*axis))
                {
                    (*lo, *hi) = (start + (*at).clamp(0, extent), start + at.saturating_add(n).clamp(0, extent));
                }
            }
            return touch;
        }
        let mut dense = 1;
        for (extent, stride) in t.extents.iter().zip(&t.strides).rev() {
            if *stride != dense {
                return only;
            }
            dense = dense.saturating_mul(*extent);
        }
        let Some(from) = element(t, view, first).and_then(|at| i64::try_from(at).ok()) else { return only };
        rows(&t.extents, (from, from.saturating_add(n).min(dense)))
            .into_iter()
            .map(|(lo, hi)| Touch { span: Span::Tensor { param: view.param, lo, hi }, write: true, strong: false })
            .collect()
    }

    /// Reports the elements of an output that a bulk store of bytes certainly writes.
    pub(super) fn tell_written_in_bulk(
        &self,
        by: (usize, OpId),
        touches: &[Touch],
        helper: Option<Helper>,
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        for touch in touches {
            let Span::Tensor { param, lo, hi } = &touch.span else { continue };
            let Some(t) = self.store.setup.tensors.get(*param).and_then(Option::as_ref) else { continue };
            let whole = View {
                param: *param,
                elem: t.elem,
                start: vec![0; t.extents.len()],
                axes: (0..t.extents.len()).collect(),
                extents: t.extents.clone(),
                outside: false,
            };
            let extents: Vec<i32> = lo.iter().zip(hi).map(|(lo, hi)| i32::try_from(hi - lo).unwrap_or(0)).collect();
            if let Some(shape) = TileShape::new(&extents).filter(|shape| shape.problem().is_none()) {
                let write = (AccessKind::Write, Strength::Weak);
                self.tell_tensor(by, (&whole, lo, shape), write, helper, &mut *obs)?;
            }
        }
        Ok(())
    }
}

/// The extents that the boxes of so many bytes have in common; `None` if no tensor map describes such a box.
fn in_every_box(bytes: u32, elem: Elem, rank: usize) -> Option<TileShape> {
    let least = extents_of(bytes, elem, rank)
        .into_iter()
        .reduce(|least, other| least.iter().zip(&other).map(|(a, b)| *a.min(b)).collect())?;
    TileShape::new(&least.into_iter().map(|n| i32::try_from(n).unwrap_or(1)).collect::<Vec<i32>>())
}

/// Elements of a dense tensor, from one number up to another, as one box for each row.
fn rows(extents: &[i64], (from, end): (i64, i64)) -> Vec<(Vec<i64>, Vec<i64>)> {
    let mut found = Vec::new();
    let width = extents.last().copied().unwrap_or(1).max(1);
    let mut at = from;
    while at < end {
        let n = (width - at % width).min(end - at);
        let (mut left, mut lo) = (at, vec![0; extents.len()]);
        for (axis, extent) in extents.iter().enumerate().rev() {
            lo[axis] = left % (*extent).max(1);
            left /= (*extent).max(1);
        }
        let mut hi: Vec<i64> = lo.iter().map(|at| at + 1).collect();
        hi.last_mut().into_iter().for_each(|last| *last += n - 1);
        found.push((lo, hi));
        at += n;
    }
    found
}
