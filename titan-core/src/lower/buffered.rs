//! Loads of tiles from buffers, on targets whose buffers are bounded: instead of a condition, and zeros in its registers before, a lane that is
//! outside of the tensor has an offset outside of the buffer.
//!
//! The buffer begins at the tile's first element, so that a tensor may have more bytes than offsets reach. What a loop changes along the contiguous axis is added to the
//! address by an operand of its own, so that the loop computes one number for all loads. Offsets of lanes do not change in a loop as long as all
//! conditions on them do not:
//!
//! ```text
//! %row = select %m < M, %m · stride, nowhere          before the loop
//! for %k {
//!     %at = select %k · 64 + %t < K, %row, nowhere     only where K may end within a tile
//!     buffer_load %buffer, %at, %k · 128
//! }
//! ```
//!
//! Offsets inside of the tensor fit in 31 bits if the tile's extents and the strides say so, which a launch checks
//! ([`crate::artifact::Assumption::Reach`]).
//!
//! Deliberately absent: stores; tiles that begin at coordinates in elements, which may be negative; tensors whose strides are not those of the
//! parameter; elements of less than 4 bytes alone.

use super::global::Start;
use super::tensor::View;
use super::vector::{elem_bytes, words};
use super::{Lower, Reg};
use crate::ir::{Elem, ParamKind, Pred};
use crate::lane::{self, AmdOp, IntBin};
use crate::launch::abi::Slot;
use crate::layout::{Coords, Layout};

/// The maximum number of axes of a tensor.
const AXES: u8 = 4;

/// A tile of a tensor as the beginning of a buffer, for one thread.
pub(super) struct Buffered {
    param: u32,
    elem: Elem,
    /// The extents of the tile, along the axes of the parameter.
    tile: Vec<u32>,
    /// The words that describe the buffer, and what is added to its address.
    buffer: Vec<Reg>,
    step: Reg,
    /// The coordinates of the thread's first element in the tile, and the distances of adjacent elements in bytes; nothing along the axis along
    /// which elements are contiguous.
    threads: Vec<Reg>,
    strides: Vec<Option<Reg>>,
    /// The number of coordinates inside the tensor from the tile's first one on, where the tile is not known to be inside.
    left: Vec<Option<Reg>>,
    exists: Option<Reg>,
    /// What a launch checks of the rows if the buffer ends at the last one: as [`super::Lowered::apart`].
    apart: Option<(u32, u32, u32)>,
}

