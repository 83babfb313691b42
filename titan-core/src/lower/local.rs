//! The operations of laid-out kernels: buffers for tiles, copies between registers and shared memory, parts of tiles.

use super::staging::{Rows, Source, Tile, What};
use super::tile::{LoweredValue, Staged, register_index};
use super::{Lower, LowerError, Reg};
use crate::analysis::tiles;
use crate::ir::{LocalOp, NvOp, Op, OpKind, Unit, Value};
use crate::layout::convert::in_registers;
use crate::layout::{Coords, Layout};

impl Lower<'_> {
    pub(super) fn local_op(&mut self, op: &Op, local: LocalOp) -> Result<(), LowerError> {
        match local {
            LocalOp::Alloc { .. } => {
                let name = self.k.display_name(op.results[0]);
                let encoding = self.k.encoding(op.results[0]).cloned();
                let Some(encoding) = encoding else { return Err(self.defect("shared memory without an encoding")) };
                let staged = self.stage(&name, encoding);
                self.define(op.results[0], LoweredValue::Buffer(staged));
            }
            LocalOp::Store => {
                let (layout, regs) = (self.layout(op.args[0]), self.regs(op.args[0]));
                let staged = self.staged(op.args[1])?;
                self.write_in_order(&staged, &regs, &layout, self.k.ty(op.args[0]).elem());
            }
            LocalOp::Fetch { .. } => self.fetch(op)?,
            LocalOp::Load => {
                let staged = self.staged(op.args[0])?;
                let layout = self.layout(op.results[0]);
                let held = self.load_local(&staged, &layout, self.k.ty(op.results[0]).elem());
                self.define(op.results[0], held);
            }
            LocalOp::Copy { asynchronous } => self.copy_local(op, asynchronous)?,
            LocalOp::Settle { .. } => {
                return Err(LowerError::internal(self.k, "a wait whose groups are not counted".to_owned()));
            }
            LocalOp::Guard => self.guard_local(op)?,
            LocalOp::Slice { axis, n } => self.slice_local(op, usize::from(axis), n)?,
            LocalOp::Reshape(_) => {
                let staged = self.staged(op.args[0])?;
                let encoding = self.k.encoding(op.results[0]).cloned();
                let Some(encoding) = encoding else { return Err(self.defect("shared memory without an encoding")) };
                self.define(op.results[0], LoweredValue::Buffer(Staged { encoding, ..staged }));
            }
            LocalOp::Stack => {
                let regs = op.args.iter().flat_map(|tile| self.regs(*tile)).collect();
                self.define(op.results[0], LoweredValue::Tile(regs));
            }
            LocalOp::Mma => self.mma(op)?,
            LocalOp::Convert => {
                let (from, to) = (self.layout(op.args[0]), self.layout(op.results[0]));
                let regs = self.regs(op.args[0]);
                let Some(map) = in_registers(&from, &to) else {
                    return Err(self.defect("a conversion that needs shared memory"));
                };
                let regs = map.into_iter().map(|i| regs.get(i).copied()).map(|r| r.unwrap_or_else(|| self.missing()));
                let regs = regs.collect();
                self.define(op.results[0], LoweredValue::Tile(regs));
            }
            LocalOp::Fold { f, axis, .. } => self.fold(op, f, usize::from(axis))?,
        }
        Ok(())
    }

    pub(super) fn defect(&self, message: &str) -> LowerError {
        LowerError::internal(self.k, message.to_owned())
    }

    /// The tile in shared memory that a value is.
    pub(super) fn staged(&self, value: Value) -> Result<Staged, LowerError> {
        match &self.lowered[value.index()] {
            Some(LoweredValue::Buffer(staged)) => Ok(staged.clone()),
            _ => Err(self.defect("a tile that is not in shared memory")),
        }
    }

    /// Copies a tile of a tensor, or rows of one, to shared memory.
    fn copy_local(&mut self, op: &Op, asynchronous: bool) -> Result<(), LowerError> {
        let staged = self.staged(op.args[1])?;
        let Some(LoweredValue::Source(source)) = self.lowered[op.args[0].index()].clone() else {
            return Err(self.defect("a copy of nothing"));
        };
        let value = op.args[0];
        match &source.what {
            What::Tile(unit, coords) => {
                let tile = Tile { view: &source.view, unit: *unit, coords, value, pad: source.pad };
                self.load_to_buffer(&tile, &staged, asynchronous)?;
            }
            What::Rows(rows, column) => {
                let rows = Rows { view: &source.view, rows, column: *column, value, pad: source.pad };
                self.rows_to_buffer(&rows, &staged, asynchronous)?;
            }
        }
        Ok(())
    }

    /// Loads a tile of a tensor to registers.
    fn fetch(&mut self, op: &Op) -> Result<(), LowerError> {
        let Some(LoweredValue::Source(mut source)) = self.lowered[op.args[0].index()].clone() else {
            return Err(self.defect("a fetch of nothing"));
        };
        if let Some(condition) = op.args.get(1).copied()
            && !self.is_empty_unless(&source, op, condition)
        {
            let condition = self.scalar(condition);
            source.view.exists = self.both(source.view.exists, Some(condition));
        }
        let What::Tile(unit, coords) = &source.what else { return Err(self.defect("a fetch of rows")) };
        let value = op.results[0];
        let tile = Tile { view: &source.view, unit: *unit, coords, value, pad: source.pad };
        let regs = self.load_to_registers(&tile);
        self.define(value, LoweredValue::Tile(regs));
        Ok(())
    }

    /// Makes a source conditional: its elements exist only if a condition holds.
    fn guard_local(&mut self, op: &Op) -> Result<(), LowerError> {
        let Some(LoweredValue::Source(mut source)) = self.lowered[op.args[0].index()].clone() else {
            return Err(self.defect("a guard of a value that is not a source"));
        };
        if !self.is_empty_unless(&source, op, op.args[1]) {
            let condition = self.scalar(op.args[1]);
            source.view.exists = self.both(source.view.exists, Some(condition));
        }
        self.define(op.results[0], LoweredValue::Source(source));
        Ok(())
    }

    /// Whether the tile that an operation gives is outside of the tensor whenever a condition is false, so that the condition is redundant.
    fn is_empty_unless(&mut self, source: &Source, guard: &Op, condition: Value) -> bool {
        let What::Tile(Unit::Tile, coords) = &source.what else { return false };
        let tile = self.extents(guard.results[0]);
        coords.iter().zip(tile).enumerate().any(|(axis, (number, tile))| {
            // In a loop over whole tiles the condition is kept. Without it, the conditions on rows would be loop-invariant, and ptxas would
            // keep all of them in predicate registers, of which there are too few.
            if !tiles::whole(self.k, &self.tree, *number).is_empty() {
                return false;
            }
            let count = tiles::empty_unless(self.k, &self.tree, condition, *number).filter(|count| count.tile == tile);
            count.is_some_and(|count| self.scalar(count.extent) == source.view.extents[axis])
        })
    }

    fn slice_local(&mut self, op: &Op, axis: usize, n: i32) -> Result<(), LowerError> {
        let (of, at) = (op.args[0], op.args[1]);
        let constant = self.k.int_constant(at).and_then(|at| u32::try_from(at).ok());
        if let Some(LoweredValue::Buffer(staged)) = &self.lowered[of.index()] {
            let mut staged = staged.clone();
            match constant {
                Some(at) => staged.origin.at[axis] += at,
                None if staged.origin.moved.is_none() => {
                    let multiple = crate::analysis::vector::divisor(self.k, at);
                    staged.origin.moved = Some((axis, self.scalar(at), multiple));
                }
                None => return Err(self.defect("a part of a part, both at computed offsets")),
            }
            self.define(op.results[0], LoweredValue::Buffer(staged));
            return Ok(());
        }
        let Some(at) = constant else { return Err(self.defect("a part of a tile in registers at a computed offset")) };
        let _ = n;
        let (from, to) = (self.layout(of), self.layout(op.results[0]));
        let regs = self.regs(of);
        let back = |mut coords: Coords| {
            coords[axis] += at;
            coords
        };
        let regs = self.reorder(&regs, &from, &to, &back);
        // Operands of asynchronous MMAs are packed to words here, before the fence for registers.
        let users = self.tree.users(op.results[0]);
        let multiplied = users.iter().all(|id| self.k.op(*id).kind == OpKind::Nv(NvOp::Wgmma));
        let held = if multiplied && !users.is_empty() {
            LoweredValue::Packed(self.words_of_fragment(&regs, &to, self.k.ty(op.results[0]).elem())?)
        } else {
            LoweredValue::Tile(regs)
        };
        self.define(op.results[0], held);
        Ok(())
    }

    /// The registers in the order of another layout; `back` maps coordinates of the new layout to those of the old one.
    pub(super) fn reorder(
        &mut self,
        regs: &[Reg],
        old: &Layout,
        new: &Layout,
        back: &dyn Fn(Coords) -> Coords,
    ) -> Vec<Reg> {
        let index = register_index(old);
        let pick = |r| index.get(&back(new.register_coords(r))).and_then(|i| regs.get(*i)).copied();
        let picked: Vec<Option<Reg>> = (0..new.registers()).map(pick).collect();
        picked.into_iter().map(|r| r.unwrap_or_else(|| self.missing())).collect()
    }
}
