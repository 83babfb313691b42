//! Loads and stores of tiles in device memory.
//!
//! The address of a thread's first element is a sum of the thread's part, the loop-invariant part and the loop-variant part, added in this
//! order, so that the builder hoists all but the last addition out of the loop. Each row is addressed from the previous one, by a common
//! distance; along the contiguous axis, constants become offsets of the access. Every access is masked by the extents of the tensor. For
//! coordinates in units of tiles, the number of remaining coordinates from the thread's first one is computed once, and each register
//! compares it with a constant. For coordinates in elements, coordinates are compared as unsigned numbers, which excludes negative ones.
//!
//! If the plan's assumptions hold for a view and for the origin of the tile, adjacent elements are accessed as vectors of up to 16 bytes,
//! which are completely inside or outside of the tensor; otherwise they are accessed one by one.

use super::buffered::Buffered;
use super::tensor::View;
use super::tile::LoweredValue;
use super::vector::{Place, elem_bytes};
use super::{Lower, LowerError, Reg};
use crate::analysis::tiles;
use crate::analysis::vector::{self, Packing};
use crate::ir::{Op, Pred, Ty, Unit, Value};
use crate::lane::{self, IntBin, Space};
use crate::layout::{Coords, Layout};

/// The elements of a tensor that a tile covers, for one thread.
pub(super) struct Window {
    view: View,
    /// The bound along each axis, which decides the masks.
    bounds: Vec<Bound>,
    /// For 4-bit elements: the distance of the thread's first element from the view's address, in elements.
    pub(super) position: Option<Reg>,
    /// The addresses of rows computed so far, by coordinates relative to the thread's first element, which is the first entry.
    rows: Vec<(Coords, Reg)>,
    /// Whether the view is not empty; `None` if it is not known to be.
    exists: Option<Reg>,
    /// Whether all elements of a row are accessed at once.
    whole_rows: bool,
    /// The number of adjacent elements along the last axis that may be accessed at once.
    pub(super) vector: u32,
    /// The tile as the beginning of a buffer, if it may be loaded from one.
    pub(super) buffer: Option<Buffered>,
}

/// How masks along an axis are computed.
#[derive(Clone, Copy, Debug)]
enum Bound {
    /// The number of coordinates inside the tensor from the thread's first one on; 0 or negative if that is outside. For coordinates in
    /// units of tiles, so that the first coordinate of the tile is not negative.
    Left(Reg),
    /// All coordinates are inside the tensor.
    Whole,
    /// The thread's first coordinate, and the extent of the tensor.
    Extent(Reg, Reg),
}

/// The first coordinate of a tile along an axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    /// The coordinate, in elements.
    pub(super) at: Reg,
    /// For coordinates in units of tiles, whether the coordinate is inside the tensor; it is then not negative, and did not overflow.
    pub(super) exists: Option<Reg>,
}

