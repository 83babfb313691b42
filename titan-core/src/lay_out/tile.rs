//! Tiles in the requested layouts.

use super::{Laid, LayOut};
use crate::ir::{Elem, LocalOp, Op, OpKind, Ty, Value};
use crate::layout::Layout;
use crate::layout::convert::{Way, way};
use crate::plan::is_elementwise;

impl LayOut<'_> {
    /// The new tile of an old one, in a given layout.
    pub(super) fn tile(&mut self, old: Value, layout: &Layout) -> Laid<Value> {
        let made = self.made[old.index()];
        if let Some(made) = made
            && self.b.kernel().layout(made) == Some(layout)
        {
            return Ok(made);
        }
        let id = self.b.layout_id(layout);
        if let Some(known) = self.memo.iter().rev().find_map(|m| m.get(&(old, id))) {
            return Ok(*known);
        }
        let value = match made {
            Some(made) if matches!(self.b.ty(made), Ty::Smem(..)) => {
                self.settle_copy(made)?;
                self.read(made, layout)?
            }
            Some(made) => self.convert(made, layout)?,
            None => self.flexible(old, layout)?,
        };
        if let Some(scope) = self.memo.last_mut() {
            scope.insert((old, id), value);
        }
        Ok(value)
    }

    /// The new tile of an old one, in its own layout.
    pub(super) fn own(&mut self, old: Value) -> Laid<(Layout, Value)> {
        let layout = self.layout(old);
        let value = self.tile(old, &layout)?;
        Ok((layout, value))
    }

    /// Converts a new tile to another layout.
    pub(super) fn convert(&mut self, value: Value, to: &Layout) -> Laid<Value> {
        let Some(from) = self.b.kernel().layout(value).cloned() else {
            return Err(self.internal(format!("{value} has no layout")));
        };
        if from == *to {
            return Ok(value);
        }
        let elem = self.b.ty(value).elem();
        match way(&from, to, elem.bits().max(8), &self.plan.target.banks) {
            Way::Registers(_) => self.local(LocalOp::Convert, &[value], to),
            Way::Shared(encoding) => {
                let buffer = self.buffer(elem, to.extents(), &encoding, "exchange")?;
                self.write(value, buffer)?;
                self.read(buffer, to)
            }
        }
    }

    /// Converts a new tile to the layout of an old one, and binds the old one to it.
    pub(super) fn settle(&mut self, old: Value, value: Value) -> Laid<()> {
        let layout = self.layout(old);
        let value = self.convert(value, &layout)?;
        self.make(old, value);
        Ok(())
    }

    /// Materializes a tile that is a function of scalars and coordinates, in a given layout.
    fn flexible(&mut self, old: Value, layout: &Layout) -> Laid<Value> {
        let Some(op) = self.k.def_op(old) else { return Err(self.internal(format!("{old} is not known"))) };
        if is_elementwise(&op.kind) {
            return self.elementwise(op, layout);
        }
        let arg = if let OpKind::Splat(_) = op.kind {
            Some(self.same(op.args[0])?)
        } else if let OpKind::Broadcast { axis, .. } = op.kind {
            Some(self.tile(op.args[0], &layout.without(usize::from(axis)))?)
        } else if let OpKind::Iota(_) = op.kind {
            None
        } else {
            return Err(self.internal(format!("{:?} does not define a flexible tile", op.kind)));
        };
        self.tile_op(op.kind.clone(), arg.as_slice(), layout)
    }

    /// An elementwise operation on tiles in a given layout.
    pub(super) fn elementwise(&mut self, op: &Op, layout: &Layout) -> Laid<Value> {
        let mut args = Vec::new();
        for arg in &op.args {
            args.push(if self.is_tile(*arg) { self.tile(*arg, layout)? } else { self.same(*arg)? });
        }
        self.tile_op(op.kind.clone(), &args, layout)
    }

    /// An elementwise operation in program order. Flexible tiles are skipped: they are materialized at their uses.
    pub(super) fn elementwise_op(&mut self, op: &Op) -> Laid<()> {
        let result = op.results[0];
        if !self.is_tile(result) {
            return self.copy(op);
        }
        if let Some(layout) = self.plan.layout(result).cloned() {
            let value = self.elementwise(op, &layout)?;
            self.make(result, value);
        }
        Ok(())
    }

    /// Converts a tile or scalar to another element type.
    pub(super) fn cast(&mut self, value: Value, to: Elem) -> Laid<Value> {
        if self.b.ty(value).elem() == to {
            return Ok(value);
        }
        let layout = self.b.kernel().layout(value).cloned();
        let cast = self.one(OpKind::Cast(to), &[value])?;
        if let Some(layout) = layout {
            self.b.put(cast, &layout);
        }
        Ok(cast)
    }
}
