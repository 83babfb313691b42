//! Elementwise operations, reductions along the last axis and broadcasts along it: they join groups.

use super::group::{Leaf, MAX_OPS, Out};
use super::lower::{Frame, Lower, Result};
use super::open::{F32Op, OpenAct, OpenArg, OpenGroup, OpenOp};
use super::{Slot, Step, shape4};
use crate::ops::{ElementFn, cast, elementwise, reduce, ternary};
use crate::rep;
use titan_core::ir::{Elem, Op, OpId, OpKind, ReduceOp, Ty, Value};

impl Lower<'_> {
    pub(super) fn elementwise(&mut self, frame: &mut Frame, id: OpId, op: &Op) -> Result<()> {
        let [result] = op.results[..] else { return self.wrong("an elementwise operation without a result") };
        if op.args.is_empty() || op.args.len() > 3 {
            return self.wrong("an elementwise operation of no operand");
        }
        let f = self.element_fn(op)?;
        let ty = self.kernel.ty(result);
        let f32_op =
            if let (OpKind::Binary(b), Elem::F32) = (&op.kind, ty.elem()) { Some(F32Op::Binary(*b)) } else { None };
        let new = OpenOp {
            id,
            result: Some(result),
            act: OpenAct::Map(f.tile),
            f32_op,
            size: rep::size(ty.elem()),
            args: Vec::new(),
        };
        if self.join_rows(frame, &new, &f, &op.args)? {
            return Ok(());
        }
        match ty {
            Ty::Tile(_, shape) if !self.is_one(ty) => self.join(frame, shape4(shape), new, &op.args),
            Ty::Tile(..)
            | Ty::Scalar(_)
            | Ty::Tensor(..)
            | Ty::Source(..)
            | Ty::Smem(..)
            | Ty::Compute(..)
            | Ty::Acc(..)
            | Ty::Token(..)
            | Ty::Barrier(_) => {
                let mut args = [0; 3];
                for (slot, arg) in args.iter_mut().zip(&op.args) {
                    *slot = self.one(frame, *arg)?;
                }
                let to = self.scalar_slot(0);
                self.alias(result, Slot::Scalar(to));
                self.push(frame, Step::Scalar { to, f: f.scalar, args }, &[], &[]);
                Ok(())
            }
        }
    }

    /// Adds an operation to the group of a shape.
    pub(super) fn join(
        &mut self,
        frame: &mut Frame,
        shape: [i32; 4],
        mut new: OpenOp,
        operands: &[Value],
    ) -> Result<()> {
        if let Some(full) = frame.open.iter().position(|g| g.shape == shape && g.is_full(self.most_ops())) {
            self.close(frame, full)?;
        }
        for operand in operands {
            let arg = self.group_arg(frame, shape, new.id, *operand)?;
            new.args.push(arg);
        }
        let known = frame.open.iter().position(|g| g.shape == shape);
        let group = known.unwrap_or_else(|| {
            frame.open.push(OpenGroup { shape, ops: Vec::new() });
            frame.open.len() - 1
        });
        frame.open[group].ops.push(new);
        Ok(())
    }

    fn most_ops(&self) -> usize {
        if self.options.fuse { MAX_OPS } else { 1 }
    }

    /// The open group that computes a value of one element per row, with room for another operation.
    fn row_group(&self, frame: &Frame, value: Value) -> Option<usize> {
        frame.open.iter().position(|g| g.find_row(value).is_some() && !g.is_full(self.most_ops()))
    }

    /// Adds an operation on results of reductions to the group of the reductions.
    fn join_rows(&mut self, frame: &mut Frame, new: &OpenOp, f: &ElementFn, operands: &[Value]) -> Result<bool> {
        let Some((row, group)) = operands.iter().find_map(|v| Some((*v, self.row_group(frame, *v)?))) else {
            return Ok(false);
        };
        // A `select` between tiles by one `bool` that is such a result has more elements than that.
        let is_single = |value: Value| {
            let ty = self.kernel.ty(value);
            matches!(ty, Ty::Scalar(_)) || self.is_one(ty)
        };
        if is_single(row) && new.result.is_some_and(|result| !is_single(result)) {
            return Ok(false);
        }
        let shape = frame.open[group].shape;
        let mut args = Vec::new();
        for operand in operands {
            let made = |frame: &Frame| frame.open.iter().find(|g| g.shape == shape).and_then(|g| g.find_row(*operand));
            args.push(match (made(frame), self.kernel.ty(*operand)) {
                (Some(n), _) => OpenArg::Op(n),
                (None, ty) if matches!(ty, Ty::Scalar(_)) || self.is_one(ty) => {
                    OpenArg::Leaf(Leaf::Scalar(self.one(frame, *operand)?), rep::size(ty.elem()), true)
                }
                (None, ty) => OpenArg::Leaf(Leaf::Tile(self.tile(frame, *operand)?), rep::size(ty.elem()), true),
            });
        }
        // Other groups may have been closed; this one is still open.
        if let Some(group) = frame.open.iter_mut().find(|g| g.shape == shape) {
            group.ops.push(OpenOp { act: OpenAct::MapRows(*f), args, ..new.clone() });
        }
        Ok(true)
    }

    /// Adds a reduction along the last axis to the group that computes the tile, or to a new one.
    pub(super) fn join_reduction(&mut self, frame: &mut Frame, id: OpId, op: &Op) -> Result<bool> {
        let (OpKind::Reduce(r, axis), [arg], [result]) = (&op.kind, &op.args[..], &op.results[..]) else {
            return Ok(false);
        };
        let Ty::Tile(elem, shape) = self.kernel.ty(*arg) else { return Ok(false) };
        if !self.options.fuse || usize::from(*axis) + 1 != shape.rank() {
            return Ok(false);
        }
        let Some(fold) = reduce::row_fold(*r, elem) else { return Ok(false) };
        let f32_op = (*r == ReduceOp::Sum && elem == Elem::F32).then_some(F32Op::SumOfRows);
        let (act, size) = (OpenAct::Reduce(fold), rep::size(elem));
        let new = OpenOp { id, result: Some(*result), act, f32_op, size, args: Vec::new() };
        self.join(frame, shape4(shape), new, &[*arg])?;
        Ok(true)
    }

    /// Adds a broadcast along the last axis of a group's row values to the group, if it has the group's shape.
    pub(super) fn join_broadcast(&mut self, frame: &mut Frame, id: OpId, op: &Op) -> Result<bool> {
        let ([arg], [result]) = (&op.args[..], &op.results[..]) else { return Ok(false) };
        let Ty::Tile(elem, shape) = self.kernel.ty(*result) else { return Ok(false) };
        let along_last = matches!(op.kind, OpKind::Splat(_))
            || matches!(op.kind, OpKind::Broadcast { axis, .. } if usize::from(axis) + 1 == shape.rank());
        let Some(group) = self.row_group(frame, *arg) else { return Ok(false) };
        let group = &mut frame.open[group];
        let (true, true, Some(n)) = (along_last, group.shape == shape4(shape), group.find_row(*arg)) else {
            return Ok(false);
        };
        let args = vec![OpenArg::Op(n)];
        group.ops.push(OpenOp {
            id,
            result: Some(*result),
            act: OpenAct::Broadcast,
            f32_op: None,
            size: rep::size(elem),
            args,
        });
        Ok(true)
    }

    /// Whether an open group computes a tile.
    pub(super) fn is_open(&self, frame: &Frame, value: Value) -> bool {
        frame.open.iter().any(|g| g.find(value).is_some())
    }

    /// An operand of operation `id` on all elements of a group of this shape.
    fn group_arg(&mut self, frame: &mut Frame, shape: [i32; 4], id: OpId, value: Value) -> Result<OpenArg> {
        let ty = self.kernel.ty(value);
        let size = rep::size(ty.elem());
        if let (Ty::Scalar(_), Some(group)) = (ty, frame.open.iter_mut().find(|g| g.shape == shape))
            && let Some(n) = group.find_row(value)
        {
            let args = vec![OpenArg::Op(n)];
            group.ops.push(OpenOp { id, result: None, act: OpenAct::Broadcast, f32_op: None, size, args });
            return Ok(OpenArg::Op(group.ops.len() - 1));
        }
        match ty {
            Ty::Scalar(_) => Ok(OpenArg::Leaf(Leaf::Scalar(self.one(frame, value)?), size, false)),
            Ty::Tile(_, of) if shape4(of) == shape => {
                let maker = frame.open.iter().find_map(|g| Some((g, g.find(value)?)));
                if let Some((group, n)) = maker
                    && group.shape == shape
                    && matches!(group.ops[n].act, OpenAct::Map(_) | OpenAct::Broadcast)
                {
                    return Ok(OpenArg::Op(n));
                }
                Ok(OpenArg::Leaf(Leaf::Tile(self.tile(frame, value)?), size, false))
            }
            Ty::Tile(..)
            | Ty::Tensor(..)
            | Ty::Source(..)
            | Ty::Smem(..)
            | Ty::Compute(..)
            | Ty::Acc(..)
            | Ty::Token(..)
            | Ty::Barrier(_) => self.wrong("an operand of another shape"),
        }
    }

    pub(super) fn close_group_of(&mut self, frame: &mut Frame, value: Value) -> Result<()> {
        match frame.open.iter().position(|g| g.find(value).is_some()) {
            Some(group) => self.close(frame, group),
            None => Ok(()),
        }
    }

    /// Closes the group of a shape.
    pub(super) fn close_shape(&mut self, frame: &mut Frame, shape: [i32; 4]) -> Result<()> {
        match frame.open.iter().position(|g| g.shape == shape) {
            Some(group) => self.close(frame, group),
            None => Ok(()),
        }
    }

    /// Closes every open group, so that the next operation may use any value.
    pub(super) fn close_all(&mut self, frame: &mut Frame) -> Result<()> {
        while !frame.open.is_empty() {
            self.close(frame, 0)?;
        }
        Ok(())
    }

    fn close(&mut self, frame: &mut Frame, group: usize) -> Result<()> {
        let group = frame.open.remove(group);
        let mut outs = Vec::new();
        for op in &group.ops {
            let Some(result) = op.result else { continue };
            let users = &self.users[result.index()];
            if users.iter().all(|user| group.ops.iter().any(|o| o.id == *user)) {
                continue;
            }
            let ty = self.kernel.ty(result);
            if matches!(ty, Ty::Scalar(_)) || self.is_one(ty) {
                let scalar = self.scalar_slot(0);
                self.alias(result, Slot::Scalar(scalar));
                outs.push((result, Out::Scalar(scalar, ty.elem())));
            } else if let Slot::Tile(tile) = self.define(result)? {
                outs.push((result, Out::Tile(tile)));
            }
        }
        let stores = group.ops.iter().any(|op| matches!(op.act, OpenAct::Store(_)));
        if outs.is_empty() && !stores {
            return Ok(());
        }
        let closed = group.close(&outs);
        let slot = |leaf: &Leaf| match leaf {
            Leaf::Tile(tile) => Slot::Tile(*tile),
            Leaf::Scalar(scalar) => Slot::Scalar(*scalar),
        };
        let uses: Vec<Slot> = closed.inputs.iter().map(|input| slot(&input.leaf)).collect();
        let defs: Vec<Slot> = closed.outs.iter().map(Out::slot).collect();
        self.push(frame, Step::Elements(Box::new(closed)), &uses, &defs);
        Ok(())
    }

    fn element_fn(&self, op: &Op) -> Result<ElementFn> {
        let first = self.kernel.ty(op.args[0]).elem();
        let last = self.kernel.ty(op.args[op.args.len() - 1]).elem();
        let f = match (&op.kind, &op.args[..]) {
            (OpKind::Unary(u), [_]) => elementwise::unary(*u, first),
            (OpKind::Binary(b), [_, _]) => elementwise::binary(*b, first),
            (OpKind::Cmp(p), [_, _]) => elementwise::compare(*p, first),
            (OpKind::Select, [_, _, _]) => Some(ternary::select(last)),
            (OpKind::MulAdd, [_, _, _]) => ternary::mul_add(first),
            (OpKind::Cast(to), [_]) => Some(cast::cast(first, *to)),
            (OpKind::Bitcast(to), [_]) if to.bits() == first.bits() => Some(cast::bitcast(first, *to)),
            _ => None,
        };
        match f {
            Some(f) => Ok(f),
            None => self.wrong("an operation that its element type does not have"),
        }
    }
}
