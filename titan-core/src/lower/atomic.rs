//! Atomic updates: by an instruction if there is one, otherwise by compare-and-swap.

use super::tensor::View;
use super::tile::LoweredValue;
use super::{Lower, LowerError, Reg, scalar};
use crate::ir::{AtomicOp, Elem, FetchOp, Op, Pred, Unit};
use crate::lane::{self, AtomicFn, Space, Ty};
use crate::layout::Layout;

/// An update of one element: its address, the function, and the operand.
#[derive(Clone, Copy)]
struct Update {
    elem: Elem,
    address: Reg,
    f: FetchOp,
    value: Reg,
}

/// The elements that index tiles select.
struct Selected {
    view: View,
    /// The registers of the index tile of each axis.
    columns: Vec<Vec<Reg>>,
    layout: Layout,
    /// Whether this thread is the first of those that hold the same elements; `None` if no two threads do.
    first: Option<Reg>,
}

impl Lower<'_> {
    /// Lowers atomic updates of elements selected by index tiles.
    pub(super) fn atomic(&mut self, op: &Op, f: AtomicOp) -> Result<(), LowerError> {
        self.fetched(op, function(f)).map(drop)
    }

    /// The same updates, with what they have found; zero where there is no element.
    pub(super) fn fetch_update(&mut self, op: &Op, f: FetchOp) -> Result<(), LowerError> {
        let found = self.fetched(op, f)?;
        self.define(op.results[0], LoweredValue::Tile(found));
        Ok(())
    }

    fn fetched(&mut self, op: &Op, f: FetchOp) -> Result<Vec<Reg>, LowerError> {
        let selected = self.selected(op, 1)?;
        let elem = selected.view.elem;
        let regs = self.regs(op.args[selected.view.extents.len() + 1]);
        let mut found = Vec::new();
        for (i, value) in regs.into_iter().enumerate() {
            let (address, mask) = self.place_of(&selected, i);
            found.push(self.update(Update { elem, address, f, value }, mask)?);
        }
        Ok(found)
    }

    /// Lowers comparisons and exchanges of elements selected by index tiles.
    pub(super) fn compare_exchange(&mut self, op: &Op) -> Result<(), LowerError> {
        let selected = self.selected(op, 2)?;
        let (elem, rank) = (selected.view.elem, selected.view.extents.len());
        if elem.bits() < 16 {
            return Err(self.unsupported(format!("an atomic update of {elem}")));
        }
        let (current, new) = (self.regs(op.args[rank + 1]), self.regs(op.args[rank + 2]));
        let (mut found, mut done) = (Vec::new(), Vec::new());
        for (i, (current, new)) in current.into_iter().zip(new).enumerate() {
            let (address, mask) = self.place_of(&selected, i);
            let ty = self.b.ty(new);
            let mut open = self.b.begin_if(mask, &[ty, Ty::Pred]);
            let (current, new) = (self.stored_bits(elem, current), self.stored_bits(elem, new));
            let seen = self.b.one(lane::OpKind::CompareSwap(Space::Global), &[address, current, new]);
            let same = self.same_bits(seen, current);
            let old = self.held_bits(elem, seen);
            self.b.terminate(lane::OpKind::Yield, &[old, same]);
            self.b.begin_else(&mut open);
            let (zero, no) = (self.zero(elem), self.b.pred(false));
            self.b.terminate(lane::OpKind::Yield, &[zero, no]);
            let both = self.b.end(open);
            found.push(both[0]);
            done.push(both[1]);
        }
        self.define(op.results[0], LoweredValue::Tile(found));
        self.define(op.results[1], LoweredValue::Tile(done));
        Ok(())
    }

    /// The elements that index tiles select; the last `values` operands are tiles of elements.
    fn selected(&mut self, op: &Op, values: usize) -> Result<Selected, LowerError> {
        let view = self.view(op.args[0])?;
        let rank = view.extents.len();
        let layout = self.layout(op.args[rank + values]);
        let columns = self.index_columns(&op.args[1..=rank], &layout)?;
        self.touch_view(&view, true);
        let first = self.is_first_copy(&layout);
        Ok(Selected { view, columns, layout, first })
    }

    /// The address of the element that a register of the index tiles selects, and whether this thread updates it.
    fn place_of(&mut self, selected: &Selected, register: usize) -> (Reg, Reg) {
        let Selected { view, columns, layout, first } = selected;
        let at: Vec<Reg> = columns.iter().map(|c| c[register]).collect();
        let exists = self.exists(view, &at);
        let mask = self.both(Some(exists), *first);
        let mask = self.inside_tile(layout, layout.register_coords(register), mask).unwrap_or(exists);
        (self.address_of(view, &at), mask)
    }

    /// Lowers the atomic update of a tile at tile coordinates.
    pub(super) fn atomic_tile(&mut self, op: &Op, f: AtomicOp) -> Result<(), LowerError> {
        let view = self.view(op.args[0])?;
        let rank = view.extents.len();
        let value = op.args[rank + 1];
        let layout = self.layout(value);
        let regs = self.regs(value);
        let mut window = self.window(&view, Unit::Tile, &op.args[1..=rank], &layout);
        self.touch_view(&view, true);
        let first = self.is_first_copy(&layout);
        for (i, value) in regs.iter().enumerate() {
            let part = layout.register_coords(i);
            let mask = self.window_mask(&window, part);
            let mask = self.both(mask, first);
            let yes = self.b.pred(true);
            let mask = self.inside_tile(&layout, part, mask).unwrap_or(yes);
            let place = self.window_place(&mut window, part);
            let address = self.b.add_const(place.address, i64::from(place.offset));
            self.update(Update { elem: view.elem, address, f: function(f), value: *value }, mask)?;
        }
        Ok(())
    }

    /// Updates an element if the mask is true; returns what it was, and zero if the mask is false.
    fn update(&mut self, update: Update, mask: Reg) -> Result<Reg, LowerError> {
        let Update { elem, address, f, value } = update;
        if let Some(op) = instruction(elem, f) {
            let kind = lane::OpKind::Atomic { op, space: Space::Global, masked: true };
            return Ok(self.b.one(kind, &[address, value, mask]));
        }
        if elem.bits() < 16 {
            return Err(self.unsupported(format!("an atomic update of {elem}")));
        }
        let ty = self.b.ty(value);
        let mut open = self.b.begin_if(mask, &[ty]);
        let old = self.swap_until_done(update);
        self.b.terminate(lane::OpKind::Yield, &[old]);
        self.b.begin_else(&mut open);
        let zero = self.zero(elem);
        self.b.terminate(lane::OpKind::Yield, &[zero]);
        let ended = self.b.end(open);
        Ok(ended[0])
    }

    /// A compare-and-swap loop: reads, computes and swaps, and repeats if another thread has changed the value in between. Returns the value
    /// that it has replaced.
    fn swap_until_done(&mut self, update: Update) -> Reg {
        let Update { elem, address, f, value } = update;
        let bytes = u8::try_from(elem.bits() / 8).unwrap_or(4);
        let load = lane::OpKind::Load { space: Space::Global, bytes, n: 1, offset: 0, masked: false };
        let seen = self.b.one(load, &[address]);
        let ty = self.b.ty(value);
        let (open, carried) = self.b.begin_loop(&[seen], &[ty]);
        let old = self.held_bits(elem, carried[0]);
        let new = match f.binary() {
            Some(op) => scalar::binary(&mut self.b, self.target, op, elem, old, value),
            None => value,
        };
        let new = self.stored_bits(elem, new);
        let found = self.b.one(lane::OpKind::CompareSwap(Space::Global), &[address, carried[0], new]);
        let same = self.same_bits(found, carried[0]);
        let mut done = self.b.begin_if(same, &[]);
        self.b.terminate(lane::OpKind::Break(0), &[old]);
        self.b.begin_else(&mut done);
        self.b.terminate(lane::OpKind::Yield, &[]);
        self.b.end(done);
        self.b.terminate(lane::OpKind::Continue(0), &[found]);
        let ended = self.b.end(open);
        ended.first().copied().unwrap_or_else(|| self.missing())
    }

    fn same_bits(&mut self, a: Reg, b: Reg) -> Reg {
        let widen = |b: &mut lane::Builder, r: Reg| match b.ty(r) {
            Ty::B16 => b.one(lane::OpKind::Extend { from: 16, signed: false, to: Ty::B32 }, &[r]),
            Ty::Pred | Ty::B32 | Ty::B64 => r,
        };
        let (a, c) = (widen(&mut self.b, a), widen(&mut self.b, b));
        self.b.cmp_u(Pred::Eq, a, c)
    }

    /// Converts the bits in memory to the register of an element: 16-bit integers are held in `b32`.
    fn held_bits(&mut self, elem: Elem, raw: Reg) -> Reg {
        if elem.is_float() || elem.bits() != 16 {
            return raw;
        }
        self.b.one(lane::OpKind::Extend { from: 16, signed: elem.is_signed_int(), to: Ty::B32 }, &[raw])
    }

    fn stored_bits(&mut self, elem: Elem, reg: Reg) -> Reg {
        if elem.is_float() || elem.bits() != 16 { reg } else { self.b.one(lane::OpKind::Truncate(Ty::B16), &[reg]) }
    }
}

