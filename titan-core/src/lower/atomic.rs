//! Atomic updates: by an instruction if there is one, otherwise by compare-and-swap.

use super::tensor::View;
use super::{Lower, LowerError, Reg, scalar};
use crate::ir::{AtomicOp, BinOp, Elem, Op, Pred, Unit};
use crate::lane::{self, AtomicFn, Space, Ty};

impl Lower<'_> {
    /// Lowers atomic updates of elements selected by index tiles.
    pub(super) fn atomic(&mut self, op: &Op, f: AtomicOp) -> Result<(), LowerError> {
        let view = self.view(op.args[0])?;
        let rank = view.extents.len();
        let value = op.args[rank + 1];
        let layout = self.layout(value);
        let columns = self.index_columns(&op.args[1..=rank], &layout)?;
        let regs = self.regs(value);
        self.touch_view(&view, true);
        let first = self.is_first_copy(&layout);
        for i in 0..layout.registers() {
            let at: Vec<Reg> = columns.iter().map(|c| c[i]).collect();
            let exists = self.exists(&view, &at);
            let mask = self.both(Some(exists), first);
            let mask = self.inside_tile(&layout, layout.register_coords(i), mask).unwrap_or(exists);
            let address = self.address_of(&view, &at);
            self.update(&view, address, f, regs[i], mask)?;
        }
        Ok(())
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
        for (i, reg) in regs.iter().enumerate() {
            let part = layout.register_coords(i);
            let mask = self.window_mask(&window, part);
            let mask = self.both(mask, first);
            let yes = self.b.pred(true);
            let mask = self.inside_tile(&layout, part, mask).unwrap_or(yes);
            let place = self.window_place(&mut window, part);
            let address = self.b.add_const(place.address, i64::from(place.offset));
            self.update(&view, address, f, *reg, mask)?;
        }
        Ok(())
    }

    fn update(&mut self, view: &View, address: Reg, f: AtomicOp, value: Reg, mask: Reg) -> Result<(), LowerError> {
        let elem = view.elem;
        if let Some(op) = instruction(elem, f) {
            let kind = lane::OpKind::Atomic { op, space: Space::Global, masked: true };
            self.b.op(kind, &[address, value, mask]);
            return Ok(());
        }
        if elem.bits() < 16 {
            return Err(self.unsupported(format!("an atomic update of {elem}")));
        }
        let mut open = self.b.begin_if(mask, &[]);
        self.swap_until_done(elem, address, f, value);
        self.b.terminate(lane::OpKind::Yield, &[]);
        self.b.begin_else(&mut open);
        self.b.terminate(lane::OpKind::Yield, &[]);
        self.b.end(open);
        Ok(())
    }

    /// A compare-and-swap loop: reads, computes and swaps, and repeats if another thread has changed the value in between.
    fn swap_until_done(&mut self, elem: Elem, address: Reg, f: AtomicOp, value: Reg) {
        let bytes = u8::try_from(elem.bits() / 8).unwrap_or(4);
        let load = lane::OpKind::Load { space: Space::Global, bytes, n: 1, offset: 0, masked: false };
        let seen = self.b.one(load, &[address]);
        let (open, carried) = self.b.begin_loop(&[seen], &[]);
        let old = self.held_bits(elem, carried[0]);
        let op = match f {
            AtomicOp::Add => BinOp::Add,
            AtomicOp::Max => BinOp::Max,
            AtomicOp::Min => BinOp::Min,
        };
        let new = scalar::binary(&mut self.b, self.target, op, elem, old, value);
        let new = self.stored_bits(elem, new);
        let found = self.b.one(lane::OpKind::CompareSwap(Space::Global), &[address, carried[0], new]);
        let same = self.same_bits(found, carried[0]);
        let mut done = self.b.begin_if(same, &[]);
        self.b.terminate(lane::OpKind::Break(0), &[]);
        self.b.begin_else(&mut done);
        self.b.terminate(lane::OpKind::Yield, &[]);
        self.b.end(done);
        self.b.terminate(lane::OpKind::Continue(0), &[found]);
        self.b.end(open);
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

/// The instruction for an update, if all targets have one.
const fn instruction(elem: Elem, f: AtomicOp) -> Option<AtomicFn> {
    match (f, elem) {
        (AtomicOp::Add, Elem::I32 | Elem::U32 | Elem::I64 | Elem::U64) => Some(AtomicFn::Add),
        (AtomicOp::Add, Elem::F32) => Some(AtomicFn::AddF32),
        (AtomicOp::Add, Elem::F64) => Some(AtomicFn::AddF64),
        (AtomicOp::Max, Elem::I32 | Elem::I64) => Some(AtomicFn::MaxS),
        (AtomicOp::Max, Elem::U32 | Elem::U64) => Some(AtomicFn::MaxU),
        (AtomicOp::Min, Elem::I32 | Elem::I64) => Some(AtomicFn::MinS),
        (AtomicOp::Min, Elem::U32 | Elem::U64) => Some(AtomicFn::MinU),
        _ => None,
    }
}