impl Lower<'_> {
    pub(super) fn load(&mut self, op: &Op, unit: Unit) -> Result<(), LowerError> {
        let value = op.results[0];
        let view = self.view(op.args[0])?;
        let rank = view.extents.len();
        let coords = op.args[1..=rank].to_vec();
        let pad = self.scalar(op.args[rank + 1]);
        let layout = self.layout(value);
        let mut window = self.window(&view, unit, &coords, &layout);
        self.touch_view(&view, false);
        let zero = self.zero(view.elem);
        let mut regs = vec![zero; layout.registers()];
        let n = window.vector.min(layout.vector(rank - 1));
        for first in (0..layout.registers()).step_by(n as usize) {
            let loaded = self.load_group(&mut window, layout.register_coords(first), n, pad, None);
            for (i, reg) in loaded.into_iter().enumerate() {
                regs[first + i] = reg;
            }
        }
        self.define(value, LoweredValue::Tile(regs));
        Ok(())
    }

    pub(super) fn store(&mut self, op: &Op, unit: Unit) -> Result<(), LowerError> {
        let view = self.view(op.args[0])?;
        let rank = view.extents.len();
        let coords = op.args[1..=rank].to_vec();
        let value = op.args[rank + 1];
        if matches!(self.k.ty(value), Ty::Smem(..)) {
            let (staged, tile) = (self.staged(value)?, self.extents(value));
            self.touch(staged.region(), false);
            self.store_pairs(&view, (unit, &coords), &tile, &staged);
            return Ok(());
        }
        let layout = self.layout(value);
        let regs = self.regs(value);
        self.store_registers(&view, (unit, &coords), &regs, &layout)
    }

    /// Stores a tile in registers with a layout.
    pub(super) fn store_registers(
        &mut self,
        view: &View,
        (unit, coords): (Unit, &[Value]),
        regs: &[Reg],
        layout: &Layout,
    ) -> Result<(), LowerError> {
        let rank = view.extents.len();
        // Recomputes conditions: keeping them from a load to a store would need registers.
        self.b.forget_conditions();
        let mut window = self.window(view, unit, coords, layout);
        if view.elem.bits() < 8 && (window.vector < 2 || layout.vector(rank - 1) < 2) {
            if view.packing != Packing::Apart {
                return Err(self.defect("a store of 4-bit halves from registers"));
            }
            self.store_apart(view, (unit, coords), regs, layout);
            return Ok(());
        }
        self.touch_view(view, true);
        let first = self.is_first_copy(layout);
        let n = window.vector.min(layout.vector(rank - 1));
        for register in (0..layout.registers()).step_by(n as usize) {
            let part = layout.register_coords(register);
            let mask = self.window_mask(&window, part);
            let mask = self.both(mask, first);
            let mask = self.inside_tile(layout, part, mask);
            let place = self.window_place(&mut window, part);
            self.store_vector(place, view.elem, &regs[register..register + n as usize], mask);
        }
        Ok(())
    }

    /// The window of a tile of a tensor.
    pub(super) fn window(&mut self, view: &View, unit: Unit, coords: &[Value], layout: &Layout) -> Window {
        let extents = layout.extents().to_vec();
        let starts = self.starts(unit, coords, &extents);
        let threads: Vec<Reg> = (0..starts.len()).map(|axis| self.thread_coord(layout, axis)).collect();
        let sums: Vec<Reg> = starts.iter().zip(&threads).map(|(start, t)| self.b.add(start.at, *t)).collect();
        let mut exists = view.exists;
        let mut bounds = Vec::new();
        let (mut whole, mut near) = (vec![false; starts.len()], vec![false; starts.len()]);
        for (axis, start) in starts.iter().enumerate() {
            let (at, extent) = (sums[axis], view.extents[axis]);
            match start.exists {
                Some(_) if self.is_whole(view, axis, (coords[axis], extents[axis])) => {
                    whole[axis] = true;
                    bounds.push(Bound::Whole);
                }
                Some(_) if self.is_near(view, axis, (coords[axis], extents[axis])) => {
                    near[axis] = true;
                    bounds.push(Bound::Left(self.b.int(IntBin::Sub, extent, at)));
                }
                Some(begins) if !layout.is_padded(axis) => bounds.push(self.left(begins, at, extent)),
                begins => {
                    exists = self.both(exists, begins);
                    bounds.push(Bound::Extent(at, extent));
                }
            }
        }
        let last = coords.len() - 1;
        let kind = (view.elem.bits(), view.aligned, view.packing);
        let vector = vector::tile_width(self.k, kind, unit, (extents[last], coords[last]));
        let (position, address) = if view.elem.bits() < 8 {
            let position = self.position(view, &sums);
            (Some(position), self.address_at(view, position))
        } else {
            (None, self.first_address(view, &starts, &threads, &sums))
        };
        let rows = vec![(Coords::default(), address)];
        let whole_rows = (0..layout.registers()).all(|r| layout.register_coords(r)[last] < vector);
        let buffer = self.buffered(view, &starts, (&threads, layout), (&whole, &near));
        Window { view: view.clone(), bounds, position, rows, exists, whole_rows, vector, buffer }
    }

    /// Whether a tile number is known to be of a tile that is completely inside the tensor along an axis, by a loop over whole tiles.
    fn is_whole(&mut self, view: &View, axis: usize, (number, tile): (Value, u32)) -> bool {
        let counts = tiles::whole(self.k, &self.tree, number);
        counts.iter().any(|count| count.tile == tile && self.scalar(count.extent) == view.extents[axis])
    }

    /// Whether a tile number is known to be only slightly greater than the last one along an axis, so that no difference overflows.
    fn is_near(&mut self, view: &View, axis: usize, (number, tile): (Value, u32)) -> bool {
        // The difference to the extent is at least -(64 + 2) tiles.
        let small = tile < 1 << 20;
        let counts = if small { tiles::counts_near(self.k, &self.tree, number) } else { Vec::new() };
        counts.iter().any(|count| count.tile == tile && self.scalar(count.extent) == view.extents[axis])
    }

    /// The number of coordinates inside the tensor from the thread's first one on. The first coordinate of the tile is inside, so that
    /// nothing overflows.
    fn left(&mut self, begins: Reg, at: Reg, extent: Reg) -> Bound {
        let left = self.b.int(IntBin::Sub, extent, at);
        let none = self.b.i32(0);
        Bound::Left(self.b.select(begins, left, none))
    }

    /// The address of the thread's first element. Loop-variant parts are added last, so that the rest is hoisted.
    fn first_address(&mut self, view: &View, starts: &[Start], threads: &[Reg], sums: &[Reg]) -> Reg {
        let moves = |b: &lane::Builder, axis: usize| b.level(starts[axis].at) > b.level(threads[axis]);
        let all = 0..starts.len();
        let still: Vec<Reg> =
            all.clone().map(|axis| if moves(&self.b, axis) { threads[axis] } else { sums[axis] }).collect();
        let mut address = self.address_of(view, &still);
        for axis in all.filter(|axis| moves(&self.b, *axis)).collect::<Vec<_>>() {
            let bytes = self.bytes_along(view, axis, starts[axis].at);
            address = self.b.add(address, bytes);
        }
        address
    }

    /// The distance of `steps` coordinates along an axis, in bytes.
    pub(super) fn bytes_along(&mut self, view: &View, axis: usize, steps: Reg) -> Reg {
        let signed = lane::OpKind::MulWide { signed: true };
        if self.is_unit(view, axis) {
            let bytes = self.b.i32(elem_bytes(view.elem).cast_signed());
            return self.b.one(signed, &[steps, bytes]);
        }
        let elements = if self.laid.index32 {
            // The stride of an axis of extent 1 is arbitrary, but then the number of steps is 0.
            let stride = self.narrow_stride(view, axis);
            self.b.one(signed, &[steps, stride])
        } else {
            let wide = self.b.widen(steps);
            self.b.mul(wide, view.strides[axis])
        };
        self.elements_to_bytes(view.elem, elements)
    }

    /// The starts of a tile along each axis.
    pub(super) fn starts(&mut self, unit: Unit, coords: &[Value], extents: &[u32]) -> Vec<Start> {
        let mut starts = Vec::new();
        for (coord, extent) in coords.iter().zip(extents) {
            let number = self.scalar(*coord);
            if unit == Unit::Elem {
                starts.push(Start { at: number, exists: None });
                continue;
            }
            let tiles = self.b.i32((1u32 << 31).div_ceil(*extent).cast_signed());
            let exists = self.b.cmp_u(Pred::Lt, number, tiles);
            let extent = self.b.i32(extent.cast_signed());
            starts.push(Start { at: self.b.mul(number, extent), exists: Some(exists) });
        }
        starts
    }

    /// The address of an element; for a 4-bit element, the address of its byte.
    pub(super) fn address_of(&mut self, view: &View, at: &[Reg]) -> Reg {
        let position = self.position(view, at);
        self.address_at(view, position)
    }

    /// The address of the element at a position.
    pub(super) fn address_at(&mut self, view: &View, position: Reg) -> Reg {
        let bytes = self.elements_to_bytes(view.elem, position);
        self.b.add(view.address, bytes)
    }

    /// The distance of an element from a view's address, in elements, 64 bits.
    pub(super) fn position(&mut self, view: &View, at: &[Reg]) -> Reg {
        let sum = if self.laid.index32 {
            // By assumption, offsets fit in 32 bits.
            let mut sum = self.b.i32(0);
            for (axis, coord) in at.iter().enumerate() {
                let stride = self.narrow_stride(view, axis);
                let part = self.b.mul(*coord, stride);
                sum = self.b.add(sum, part);
            }
            self.b.widen(sum)
        } else {
            let mut sum = self.b.i64(0);
            for (axis, coord) in at.iter().enumerate() {
                let wide = self.b.widen(*coord);
                let part = self.b.mul(wide, view.strides[axis]);
                sum = self.b.add(sum, part);
            }
            sum
        };
        match view.start {
            Some(start) => self.b.add(start, sum),
            None => sum,
        }
    }

    /// The low 32 bits of a stride; 1 along the contiguous axis.
    pub(super) fn narrow_stride(&mut self, view: &View, axis: usize) -> Reg {
        if self.is_unit(view, axis) {
            return self.b.i32(1);
        }
        self.b.one(lane::OpKind::Truncate(lane::Ty::B32), &[view.strides[axis]])
    }

    /// Whether the elements along an axis are known to be contiguous.
    pub(super) fn is_unit(&self, view: &View, axis: usize) -> bool {
        let packed = view.elem.bits() < 8 && view.packing != Packing::Apart;
        axis + 1 == view.strides.len() && (view.aligned || packed)
    }

    /// The address of the element at `part` relative to the thread's first. Rows are addressed from the previous row, so that one distance
    /// is shared by all.
    pub(super) fn window_place(&mut self, window: &mut Window, part: Coords) -> Place {
        let view = &window.view;
        let (mut row, mut offset) = (part, 0);
        for axis in (0..view.strides.len()).filter(|axis| self.is_unit(view, *axis)) {
            row[axis] = 0;
            offset = part[axis] * view.elem.bits() / 8;
        }
        let place = |address| Place { space: Space::Global, address, offset: offset.cast_signed() };
        if let Some((_, address)) = window.rows.iter().find(|(at, _)| *at == row) {
            return place(*address);
        }
        let Some((from, mut address)) = window.rows.last().copied() else {
            self.b.fail("a window without its first element".to_owned());
            return place(view.address);
        };
        for axis in (0..view.strides.len()).filter(|axis| row[*axis] != from[*axis]) {
            let n = self.b.i64(i64::from(row[axis]) - i64::from(from[axis]));
            let elements = self.b.mul(view.strides[axis], n);
            let bytes = self.elements_to_bytes(view.elem, elements);
            address = self.b.add(address, bytes);
        }
        window.rows.push((row, address));
        place(address)
    }

    /// Whether the element at `part` relative to the thread's first is inside the tensor. Conditions on whole rows are folded into the
    /// number of remaining rows, so that each row takes one comparison, and no condition is live for long.
    pub(super) fn window_mask(&mut self, window: &Window, part: Coords) -> Option<Reg> {
        let mut mask = window.exists;
        for (axis, bound) in window.bounds.iter().enumerate().rev() {
            mask = match (bound, mask) {
                (Bound::Whole, mask) => mask,
                (Bound::Left(left), None) => Some(self.more_than(*left, part[axis])),
                (Bound::Left(left), Some(row)) if window.whole_rows => {
                    let none = self.b.i32(0);
                    let left = self.b.select(row, *left, none);
                    Some(self.more_than(left, part[axis]))
                }
                (Bound::Left(left), Some(row)) => {
                    let inside = self.more_than(*left, part[axis]);
                    Some(self.b.and(row, inside))
                }
                (Bound::Extent(at, extent), row) => {
                    let at = self.b.add_const(*at, i64::from(part[axis]));
                    let inside = self.b.cmp_u(Pred::Lt, at, *extent);
                    self.both(row, Some(inside))
                }
            };
        }
        mask
    }

    fn more_than(&mut self, left: Reg, n: u32) -> Reg {
        let n = self.b.i32(n.cast_signed());
        self.b.cmp_s(Pred::Gt, left, n)
    }

    pub(super) fn both(&mut self, a: Option<Reg>, b: Option<Reg>) -> Option<Reg> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.b.and(a, b)),
            (a, b) => a.or(b),
        }
    }

    /// The conjunction of a mask and the condition that the element belongs to the tile.
    pub(super) fn inside_tile(&mut self, layout: &Layout, part: Coords, mask: Option<Reg>) -> Option<Reg> {
        let mut mask = mask;
        for axis in (0..layout.rank()).filter(|a| layout.is_padded(*a)) {
            let inside = self.is_inside(layout, axis, part[axis]);
            mask = self.both(mask, Some(inside));
        }
        mask
    }

    /// Loads `n` adjacent elements; `also` is a further condition.
    pub(super) fn load_group(
        &mut self,
        window: &mut Window,
        part: Coords,
        n: u32,
        pad: Reg,
        also: Option<Reg>,
    ) -> Vec<Reg> {
        let from = window.buffer.as_ref().filter(|_| self.b.func().constant(pad) == Some(0));
        if let Some(loaded) = from.and_then(|from| self.load_buffered(from, part, n, also)) {
            return loaded;
        }
        let mask = self.window_mask(window, part);
        let mask = self.both(mask, also);
        let place = self.window_place(window, part);
        let elem = window.view.elem;
        if let (Some(first), 1) = (window.position, n) {
            let position = self.window_position(&window.view, first, part);
            return vec![self.load_half(&window.view, position, mask.map(|m| (m, pad)))];
        }
        self.load_vector(place, elem, n, mask.map(|m| (m, pad)))
    }

    /// The position of the element at `part` relative to the thread's first, in elements from the view's address.
    pub(super) fn window_position(&mut self, view: &View, first: Reg, part: Coords) -> Reg {
        let mut position = first;
        for (axis, stride) in view.strides.iter().enumerate().filter(|(axis, _)| part[*axis] > 0) {
            let n = self.b.i64(i64::from(part[axis]));
            let elements = if self.is_unit(view, axis) { n } else { self.b.mul(*stride, n) };
            position = self.b.add(position, elements);
        }
        position
    }
}
