//! Copies of tiles to shared memory: asynchronous if the machine supports it and the padding is zero, otherwise through registers. The part
//! of the buffer beyond the tile is filled with zeros.

use super::global::Window;
use super::tensor::View;
use super::tile::{LoweredValue, Staged};
use super::vector::{Place, elem_bytes};
use super::{Lower, LowerError, Reg};
use crate::ir::{Elem, Op, OpId, Pred, Unit, Value};
use crate::lane;
use crate::layout::{Bit, Coords, Layout};

/// The words that a thread loads before it stores the first of them, where copies pass through registers.
const IN_FLIGHT: usize = 64;

/// The loads of a copy through registers whose addresses and conditions are computed before the first of them.
const AHEAD: usize = 8;

/// What an access has loaded: its first register, where it is stored and whether, and its elements.
type Loaded = (usize, (Place, Option<Reg>), Vec<Reg>);

/// What a copy through registers has loaded, and is to store.
#[derive(Clone, Debug)]
pub(super) struct Held {
    staged: Staged,
    layout: Layout,
    elem: Elem,
    /// The layout with columns first, if columns are stored.
    turned: Option<Layout>,
    loaded: Vec<Loaded>,
    words: usize,
    /// The copy.
    at: Option<OpId>,
}

/// A tile of a tensor as the source of a copy.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) view: View,
    pub(super) what: What,
    pub(super) pad: Reg,
}

/// The elements of a tensor that a copy reads.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// A tile at these coordinates.
    Tile(Unit, Vec<Value>),
    /// Rows with these indices, starting at a column.
    Rows(Vec<Value>, Value),
}

/// A tile of a tensor, as the source of a copy.
pub(super) struct Tile<'a> {
    pub(super) view: &'a View,
    pub(super) unit: Unit,
    pub(super) coords: &'a [Value],
    pub(super) value: Value,
    pub(super) pad: Reg,
}

/// Rows of a tensor selected by indices, as the source of a copy.
pub(super) struct Rows<'a> {
    pub(super) view: &'a View,
    /// One index, or a tile of indices, for each axis but the last.
    pub(super) rows: &'a [Value],
    /// The first column.
    pub(super) column: Value,
    pub(super) value: Value,
    pub(super) pad: Reg,
}