/// The function of an update without a result.
const fn function(f: AtomicOp) -> FetchOp {
    match f {
        AtomicOp::Add => FetchOp::Add,
        AtomicOp::Max => FetchOp::Max,
        AtomicOp::Min => FetchOp::Min,
    }
}

/// The instruction for an update, if all targets have one.
const fn instruction(elem: Elem, f: FetchOp) -> Option<AtomicFn> {
    match (f, elem) {
        (FetchOp::Add, Elem::I32 | Elem::U32 | Elem::I64 | Elem::U64) => Some(AtomicFn::Add),
        (FetchOp::Add, Elem::F32) => Some(AtomicFn::AddF32),
        (FetchOp::Add, Elem::F64) => Some(AtomicFn::AddF64),
        (FetchOp::Max, Elem::I32 | Elem::I64) => Some(AtomicFn::MaxS),
        (FetchOp::Max, Elem::U32 | Elem::U64) => Some(AtomicFn::MaxU),
        (FetchOp::Min, Elem::I32 | Elem::I64) => Some(AtomicFn::MinS),
        (FetchOp::Min, Elem::U32 | Elem::U64) => Some(AtomicFn::MinU),
        (FetchOp::And, Elem::I32 | Elem::U32 | Elem::I64 | Elem::U64) => Some(AtomicFn::And),
        (FetchOp::Or, Elem::I32 | Elem::U32 | Elem::I64 | Elem::U64) => Some(AtomicFn::Or),
        (FetchOp::Swap, Elem::I32 | Elem::U32 | Elem::I64 | Elem::U64 | Elem::F32 | Elem::F64) => {
            Some(AtomicFn::Exchange)
        }
        _ => None,
    }
}