impl Lower<'_> {
    /// The buffer for a tile, if the target has buffers and offsets suffice. `whole` says of each axis whether the tile is known to be inside of the
    /// tensor, and `near` whether it is known to begin not far behind its end.
    pub(super) fn buffered(
        &mut self,
        view: &View,
        starts: &[Start],
        (threads, layout): (&[Reg], &Layout),
        (whole, near): (&[bool], &[bool]),
    ) -> Option<Buffered> {
        let by_tiles = starts.iter().all(|start| start.exists.is_some());
        let usable = self.target.bounded_loads && self.laid.index32 && view.start.is_none() && view.elem.bits() >= 8;
        if !usable || !by_tiles {
            return None;
        }
        let tile = self.tile_of_param(view, layout.extents())?;
        let bytes = elem_bytes(view.elem);
        let (mut left, mut strides) = (Vec::new(), Vec::new());
        for (axis, start) in starts.iter().enumerate() {
            left.push(if whole[axis] {
                None
            } else {
                Some(self.left_in_tensor(view.extents[axis], start, near[axis]))
            });
            strides.push(if self.is_unit(view, axis) {
                None
            } else {
                let stride = self.narrow_stride(view, axis);
                let bytes = self.b.i32(bytes.cast_signed());
                Some(self.b.mul(stride, bytes))
            });
        }
        let exists = view.exists.filter(|exists| !self.none_left_unless(*exists, &mut left));
        let (base, step) = self.base(view, starts);
        let whole = self.b.i32(lane::amd::BYTES.cast_signed());
        let is_at = self.b.func().constant(step) == Some(0);
        let rows = if is_at { self.bytes_of_rows(view, layout, &strides, &mut left) } else { None };
        let (bytes, apart) = rows.map_or((whole, None), |(bytes, apart)| (bytes, Some(apart)));
        let buffer = self.b.op(AmdOp::Buffer, &[base, bytes]);
        Some(Buffered {
            param: view.param,
            elem: view.elem,
            tile,
            buffer,
            step,
            threads: threads.to_vec(),
            strides,
            left,
            exists,
            apart,
        })
    }

    /// Sets the number of coordinates that are left along an axis to 0 unless a condition holds, if one is computed as often as the condition:
    /// so no load selects by the condition. Returns whether there is such an axis.
    fn none_left_unless(&mut self, condition: Reg, left: &mut [Option<Reg>]) -> bool {
        let level = self.b.level(condition);
        let Some(left) = left.iter_mut().flatten().find(|left| self.b.level(**left) >= level) else { return false };
        let none = self.b.i32(0);
        *left = self.b.select(condition, *left, none);
        true
    }

    /// The number of bytes up to the end of the last row of a tile that is inside of the tensor, if a loop changes how many rows are. Then the
    /// buffer ends there, and no load needs a condition for its row: rows do not overlap, and offsets of all rows of a tile fit in 31 bits, also of
    /// those that the tensor has not. A launch checks both ([`crate::artifact::Assumption::Apart`]).
    ///
    /// ```text
    /// rows = min(max(left, 0), rows of a tile)
    /// line = min(extent, columns of a tile) · bytes            ≤ stride
    /// bytes = max(rows · stride - (stride - line), 0)          the end of row `rows - 1`; 0 without rows
    /// ```
    fn bytes_of_rows(
        &mut self,
        view: &View,
        layout: &Layout,
        strides: &[Option<Reg>],
        left: &mut [Option<Reg>],
    ) -> Option<(Reg, (u32, u32, u32))> {
        let extents = layout.extents();
        let (last, row) = (extents.len() - 1, extents.len().checked_sub(2)?);
        let [stride, None] = strides[row..] else { return None };
        let (stride, remaining) = (stride?, left[row]?);
        let axis_of = |axis: &u8| self.is_slot(view.strides[row], Slot::Stride(view.param, *axis));
        let axis = (0..AXES).find(axis_of)?;
        let is_line = (axis + 1..AXES).any(|axis| self.is_slot(view.extents[last], Slot::Extent(view.param, axis)));
        if extents[..row].iter().any(|n| *n > 1)
            || self.b.level(remaining) <= self.b.level(view.extents[last])
            || !is_line
        {
            return None;
        }
        let most = |n: u32| i32::try_from(n).ok();
        let (none, rows, columns) = (self.b.i32(0), self.b.i32(most(extents[row])?), self.b.i32(most(extents[last])?));
        let line = self.b.int(IntBin::MinS, view.extents[last], columns);
        let bytes = self.b.i32(elem_bytes(view.elem).cast_signed());
        let line = self.b.mul(line, bytes);
        let gap = self.b.int(IntBin::Sub, stride, line);
        let remaining = self.b.int(IntBin::MaxS, remaining, none);
        let rows = self.b.int(IntBin::MinS, remaining, rows);
        let all = self.b.mul(rows, stride);
        let end = self.b.int(IntBin::Sub, all, gap);
        left[row] = None;
        Some((self.b.int(IntBin::MaxS, end, none), (view.param, axis.into(), extents[row])))
    }

    /// The extents of a tile of a view along the axes of its parameter, if those of the view are some of these in their order.
    fn tile_of_param(&self, view: &View, tile: &[u32]) -> Option<Vec<u32>> {
        let param = self.k.sig.params.get(view.param as usize).map(|param| &param.kind);
        let Some(ParamKind::Tensor { shape, .. }) = param else { return None };
        let mut of_param = vec![1; shape.len()];
        let mut from = 0;
        for (stride, extent) in view.strides.iter().zip(tile) {
            let is_axis = |axis: usize| {
                u8::try_from(axis).is_ok_and(|axis| self.is_slot(*stride, Slot::Stride(view.param, axis)))
            };
            let axis = (from..shape.len()).find(|axis| is_axis(*axis))?;
            of_param[axis] = *extent;
            from = axis + 1;
        }
        Some(of_param)
    }

    fn is_slot(&self, value: Reg, slot: Slot) -> bool {
        let number = self.b.func().def_op(value).map(|op| &op.kind);
        matches!(number, Some(lane::OpKind::Slot(n)) if self.b.func().slots.get(*n as usize) == Some(&slot))
    }

    /// The number of coordinates inside the tensor from the tile's first one on; 0 or negative if that is outside. If it is inside, it is not
    /// negative, so that nothing overflows.
    fn left_in_tensor(&mut self, extent: Reg, start: &Start, near: bool) -> Reg {
        let left = self.b.int(IntBin::Sub, extent, start.at);
        match start.exists {
            Some(begins) if !near => {
                let none = self.b.i32(0);
                self.b.select(begins, left, none)
            }
            Some(_) | None => left,
        }
    }

    /// The address of the tile's first element without what an inner loop changes along the contiguous axis, and that in bytes. A tensor has fewer
    /// than 2³² bytes along that axis, which a launch checks.
    fn base(&mut self, view: &View, starts: &[Start]) -> (Reg, Reg) {
        let last = starts.len() - 1;
        let level = |lower: &Self, axis: usize| lower.b.level(starts[axis].at);
        let others = (0..last).map(|axis| level(self, axis)).max().unwrap_or(0).max(self.b.level(view.address));
        let apart = self.is_unit(view, last) && level(self, last) > others;
        let mut axes: Vec<usize> = (0..starts.len()).filter(|axis| !(apart && *axis == last)).collect();
        // What an outer loop changes is added first, so that inner loops do not add it again.
        axes.sort_by_key(|axis| level(self, *axis));
        let mut base = view.address;
        for axis in axes {
            let bytes = self.bytes_along(view, axis, starts[axis].at);
            base = self.b.add(base, bytes);
        }
        let bytes = self.b.i32(elem_bytes(view.elem).cast_signed());
        let step = if apart { self.b.mul(starts[last].at, bytes) } else { self.b.i32(0) };
        (base, step)
    }

    /// Computes the conditions on an element, so that those of several loads come before the first of them.
    pub(super) fn conditions_ahead(&mut self, from: &Buffered, part: Coords) {
        for axis in 0..from.left.len() {
            self.is_in_buffer(from, axis, part);
        }
    }

    /// Whether a coordinate of an element is inside of the tensor, if that is not known.
    fn is_in_buffer(&mut self, from: &Buffered, axis: usize, part: Coords) -> Option<Reg> {
        let left = from.left[axis]?;
        let own = self.b.add_const(from.threads[axis], i64::from(part[axis]));
        Some(self.b.cmp_s(Pred::Gt, left, own))
    }

    /// Loads `n` adjacent elements at `part` relative to the thread's first one, zeros if they are outside; `also` is a further condition. Nothing if
    /// that is no access to a buffer.
    pub(super) fn load_buffered(
        &mut self,
        from: &Buffered,
        part: Coords,
        n: u32,
        also: Option<Reg>,
    ) -> Option<Vec<Reg>> {
        let bits = from.elem.bits();
        let total = bits * n / 8;
        if !matches!(total, 4 | 8 | 16) {
            return None;
        }
        let (mut at, offset) = self.place_in_buffer(from, part);
        let mut conditions: Vec<Reg> = from.exists.into_iter().chain(also).collect();
        for axis in 0..from.left.len() {
            conditions.extend(self.is_in_buffer(from, axis, part));
        }
        // What an outer loop decides comes first, so that inner loops do not select again.
        conditions.sort_by_key(|condition| self.b.level(*condition));
        let nowhere = self.b.i32(lane::amd::NOWHERE.cast_signed());
        for condition in conditions {
            at = self.b.select(condition, at, nowhere);
        }
        let (bytes, count) = if bits == 64 { (8, u8::try_from(n).unwrap_or(1)) } else { words(total) };
        let args = [&from.buffer[..], &[at, from.step]].concat();
        let loaded = self.b.op(AmdOp::BufferLoad { bytes, n: count, offset }, &args);
        self.reaches.insert((from.param, from.tile.clone()));
        self.apart.extend(from.apart);
        Some(if bits == 64 { loaded } else { self.unpack(from.elem, &loaded, bytes, n) })
    }

    /// The offset of an element in the buffer, and the constant part of it.
    fn place_in_buffer(&mut self, from: &Buffered, part: Coords) -> (Reg, u16) {
        let bytes = elem_bytes(from.elem);
        let (mut at, mut constant) = (self.b.i32(0), 0);
        for (axis, stride) in from.strides.iter().enumerate() {
            let own = match stride {
                Some(stride) => {
                    let coordinate = self.b.add_const(from.threads[axis], i64::from(part[axis]));
                    self.b.mul(coordinate, *stride)
                }
                None => {
                    constant = part[axis] * bytes;
                    let bytes = self.b.i32(bytes.cast_signed());
                    self.b.mul(from.threads[axis], bytes)
                }
            };
            at = self.b.add(at, own);
        }
        match u16::try_from(constant).ok().filter(|offset| *offset <= lane::amd::MAX_OFFSET) {
            Some(offset) => (at, offset),
            None => (self.b.add_const(at, constant.into()), 0),
        }
    }
}
