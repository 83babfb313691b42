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
use crate::analysis::vector;
use crate::ir::{Elem, Op, Pred, Unit, Value};
use crate::lane::{self, IntBin, Space};
use crate::layout::{Coords, Layout};

/// A tile's place in a tensor, for one thread.
pub(super) struct Window {
    view: View,
    /// The coordinates of the thread's first element.
    at: Vec<Reg>,
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
            return Err(self.unsupported("a store of 4-bit elements at odd columns"));
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
        let mut exists = view.exists;
        let mut at = Vec::new();
        for (axis, coord) in coords.iter().enumerate() {
            let origin = self.scalar(*coord);
            let origin = match unit {
                Unit::Elem => origin,
                Unit::Tile => {
                    let extent = self.b.i32(extents[axis].cast_signed());
                    let exact = self.b.one(lane::OpKind::MulWide { signed: true }, &[origin, extent]);
                    let low = self.b.mul(origin, extent);
                    let again = self.b.widen(low);
                    let fits = self.b.cmp_s(Pred::Eq, exact, again);
                    exists = Some(match exists {
                        Some(e) => self.b.and(e, fits),
                        None => fits,
                    });
                    low
                }
            };
            let thread = self.thread_coord(layout, axis);
            at.push(self.b.add(origin, thread));
        }
        let last = coords.len() - 1;
        let vector = vector::tile_width(self.k, view.elem.bits(), view.aligned, unit, (extents[last], coords[last]));
        let address = self.address_of(view, &at);
        Window { view: view.clone(), at, address, exists, vector }
    }

    /// The address of an element by its coordinates.
    pub(super) fn address_of(&mut self, view: &View, at: &[Reg]) -> Reg {
        if self.laid.index32 {
            // Offsets fit in 32 bits: that is one of the assumptions.
            let mut sum = self.b.i32(0);
            for (axis, coord) in at.iter().enumerate() {
                let stride = self.narrow_stride(view, axis);
                let part = self.b.mul(*coord, stride);
                sum = self.b.add(sum, part);
            }
            let wide = self.b.widen(sum);
            let bytes = self.elements_to_bytes(view.elem, wide);
            return self.b.add(view.address, bytes);
        }
        let mut sum = self.b.i64(0);
        for (axis, coord) in at.iter().enumerate() {
            let wide = self.b.widen(*coord);
            let part = self.b.mul(wide, view.strides[axis]);
            sum = self.b.add(sum, part);
        }
        let bytes = self.elements_to_bytes(view.elem, sum);
        self.b.add(view.address, bytes)
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
        axis + 1 == view.strides.len() && (view.aligned || view.elem.bits() < 8)
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
            return vec![self.load_nibble(window, part, mask, pad)];
        }
        self.load_vector(place, elem, n, mask.map(|m| (m, pad)))
    }

    /// One element of 4 bits: which half of its byte is known only at run time.
    fn load_nibble(&mut self, window: &Window, part: Coords, mask: Option<Reg>, pad: Reg) -> Reg {
        let last = window.at.len() - 1;
        let place = self.window_place(window, Coords::default());
        // The address is that of the pair of the thread's first element, whose own column may be odd.
        let column = self.b.add_const(window.at[last], i64::from(part[last]));
        let one = self.b.i32(1);
        let pair = self.b.int(IntBin::ShrS, column, one);
        let first = self.b.int(IntBin::ShrS, window.at[last], one);
        let skip = self.b.int(IntBin::Sub, pair, first);
        let skip = self.b.widen(skip);
        let address = self.b.add(place.address, skip);
        let mut rows = part;
        rows[last] = 0;
        let rows = self.window_place(&Window { address, ..window.copy() }, rows);
        let zero = self.b.i32(0);
        let byte = self.load_vector(rows, Elem::U8, 1, mask.map(|m| (m, zero)));
        let odd = self.b.and(column, one);
        let two = self.b.i32(2);
        let by = self.b.int(IntBin::Shl, odd, two);
        let shifted = self.b.int(IntBin::ShrU, byte[0], by);
        let value = self.fields(shifted, 4, 1, window.view.elem.is_signed_int());
        match mask {
            Some(mask) => self.b.select(mask, value[0], pad),
            None => value[0],
        }
    }
}

impl Window {
    fn copy(&self) -> Window {
        Window {
            view: self.view.clone(),
            at: self.at.clone(),
            address: self.address,
            exists: self.exists,
            vector: self.vector,
        }
    }
}