impl Lower<'_> {
    /// Defines a source that is a tile.
    pub(super) fn source(&mut self, op: &Op, unit: Unit) -> Result<(), LowerError> {
        let view = self.view(op.args[0])?;
        let rank = view.extents.len();
        let pad = self.scalar(op.args[rank + 1]);
        let source = Source { view, what: What::Tile(unit, op.args[1..=rank].to_vec()), pad };
        self.define(op.results[0], LoweredValue::Source(Box::new(source)));
        Ok(())
    }

    /// Defines a source that is rows.
    pub(super) fn source_rows(&mut self, op: &Op) -> Result<(), LowerError> {
        let view = self.view(op.args[0])?;
        let rank = view.extents.len();
        let pad = self.scalar(op.args[rank + 1]);
        let source = Source { view, what: What::Rows(op.args[1..rank].to_vec(), op.args[rank]), pad };
        self.define(op.results[0], LoweredValue::Source(Box::new(source)));
        Ok(())
    }

    /// Fills a buffer with zeros, since instructions may read beyond the tile.
    pub(super) fn clear(&mut self, staged: &Staged, elem: Elem) {
        let extents = &staged.encoding.extents;
        let layout = crate::plan::wide(extents, elem.bits(), self.target.lanes, self.warp_set.warps);
        let zero = self.zero(elem);
        let regs = vec![zero; layout.registers()];
        self.write_buffer(staged, &regs, &layout, elem);
    }

    /// Copies rows to shared memory, as [`Lower::load_to_buffer`] copies a tile. The buffer beyond the rows is filled with zeros.
    pub(super) fn rows_to_buffer(&mut self, from: &Rows<'_>, staged: &Staged, copy: bool) -> Result<(), LowerError> {
        let (view, pad) = (from.view, from.pad);
        let tile = self.extents(from.value);
        let e = &staged.encoding;
        if e.extents != tile {
            self.clear(staged, view.elem);
        }
        let layout = self.layout(from.value);
        let rows = self.row_indices(from.rows, &layout)?;
        let column = self.scalar(from.column);
        self.touch_view(view, false);
        self.touch(staged.region(), true);
        let n = self.row_vector(view, from.column, &layout).min(e.vector()).max(1);
        let is_zero = self.b.func().constant(pad) == Some(0);
        let bytes = n * elem_bytes(view.elem);
        if copy && !(is_zero && matches!(bytes, 4 | 8 | 16) && e.fast_axis() == 1 && e.extents == tile) {
            return Err(self.defect("an asynchronous copy that the machine does not support"));
        }
        let first = self.is_first_copy(&layout);
        for register in (0..layout.registers()).step_by(n as usize) {
            let part = layout.register_coords(register);
            let here = self.inside_tile(&layout, part, first);
            let at = self.row_element(&rows, register, column, &layout);
            let exists = self.exists(view, &at);
            let place = self.place(staged, &layout, register);
            if copy {
                let address = self.address_of(view, &at);
                let source = Place { space: lane::Space::Global, address, offset: 0 };
                self.copy_async([source, place], [Some(exists), here], bytes);
                continue;
            }
            for i in 0..n as usize {
                let at = self.row_element(&rows, register + i, column, &layout);
                let exists = self.exists(view, &at);
                let reg = self.masked_element(view, &at, Some((exists, pad)));
                let place = self.place(staged, &layout, register + i);
                self.store_vector(place, super::convert::in_buffer(view.elem), &[reg], here);
            }
        }
        Ok(())
    }

    /// Copies a tile to shared memory, asynchronously if the machine supports it and the padding is zero. Returns whether it is
    /// asynchronous.
    pub(super) fn load_to_buffer(&mut self, from: &Tile<'_>, staged: &Staged, copy: bool) -> Result<(), LowerError> {
        let (view, pad) = (from.view, from.pad);
        let elem = view.elem;
        let tile = self.extents(from.value);
        let e = &staged.encoding;
        let layout = self.layout(from.value);
        // Coordinates in units of tiles refer to the extents of the tile; those of the buffer may be larger.
        let mut window = self.window(view, from.unit, from.coords, &layout.with_extents(&tile));
        self.touch_view(view, false);
        // Where all copies pass through registers, what several of them load is loaded before the first is stored.
        let through_registers = self.target.lane_copies().is_none();
        let turned = columns_first(&layout).filter(|_| through_registers && e.fast_axis() == 0);
        let together = if through_registers { IN_FLIGHT } else { 1 };
        if !through_registers {
            self.touch(staged.region(), true);
        }
        let last = layout.rank() - 1;
        let n = layout.vector(last).min(e.vector()).max(1);
        let wide = window.vector.min(n);
        let is_zero = self.b.func().constant(pad) == Some(0);
        let bytes = wide * elem_bytes(elem);
        if copy && !(is_zero && wide == n && matches!(bytes, 4 | 8 | 16) && e.fast_axis() == last) {
            return Err(self.defect("an asynchronous copy that the machine does not support"));
        }
        let first = self.is_first_copy(&layout);
        let registers: Vec<usize> = (0..layout.registers()).step_by(n as usize).collect();
        let words = (n * elem.bits()).div_ceil(32).max(1) as usize;
        let per_group = if turned.is_some() { registers.len() } else { (together / words).max(1) };
        self.make_room(registers.len() * words);
        for group in registers.chunks(per_group) {
            if through_registers {
                self.addresses_ahead(&mut window, &layout, group, (n, wide));
            }
            let mut loaded = Vec::new();
            for register in group.iter().copied() {
                let part = layout.register_coords(register);
                // Threads with copies, or with padding of the layout, write nothing.
                let here = self.inside_tile(&layout, part, first);
                let place = self.place(staged, &layout, register);
                if copy {
                    let inside = self.inside_extents(&layout, part, &tile);
                    let mask = self.window_mask(&window, part);
                    let mask = self.both(mask, inside);
                    let source = self.window_place(&mut window, part);
                    self.copy_async([source, place], [mask, here], bytes);
                    continue;
                }
                let mut regs = Vec::new();
                for i in (0..n).step_by(wide as usize) {
                    let mut part = part;
                    part[last] += i;
                    let inside = self.inside_extents(&layout, part, &tile);
                    let loaded = self.load_group(&mut window, part, wide, pad, inside);
                    regs.extend(if is_zero { loaded } else { self.or_zero(&loaded, inside) });
                }
                loaded.push((register, (place, here), regs));
            }
            if copy {
                continue;
            }
            let (turned, words, at) = (turned.clone(), group.len() * words, self.at);
            let held = Held { staged: staged.clone(), layout: layout.clone(), elem, turned, loaded, words, at };
            if through_registers {
                self.make_room(words);
                self.held.push(held);
            } else {
                self.store_held(held);
            }
        }
        Ok(())
    }

    /// Loads a tile to registers, in its layout.
    pub(super) fn load_to_registers(&mut self, from: &Tile<'_>) -> Vec<Reg> {
        let (view, pad) = (from.view, from.pad);
        let (layout, tile) = (self.layout(from.value), self.extents(from.value));
        let mut window = self.window(view, from.unit, from.coords, &layout);
        self.touch_view(view, false);
        let last = layout.rank() - 1;
        let n = layout.vector(last).min(window.vector).max(1);
        let registers: Vec<usize> = (0..layout.registers()).step_by(n as usize).collect();
        self.addresses_ahead(&mut window, &layout, &registers, (n, n));
        let is_zero = self.b.func().constant(pad) == Some(0);
        let mut regs = Vec::new();
        for register in registers {
            let part = layout.register_coords(register);
            let inside = self.inside_extents(&layout, part, &tile);
            let loaded = self.load_group(&mut window, part, n, pad, inside);
            regs.extend(if is_zero { loaded } else { self.or_zero(&loaded, inside) });
        }
        regs
    }

    /// Stores registers to a buffer. Where all copies pass through registers, those of columns are put next to each other before, if these are
    /// stored as wholes.
    pub(super) fn write_in_order(&mut self, staged: &Staged, regs: &[Reg], layout: &Layout, elem: Elem) {
        let by_columns = self.target.lane_copies().is_none() && staged.encoding.fast_axis() == 0;
        match columns_first(layout).filter(|_| by_columns) {
            Some(turned) => {
                let regs = self.reorder(regs, layout, &turned, &|at| at);
                self.write_buffer(staged, &regs, &turned, elem);
            }
            None => self.write_buffer(staged, regs, layout, elem),
        }
    }

    /// Computes addresses and conditions, so that the loads after them follow each other; of many, the conditions would need too many registers.
    fn addresses_ahead(&mut self, window: &mut Window, layout: &Layout, group: &[usize], (n, wide): (u32, u32)) {
        let each: Vec<u32> = (0..n).step_by(wide as usize).collect();
        if group.len() * each.len() > AHEAD {
            return;
        }
        for (register, i) in group.iter().flat_map(|register| each.iter().map(|i| (*register, *i))) {
            let mut part = layout.register_coords(register);
            part[layout.rank() - 1] += i;
            if let Some(from) = &window.buffer {
                self.conditions_ahead(from, part);
                continue;
            }
            self.window_mask(window, part);
            self.window_place(window, part);
        }
    }

    /// Stores what copies hold in registers if they hold more than they should, together with so many words.
    fn make_room(&mut self, words: usize) {
        if self.held.iter().map(|held| held.words).sum::<usize>() + words > IN_FLIGHT {
            self.store_all_held();
        }
    }

    /// Stores what copies hold in registers: before anything that may read it.
    pub(super) fn store_all_held(&mut self) {
        let now = self.at;
        for held in std::mem::take(&mut self.held) {
            self.at = held.at;
            if let Some(id) = held.at {
                self.b.set_loc(self.k.op(id).loc);
            }
            if held.turned.is_none() {
                self.touch(held.staged.region(), true);
            }
            self.store_held(held);
        }
        self.at = now;
        if let Some(id) = now {
            self.b.set_loc(self.k.op(id).loc);
        }
    }

    fn store_held(&mut self, held: Held) {
        let Held { staged, layout, elem, turned, loaded, .. } = held;
        if let Some(turned) = &turned {
            let regs: Vec<Reg> = loaded.into_iter().flat_map(|(_, _, regs)| regs).collect();
            let regs = self.reorder(&regs, &layout, turned, &|at| at);
            self.write_buffer(&staged, &regs, turned, elem);
            return;
        }
        for (register, to, regs) in loaded {
            self.store_loaded((&staged, &layout, elem), register, to, &regs);
        }
    }

    /// Stores adjacent elements along the last axis, which were loaded together.
    fn store_loaded(
        &mut self,
        (staged, layout, elem): (&Staged, &Layout, Elem),
        register: usize,
        (place, here): (Place, Option<Reg>),
        regs: &[Reg],
    ) {
        let elem = super::convert::in_buffer(elem);
        if staged.encoding.fast_axis() + 1 == layout.rank() {
            self.store_vector(place, elem, regs, here);
            return;
        }
        for (i, reg) in regs.iter().enumerate() {
            let place = self.place(staged, layout, register + i);
            self.store_vector(place, elem, &[*reg], here);
        }
    }

    /// Issues one asynchronous copy. It writes zeros if the first mask is false, and is not executed if the second is false.
    fn copy_async(&mut self, [from, to]: [Place; 2], [mask, here]: [Option<Reg>; 2], bytes: u32) {
        let source = self.b.add_const(from.address, i64::from(from.offset));
        let masked = mask.is_some();
        let mut args = vec![to.address, source];
        args.extend(mask);
        let kind = lane::OpKind::Nv(lane::NvOp::CopyAsync {
            bytes: u8::try_from(bytes).unwrap_or(16),
            offset: to.offset,
            masked,
        });
        let Some(here) = here else {
            self.b.op(kind, &args);
            return;
        };
        let mut open = self.b.begin_if(here, &[]);
        self.b.op(kind, &args);
        self.b.terminate(lane::OpKind::Yield, &[]);
        self.b.begin_else(&mut open);
        self.b.terminate(lane::OpKind::Yield, &[]);
        self.b.end(open);
    }

    /// The loaded values, or zeros for elements outside of the tile.
    fn or_zero(&mut self, regs: &[Reg], inside: Option<Reg>) -> Vec<Reg> {
        let Some(inside) = inside else { return regs.to_vec() };
        regs.iter()
            .map(|reg| {
                let ty = self.b.ty(*reg);
                let zero = self.b.one(lane::OpKind::Const(ty, 0), &[]);
                self.b.one(lane::OpKind::Select, &[inside, *reg, zero])
            })
            .collect()
    }

    /// Whether the element of a register belongs to the tile; `None` if the layout covers nothing beyond the tile.
    fn inside_extents(&mut self, layout: &Layout, part: Coords, tile: &[u32]) -> Option<Reg> {
        let mut mask = None;
        for (axis, extent) in tile.iter().enumerate() {
            if *extent == layout.extents()[axis] && !layout.is_padded(axis) {
                continue;
            }
            let at = self.thread_coord(layout, axis);
            let at = self.b.add_const(at, i64::from(part[axis]));
            let extent = self.b.i32(extent.cast_signed());
            let inside = self.b.cmp_s(Pred::Lt, at, extent);
            mask = self.both(mask, Some(inside));
        }
        mask
    }
}

/// The layout with the registers of a thread's columns first, if it has blocks of rows and columns.
fn columns_first(layout: &Layout) -> Option<Layout> {
    let along = |axis: u8| move |bit: &&Bit| matches!(bit, Bit::Step { axis: own, .. } if *own == axis);
    let regs = layout.register_bits();
    let first: Vec<Bit> = regs.iter().filter(along(0)).chain(regs.iter().filter(along(1))).copied().collect();
    let blocks = layout.rank() == 2 && regs.iter().any(|bit| along(0)(&bit));
    blocks.then(|| Layout::new(layout.extents(), first, layout.lane_bits().to_vec(), layout.warp_bits().to_vec()))
}
