//! Loads and stores of 4-bit elements that are not accessed in pairs.
//!
//! A store of half a byte reads the byte and writes both halves. Two threads never do this to the same byte concurrently: within a store,
//! the tile goes through shared memory, and each byte is assembled by one thread; stores of one program to the same bytes are ordered like
//! all of its accesses; and no two programs write to one byte, by the output rule ([`crate::analysis::partition`]).

use super::tensor::View;
use super::tile::Staged;
use super::vector::Place;
use super::{Lower, Reg};
use crate::ir::{Elem, Pred, Unit, Value};
use crate::lane::{IntBin, Space};
use crate::layout::{Coords, Layout};

impl Lower<'_> {
    /// Loads an element by its position from the view's address; the padding if the mask is false.
    pub(super) fn load_half(&mut self, view: &View, position: Reg, mask: Option<(Reg, Reg)>) -> Reg {
        let address = self.address_at(view, position);
        let zero = self.b.i32(0);
        let place = Place { space: Space::Global, address, offset: 0 };
        let byte = self.load_vector(place, Elem::U8, 1, mask.map(|(m, _)| (m, zero)))[0];
        let by = self.half_shift(position);
        let shifted = self.b.int(IntBin::ShrU, byte, by);
        let value = self.fields(shifted, 4, 1, view.elem.is_signed_int())[0];
        match mask {
            Some((mask, pad)) => self.b.select(mask, value, pad),
            None => value,
        }
    }

    /// Stores an element by its position if the mask is true, and keeps the other half of its byte. No other thread may access that byte
    /// before the next barrier.
    pub(super) fn store_half(&mut self, view: &View, position: Reg, value: Reg, mask: Option<Reg>) {
        let address = self.address_at(view, position);
        let place = Place { space: Space::Global, address, offset: 0 };
        let zero = self.b.i32(0);
        let old = self.load_vector(place, Elem::U8, 1, mask.map(|m| (m, zero)))[0];
        let by = self.half_shift(position);
        let fifteen = self.b.i32(15);
        let field = self.b.int(IntBin::Shl, fifteen, by);
        let gone = self.b.and(old, field);
        let kept = self.b.int(IntBin::Xor, old, gone);
        let low = self.b.and(value, fifteen);
        let new = self.b.int(IntBin::Shl, low, by);
        let byte = self.b.or(kept, new);
        self.store_vector(place, Elem::U8, &[byte], mask);
    }

    /// The shift of an element in its byte, in bits.
    fn half_shift(&mut self, position: Reg) -> Reg {
        let odd = self.parity_of(position);
        let two = self.b.i32(2);
        self.b.int(IntBin::Shl, odd, two)
    }

    /// The lowest bit of a position, as 32 bits.
    fn parity_of(&mut self, position: Reg) -> Reg {
        let low = self.b.one(crate::lane::OpKind::Truncate(crate::lane::Ty::B32), &[position]);
        let one = self.b.i32(1);
        self.b.and(low, one)
    }

    /// Stores elements directly, if no two of them share a byte.
    pub(super) fn store_apart(&mut self, view: &View, at: (Unit, &[Value]), regs: &[Reg], layout: &Layout) {
        let window = self.window(view, at.0, at.1, layout);
        let Some(start) = window.position else {
            return self.b.fail("elements that share bytes, but are not contiguous".to_owned());
        };
        self.touch_view(view, true);
        let first = self.is_first_copy(layout);
        for (register, reg) in regs.iter().enumerate() {
            let part = layout.register_coords(register);
            let mask = self.window_mask(&window, part);
            let mask = self.both(mask, first);
            let mask = self.inside_tile(layout, part, mask);
            let position = self.window_position(view, start, part);
            self.store_half(view, position, *reg, mask);
        }
    }

    /// Stores a tile from a buffer by bytes: each byte is assembled by one thread from two elements of the tile, or from one element of the
    /// tile and one that is kept.
    pub(super) fn store_pairs(&mut self, view: &View, (unit, coords): (Unit, &[Value]), tile: &[u32], staged: &Staged) {
        let last = tile.len() - 1;
        let extents = &staged.encoding.extents;
        let layout = crate::plan::wide(extents, view.elem.bits(), self.target.lanes, self.warp_set.warps);
        let starts = self.starts(unit, coords, tile);
        let exists = starts.iter().fold(view.exists, |all, start| self.both(all, start.exists));
        let mut origin: Vec<Reg> = starts.iter().map(|start| start.at).collect();
        let position = self.position(view, &origin);
        let odd = self.parity_of(position);
        origin[last] = self.b.int(IntBin::Sub, origin[last], odd);
        let mut thread: Vec<Reg> = (0..tile.len()).map(|axis| self.thread_coord(&layout, axis)).collect();
        let at: Vec<Reg> = origin.iter().zip(&thread).map(|(o, t)| self.b.add(*o, *t)).collect();
        thread[last] = self.b.int(IntBin::Sub, thread[last], odd);
        self.touch_view(view, true);
        let first = self.is_first_copy(&layout);
        let row = self.both(exists, first);
        for register in (0..layout.registers()).step_by(2) {
            let part = layout.register_coords(register);
            let byte = Byte { view, tile, staged, thread: &thread, at: &at, part, row };
            self.store_byte(&byte, &layout);
        }
    }

    /// Stores those elements of a byte that are in the tile and in the tensor, and keeps the others.
    fn store_byte(&mut self, byte: &Byte<'_>, layout: &Layout) {
        let Byte { view, tile, staged, thread, at, part, row } = *byte;
        let last = tile.len() - 1;
        let mut row = row;
        for axis in 0..last {
            let at = self.b.add_const(at[axis], i64::from(part[axis]));
            let inside = self.b.cmp_u(Pred::Lt, at, view.extents[axis]);
            row = self.both(row, Some(inside));
            if layout.is_padded(axis) {
                let inside = self.is_inside(layout, axis, part[axis]);
                row = self.both(row, Some(inside));
            }
        }
        let reach = super::convert::reach(layout);
        let elem = super::convert::in_buffer(view.elem);
        let zero = self.b.i32(0);
        let mut halves = Vec::new();
        for half in 0..2 {
            let mut part = part;
            part[last] += half;
            let in_tile = self.b.add_const(thread[last], i64::from(part[last]));
            let extent = self.b.i32(tile[last].cast_signed());
            let in_tile = self.b.cmp_u(Pred::Lt, in_tile, extent);
            let column = self.b.add_const(at[last], i64::from(part[last]));
            let in_tensor = self.b.cmp_u(Pred::Lt, column, view.extents[last]);
            let stored = self.b.and(in_tile, in_tensor);
            let stored = self.both(row, Some(stored)).unwrap_or(stored);
            let place = self.buffer_place(staged, thread, reach, part);
            halves.push((stored, self.load_vector(place, elem, 1, Some((stored, zero)))[0]));
        }
        let [(low_stored, low), (high_stored, high)] = halves[..] else {
            return self.b.fail("a byte that does not have two elements".to_owned());
        };
        let moved: Vec<Reg> = at.iter().zip(part).map(|(a, p)| self.b.add_const(*a, i64::from(p))).collect();
        let address = self.address_of(view, &moved);
        let place = Place { space: Space::Global, address, offset: 0 };
        let (any, both) = (self.b.or(low_stored, high_stored), self.b.and(low_stored, high_stored));
        let partly = self.b.not(both);
        let partly = self.b.and(any, partly);
        let old = self.load_vector(place, Elem::U8, 1, Some((partly, zero)))[0];
        let four = self.b.i32(4);
        let old_high = self.b.int(IntBin::ShrU, old, four);
        let low = self.b.select(low_stored, low, old);
        let high = self.b.select(high_stored, high, old_high);
        self.store_vector(place, view.elem, &[low, high], Some(any));
    }
}

/// A byte of a tile and its destination, for one thread.
#[derive(Clone, Copy)]
struct Byte<'a> {
    view: &'a View,
    /// The extents of the tile.
    tile: &'a [u32],
    /// The buffer with the tile, which has room for one more column.
    staged: &'a Staged,
    /// The coordinates in the tile of the first element of the thread's first byte. They are those before the thread's first element if
    /// that is in the upper half of its byte.
    thread: &'a [Reg],
    /// The same coordinates in the tensor.
    at: &'a [Reg],
    /// The contribution of the register to both.
    part: Coords,
    /// The condition under which the thread stores at all; the origin of the tile must exist.
    row: Option<Reg>,
}
