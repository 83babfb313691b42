//! What copies read and write of tensors: copies by threads from tiles of an output, and bulk stores of bytes.
//!
//! A copy by threads reads the elements that its warp holds, until it completes if it is asynchronous. Another role, or another thread, that
//! writes them at any time until then races with it, as with a load.
//!
//! A bulk store of contiguous bytes writes as many bytes from its first element on, row after row. One by a tensor map writes a box, of which the
//! program states the first element and the bytes: along the only axis of a tensor, that is all; otherwise its extents are not known,
//! and only its first element is.
//!
//! Deliberately absent: copies from inputs, which nothing writes.

use super::access::tensor;
use super::machine::{Machine, Obs};
use super::tensor::element;
use super::value::{Named, Source, View};
use super::work::{Res, Span, Touch};
use crate::engine::{AccessKind, Helper, Strength};
use titan_core::ir::{OpId, TileShape};

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

    /// The elements that a bulk store of bytes certainly writes: all of them if they are contiguous, or along the only axis.
    pub(super) fn written_in_bulk(&self, view: &View, first: &[i64], (bytes, boxed): (u32, bool)) -> Vec<Touch> {
        let only = vec![tensor(view, Some(first), None, true, false)];
        let Some(t) = self.store.setup.tensors.get(view.param).and_then(Option::as_ref) else { return only };
        let n = i64::from(bytes) * 8 / i64::from(t.elem.bits().max(1));
        if boxed && view.extents.len() != 1 {
            return only;
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
