//! Tiles from and to tensors.
//!
//! The address of a thread's element is computed once per access, from the tile's origin and the thread's coordinates; registers
//! add constants (along the contiguous axis) or constant multiples of strides. Every access is masked by the tensor's extents:
//! coordinates are compared as unsigned numbers, so negative ones are outside too.
//!
//! Where the plan's assumptions hold of a view and of the origin, neighbours are accessed as vectors of up to 16 bytes, all or
//! nothing; else one by one.

use super::tensor::View;
use super::tile::Held;
use super::vector::Place;
use super::{Lower, LowerError, Reg};
use crate::analysis::vector::{self, Packing};
use crate::ir::{Op, Pred, Ty, Unit, Value};
use crate::lane::{self, Space};
use crate::layout::{Coords, Layout};

/// A tile's place in a tensor, for one thread.
pub(super) struct Window {
    view: View,
    /// The coordinates of the thread's first element.
    at: Vec<Reg>,
    /// Where it lies behind the view's address, in elements.
    position: Reg,
    /// Its address.
    address: Reg,
    /// The origin is a coordinate that exists, and so does the view.
    exists: Option<Reg>,
    /// How many neighbours along the last axis may be accessed at once.
    pub(super) vector: u32,
}

impl Lower<'_> {
    pub(super) fn load(&mut self, op: &Op, unit: Unit) -> Result<(), LowerError> {
        let value = op.results[0];
        let view = self.view(op.args[0])?;
        let rank = view.extents.len();
        let coords = op.args[1..=rank].to_vec();
        let pad = self.scalar(op.args[rank + 1]);
        let layout = self.layout(value);
        let window = self.window(&view, unit, &coords, &layout);
        self.touch_view(&view, false);
        let zero = self.zero(view.elem);
        let mut regs = vec![zero; layout.registers()];
        let n = window.vector.min(layout.vector(rank - 1));
        for first in (0..layout.registers()).step_by(n as usize) {
            let loaded = self.load_group(&window, layout.register_coords(first), n, pad, None);
            for (i, reg) in loaded.into_iter().enumerate() {
                regs[first + i] = reg;
            }
        }
        self.hold(value, Held::Tile(regs));
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

    /// Stores a tile that threads hold in a layout.
    pub(super) fn store_registers(
        &mut self,
        view: &View,
        (unit, coords): (Unit, &[Value]),
        regs: &[Reg],
        layout: &Layout,
    ) -> Result<(), LowerError> {
        let rank = view.extents.len();
        let window = self.window(view, unit, coords, layout);
        if view.elem.bits() < 8 && (window.vector < 2 || layout.vector(rank - 1) < 2) {
            if view.packing != Packing::Apart {
                return Err(self.defect("halves of bytes that threads store from registers"));
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
            let place = self.window_place(&window, part);
            self.store_vector(place, view.elem, &regs[register..register + n as usize], mask);
        }
        Ok(())
    }

    /// The place of a tile in a tensor.
    pub(super) fn window(&mut self, view: &View, unit: Unit, coords: &[Value], layout: &Layout) -> Window {
        let extents = layout.extents().to_vec();
        let (mut at, exists) = self.origin(view, unit, coords, &extents);
        for (axis, at) in at.iter_mut().enumerate() {
            let thread = self.thread_coord(layout, axis);
            *at = self.b.add(*at, thread);
        }
        let last = coords.len() - 1;
        let kind = (view.elem.bits(), view.aligned, view.packing);
        let vector = vector::tile_width(self.k, kind, unit, (extents[last], coords[last]));
        let position = self.position(view, &at);
        let address = self.address_at(view, position);
        Window { view: view.clone(), at, position, address, exists, vector }
    }

    /// The coordinates of a tile's first element, and whether they exist.
    pub(super) fn origin(
        &mut self,
        view: &View,
        unit: Unit,
        coords: &[Value],
        extents: &[u32],
    ) -> (Vec<Reg>, Option<Reg>) {
        let mut exists = view.exists;
        let mut at = Vec::new();
        for (coord, extent) in coords.iter().zip(extents) {
            let origin = self.scalar(*coord);
            if unit == Unit::Elem {
                at.push(origin);
                continue;
            }
            let extent = self.b.i32(extent.cast_signed());
            let exact = self.b.one(lane::OpKind::MulWide { signed: true }, &[origin, extent]);
            let low = self.b.mul(origin, extent);
            let again = self.b.widen(low);
            let fits = self.b.cmp_s(Pred::Eq, exact, again);
            exists = self.both(exists, Some(fits));
            at.push(low);
        }
        (at, exists)
    }

    /// The address of an element by its coordinates; of a 4-bit one, of its byte.
    pub(super) fn address_of(&mut self, view: &View, at: &[Reg]) -> Reg {
        let position = self.position(view, at);
        self.address_at(view, position)
    }

    /// The address of the element of a position.
    pub(super) fn address_at(&mut self, view: &View, position: Reg) -> Reg {
        let bytes = self.elements_to_bytes(view.elem, position);
        self.b.add(view.address, bytes)
    }

    /// How many elements lie between a view's address and an element, 64 bits.
    pub(super) fn position(&mut self, view: &View, at: &[Reg]) -> Reg {
        let sum = if self.laid.index32 {
            // Offsets fit in 32 bits: that is one of the assumptions.
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

    /// A stride of 32 bits; 1 along the contiguous axis.
    fn narrow_stride(&mut self, view: &View, axis: usize) -> Reg {
        if self.is_unit(view, axis) {
            return self.b.i32(1);
        }
        self.b.one(lane::OpKind::Truncate(lane::Ty::B32), &[view.strides[axis]])
    }

    /// Whether the elements along an axis are known to be neighbours.
    fn is_unit(&self, view: &View, axis: usize) -> bool {
        let packed = view.elem.bits() < 8 && view.packing != Packing::Apart;
        axis + 1 == view.strides.len() && (view.aligned || packed)
    }

    /// Where the element lies that is `part` beyond the thread's first.
    pub(super) fn window_place(&mut self, window: &Window, part: Coords) -> Place {
        let view = &window.view;
        let mut address = window.address;
        let mut offset = 0;
        for (axis, stride) in view.strides.iter().enumerate() {
            if part[axis] == 0 {
                continue;
            }
            if self.is_unit(view, axis) {
                offset += part[axis] * view.elem.bits() / 8;
                continue;
            }
            let n = self.b.i64(i64::from(part[axis]));
            let elements = self.b.mul(*stride, n);
            let bytes = self.elements_to_bytes(view.elem, elements);
            address = self.b.add(address, bytes);
        }
        Place { space: Space::Global, address, offset: offset.cast_signed() }
    }

    /// Whether the element that is `part` beyond the thread's first exists.
    pub(super) fn window_mask(&mut self, window: &Window, part: Coords) -> Option<Reg> {
        let mut mask = window.exists;
        for (axis, at) in window.at.iter().enumerate() {
            let at = self.b.add_const(*at, i64::from(part[axis]));
            let inside = self.b.cmp_u(Pred::Lt, at, window.view.extents[axis]);
            mask = self.both(mask, Some(inside));
        }
        mask
    }

    pub(super) fn both(&mut self, a: Option<Reg>, b: Option<Reg>) -> Option<Reg> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.b.and(a, b)),
            (a, b) => a.or(b),
        }
    }

    /// A mask, and that the element belongs to the tile.
    pub(super) fn inside_tile(&mut self, layout: &Layout, part: Coords, mask: Option<Reg>) -> Option<Reg> {
        let mut mask = mask;
        for axis in (0..layout.rank()).filter(|a| layout.is_padded(*a)) {
            let inside = self.is_inside(layout, axis, part[axis]);
            mask = self.both(mask, Some(inside));
        }
        mask
    }

    /// Loads `n` neighbours; `also` restricts what is loaded.
    pub(super) fn load_group(
        &mut self,
        window: &Window,
        part: Coords,
        n: u32,
        pad: Reg,
        also: Option<Reg>,
    ) -> Vec<Reg> {
        let mask = self.window_mask(window, part);
        let mask = self.both(mask, also);
        let place = self.window_place(window, part);
        let elem = window.view.elem;
        if elem.bits() < 8 && n == 1 {
            let position = self.window_position(window, part);
            return vec![self.load_half(&window.view, position, mask.map(|m| (m, pad)))];
        }
        self.load_vector(place, elem, n, mask.map(|m| (m, pad)))
    }

    /// Where the element lies that is `part` beyond the thread's first, in elements behind the view's address.
    pub(super) fn window_position(&mut self, window: &Window, part: Coords) -> Reg {
        let mut position = window.position;
        for (axis, stride) in window.view.strides.iter().enumerate().filter(|(axis, _)| part[*axis] > 0) {
            let n = self.b.i64(i64::from(part[axis]));
            let elements = if self.is_unit(&window.view, axis) { n } else { self.b.mul(*stride, n) };
            position = self.b.add(position, elements);
        }
        position
    }
}
