//! Properties of programs and tensors, views, loads and stores.

use super::lower::{Frame, Lower, Result};
use super::open::{OpenAct, OpenOp};
use super::{FactStep, MemoryStep, Place, Slot, Step};
use crate::ops::{ScalarFn, elementwise};
use titan_core::analysis::number;
use titan_core::ir::{AtomicOp, BinOp, Elem, FetchOp, Op, OpId, OpKind, Ty, Unit, Value};

impl Lower<'_> {
    pub(super) fn fact(&mut self, frame: &mut Frame, op: &Op) -> Result<()> {
        if let (OpKind::Shared, [arg], [result]) = (&op.kind, &op.args[..], &op.results[..]) {
            let slot = self.slot(*arg)?;
            self.alias(*result, slot);
            return Ok(());
        }
        let (args, results) = (&op.args[..], &op.results[..]);
        let step = match (&op.kind, args, results) {
            (OpKind::ProgramId(axis), [], [r]) => {
                FactStep::ProgramId { to: self.new_scalar(*r)?, axis: usize::from(*axis).min(2) }
            }
            (OpKind::NumPrograms(axis), [], [r]) => {
                FactStep::NumPrograms { to: self.new_scalar(*r)?, axis: usize::from(*axis).min(2) }
            }
            (OpKind::Dim(axis), [t], [r]) => {
                FactStep::Dim { view: self.view(*t)?, to: self.new_scalar(*r)?, axis: *axis }
            }
            (OpKind::Present, [t], [r]) => FactStep::Present { view: self.view(*t)?, to: self.new_scalar(*r)? },
            (OpKind::Unflatten | OpKind::UnflattenGrouped(_), [index, extents @ ..], [_, ..]) => FactStep::Unflatten {
                group: if let OpKind::UnflattenGrouped(rows) = op.kind { Some(rows) } else { None },
                index: self.scalar(*index)?,
                extents: self.scalars(extents)?,
                to: results.iter().map(|r| self.new_scalar(*r)).collect::<Result<_>>()?,
            },
            (OpKind::Index(axis), [t, at], [r]) => {
                FactStep::Index { from: self.view(*t)?, at: self.scalar(*at)?, to: self.new_view(*r)?, axis: *axis }
            }
            (OpKind::Slice(axis), [t, lo, hi], [r]) => FactStep::Slice {
                from: self.view(*t)?,
                range: [self.scalar(*lo)?, self.scalar(*hi)?],
                to: self.new_view(*r)?,
                axis: *axis,
            },
            (OpKind::Segment, [t, offsets, at], [r]) => FactStep::Segment {
                from: self.view(*t)?,
                offsets: self.view(*offsets)?,
                at: self.scalar(*at)?,
                to: self.new_view(*r)?,
            },
            (OpKind::RaggedCount { rows, cols }, [t, offsets], [r]) => FactStep::RaggedCount {
                view: self.view(*t)?,
                offsets: self.view(*offsets)?,
                to: self.new_scalar(*r)?,
                tile: [*rows, *cols],
            },
            (OpKind::RaggedTile { rows, cols }, [t, offsets, number], [e, m, n]) => FactStep::RaggedTile {
                view: self.view(*t)?,
                offsets: self.view(*offsets)?,
                number: self.scalar(*number)?,
                to: [self.new_scalar(*e)?, self.new_scalar(*m)?, self.new_scalar(*n)?],
                tile: [*rows, *cols],
            },
            _ => return self.wrong("an operation with the wrong operands"),
        };
        self.push(frame, Step::Fact(step), &[], &[]);
        Ok(())
    }

    pub(super) fn new_scalar(&mut self, result: Value) -> Result<u32> {
        match self.define(result)? {
            Slot::Scalar(scalar) => Ok(scalar),
            Slot::Tile(_) | Slot::View(_) => self.wrong("a scalar is wanted here"),
        }
    }

    fn new_view(&mut self, result: Value) -> Result<u32> {
        match self.define(result)? {
            Slot::View(view) => Ok(view),
            Slot::Tile(_) | Slot::Scalar(_) => self.wrong("a tensor is wanted here"),
        }
    }

    fn result_tile(&mut self, op: &Op) -> Result<u32> {
        match op.results.first() {
            Some(result) => self.new_tile(*result),
            None => self.wrong("a tile is wanted here"),
        }
    }

    pub(super) fn place(&self, tensor: Value, at: &[Value], unit: Unit) -> Result<Place> {
        if at.len() > 5 || at.is_empty() {
            return self.wrong("coordinates of another rank");
        }
        Ok(Place { view: self.view(tensor)?, at: self.scalars(at)?, unit })
    }

    /// Adds the store of a tile that an open group computes to the group, which is then closed, so that stores keep their order.
    fn join_store(&mut self, frame: &mut Frame, id: OpId, op: &Op) -> Result<bool> {
        let (OpKind::Store(unit), [tensor, at @ .., tile]) = (&op.kind, &op.args[..]) else { return Ok(false) };
        let Ty::Tile(elem, shape) = self.kernel.ty(*tile) else { return Ok(false) };
        if !self.options.fuse || !self.is_open(frame, *tile) {
            return Ok(false);
        }
        let place = self.place(*tensor, at, *unit)?;
        let (shape, act, size) = (super::shape4(shape), OpenAct::Store(place), crate::rep::size(elem));
        let new = OpenOp { id, result: None, act, f32_op: None, size, args: Vec::new() };
        self.join(frame, shape, new, &[*tile])?;
        self.close_shape(frame, shape)?;
        Ok(true)
    }

    pub(super) fn memory_op(&mut self, frame: &mut Frame, id: OpId, op: &Op) -> Result<()> {
        if self.join_store(frame, id, op)? {
            return Ok(());
        }
        let [tensor, at @ .., last] = &op.args[..] else { return self.wrong("too few operands") };
        let (tensor, last) = (*tensor, *last);
        let (step, uses) = match (&op.kind, &op.results[..]) {
            (OpKind::Load(unit, _), [_]) => {
                let (from, pad) = (self.place(tensor, at, *unit)?, self.scalar(last)?);
                (MemoryStep::Load { from, pad, to: self.result_tile(op)? }, vec![])
            }
            (OpKind::Store(unit), []) => {
                let (to, from) = (self.place(tensor, at, *unit)?, self.tile(frame, last)?);
                (MemoryStep::Store { to, from }, vec![Slot::Tile(from)])
            }
            (OpKind::Get, [result]) => {
                let from = self.place(tensor, &op.args[1..], Unit::Elem)?;
                (
                    MemoryStep::Get { from, to: self.new_scalar(*result)?, tensor: number::named(self.kernel, tensor) },
                    vec![],
                )
            }
            (OpKind::Set, []) => {
                let (to, from) = (self.place(tensor, at, Unit::Elem)?, self.scalar(last)?);
                (MemoryStep::Set { to, from, tensor: number::named(self.kernel, tensor) }, vec![])
            }
            (OpKind::AtomicTile(a), []) => {
                let (to, from) = (self.place(tensor, at, Unit::Tile)?, self.tile(frame, last)?);
                let (f, integer_add) = self.atomic(*a, self.kernel.ty(tensor).elem())?;
                (MemoryStep::AtomicTile { to, from, f, integer_add }, vec![Slot::Tile(from)])
            }
            _ => self.indexed(frame, op, (tensor, at, last))?,
        };
        let defs: Vec<Slot> = match &step {
            MemoryStep::Load { to, .. }
            | MemoryStep::GatherRows { to, .. }
            | MemoryStep::Gather { to, .. }
            | MemoryStep::Fetch { to, .. } => vec![Slot::Tile(*to)],
            MemoryStep::CompareExchange { to, .. } => to.map(Slot::Tile).to_vec(),
            MemoryStep::Store { .. }
            | MemoryStep::Get { .. }
            | MemoryStep::Set { .. }
            | MemoryStep::ScatterRows { .. }
            | MemoryStep::Scatter { .. }
            | MemoryStep::Atomic { .. }
            | MemoryStep::AtomicTile { .. } => vec![],
        };
        self.push(frame, Step::Memory(step), &uses, &defs);
        Ok(())
    }

    /// The step of an access whose coordinates are tiles, and the slots that it uses.
    fn indexed(
        &mut self,
        frame: &mut Frame,
        op: &Op,
        (tensor, at, last): (Value, &[Value], Value),
    ) -> Result<(MemoryStep, Vec<Slot>)> {
        let view = self.view(tensor)?;
        Ok(match (&op.kind, at, &op.results[..]) {
            (OpKind::GatherRows { .. }, [rows @ .., col], [_]) => {
                let (col, pad, rows) = (self.scalar(*col)?, self.scalar(last)?, self.slots_of(frame, rows)?);
                let uses = rows.clone();
                (MemoryStep::GatherRows { view, col, pad, rows, to: self.result_tile(op)? }, uses)
            }
            (OpKind::ScatterRows, [rows @ .., col], []) => {
                let (col, rows, from) = (self.scalar(*col)?, self.slots_of(frame, rows)?, self.tile(frame, last)?);
                let uses = rows.iter().copied().chain([Slot::Tile(from)]).collect();
                (MemoryStep::ScatterRows { view, rows, col, from }, uses)
            }
            (OpKind::Gather, _, [_]) => {
                let (at, pad) = (self.tiles_of(frame, at)?, self.scalar(last)?);
                let uses = at.iter().map(|t| Slot::Tile(*t)).collect();
                (MemoryStep::Gather { view, at, pad, to: self.result_tile(op)? }, uses)
            }
            (OpKind::Scatter | OpKind::Atomic(_), _, []) => {
                let (at, from) = (self.tiles_of(frame, at)?, self.tile(frame, last)?);
                let uses = at.iter().chain([&from]).map(|t| Slot::Tile(*t)).collect();
                let step = if let OpKind::Atomic(a) = op.kind {
                    let (f, integer_add) = self.atomic(a, self.kernel.ty(tensor).elem())?;
                    MemoryStep::Atomic { view, at, from, f, integer_add }
                } else {
                    MemoryStep::Scatter { view, at, from }
                };
                (step, uses)
            }
            (OpKind::Fetch(f), _, [_]) => {
                let (at, from) = (self.tiles_of(frame, at)?, self.tile(frame, last)?);
                let uses = at.iter().chain([&from]).map(|t| Slot::Tile(*t)).collect();
                let f = self.fetched(*f, self.kernel.ty(tensor).elem())?;
                (MemoryStep::Fetch { to: self.result_tile(op)?, view, at, from, f }, uses)
            }
            (OpKind::CompareExchange, [at @ .., current], [old, done]) => {
                let (at, current, new) =
                    (self.tiles_of(frame, at)?, self.tile(frame, *current)?, self.tile(frame, last)?);
                let uses = at.iter().chain([&current, &new]).map(|t| Slot::Tile(*t)).collect();
                let to = [self.new_tile(*old)?, self.new_tile(*done)?];
                (MemoryStep::CompareExchange { to, view, at, current, new }, uses)
            }
            _ => return self.wrong("an operation with the wrong operands"),
        })
    }

    pub(super) fn slots_of(&mut self, frame: &mut Frame, values: &[Value]) -> Result<Vec<Slot>> {
        values.iter().map(|v| self.any(frame, *v)).collect()
    }

    fn tiles_of(&mut self, frame: &mut Frame, values: &[Value]) -> Result<Vec<u32>> {
        values.iter().map(|v| self.tile(frame, *v)).collect()
    }

    fn atomic(&self, op: AtomicOp, elem: Elem) -> Result<(ScalarFn, bool)> {
        let binary = match op {
            AtomicOp::Add => BinOp::Add,
            AtomicOp::Max => BinOp::Max,
            AtomicOp::Min => BinOp::Min,
        };
        match elementwise::binary(binary, elem) {
            Some(f) => Ok((f.scalar, op == AtomicOp::Add && elem.is_int())),
            None => self.wrong("an atomic that its element type does not have"),
        }
    }

    /// The function of an element and an operand that gives the new element.
    fn fetched(&self, op: FetchOp, elem: Elem) -> Result<ScalarFn> {
        let Some(binary) = op.binary() else { return Ok(|[_, new, _]| new) };
        match elementwise::binary(binary, elem) {
            Some(f) => Ok(f.scalar),
            None => self.wrong("an atomic that its element type does not have"),
        }
    }
}
