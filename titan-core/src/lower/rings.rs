//! Rings whose copies complete in order: all threads fill and read, a stage is there when its commit group is, and a barrier
//! that the hazard analysis places makes what each thread copied visible to the others.
//!
//! A ring is one buffer of D stages. Its two clocks are registers with the offset of the next slot, and go round; loops and
//! branches that move a clock carry it. Freeing a slot costs nothing: the verifier has shown that a slot is taken again only
//! after its stage was given back, and the barrier in front of the copy orders the threads.
//!
//! Deliberately absent: barriers with phases, which roles of their own need.

use super::staging::Tile;
use super::tensor::View;
use super::tile::{Held, Staged};
use super::vector::Place;
use super::{Lower, LowerError, Reg};
use crate::ir::{Block, Fill, Op, OpId, OpKind, Pipe, Pred, TtgOp, Ty, Unit, Value};
use crate::lane::{self, Region, Space};
use crate::layout::Encoding;

/// A ring in shared memory.
#[derive(Clone, Debug)]
pub(super) struct Ring {
    /// The buffer of all its stages.
    buffer: u32,
    /// Where the tiles of a stage begin, and how they lie.
    fields: Vec<(u32, Encoding)>,
    /// Bytes from stage to stage.
    stride: u32,
    slots: u32,
    /// The offset of the next slot of the filling side, and of the reading side.
    clocks: [Reg; 2],
    /// One word a slot, not 0 if it holds nothing: of rings that may hold nothing.
    poison: Option<u32>,
}

/// A tile that is named for a copy.
#[derive(Clone, Debug)]
pub(super) struct Source {
    view: View,
    unit: Unit,
    coords: Vec<Value>,
    pad: Reg,
}

/// Which clock of which ring.
pub(super) type Clock = (usize, usize);

impl Lower<'_> {
    /// Gives every ring its buffer.
    pub(super) fn rings(&mut self) {
        for index in 0..self.k.pipes.len() {
            let pipe = Pipe::new(index);
            let decl = &self.k.pipes[index];
            let mut fields = Vec::new();
            let (mut bytes, mut align) = (0u32, 16u32);
            for encoding in self.plan.stages.get(index).into_iter().flatten() {
                bytes = bytes.next_multiple_of(encoding.align());
                align = align.max(encoding.align());
                fields.push((bytes, encoding.clone()));
                bytes = bytes.saturating_add(encoding.bytes());
            }
            let stride = bytes.next_multiple_of(align);
            let buffer = self.b.buffer(&self.k.pipe_name(pipe), stride.saturating_mul(decl.slots), align);
            let may_be_empty = self.may_be_poison(pipe);
            let poison = may_be_empty.then(|| self.b.buffer(&format!("{}, what holds nothing", self.k.pipe_name(pipe)), 4 * decl.slots, 16));
            let zero = self.b.i32(0);
            self.rings.push(Ring { buffer, fields, stride, slots: decl.slots, clocks: [zero, zero], poison });
        }
    }

    fn may_be_poison(&self, pipe: Pipe) -> bool {
        let mut found = false;
        self.k.walk(&mut |_, op| {
            let poisons = matches!(
                op.kind,
                OpKind::Ttg(TtgOp::Fill(Fill::Poison) | TtgOp::AsyncProduce { skipped: Some(Fill::Poison), .. })
            );
            found |= poisons && op.args.first().is_some_and(|v| matches!(self.k.ty(*v), Ty::Token(_, p) if p == pipe));
        });
        found
    }

    /// The clocks that move in blocks, in order.
    pub(super) fn moving(&self, blocks: &[Block]) -> Vec<Clock> {
        let mut found = std::collections::BTreeSet::new();
        for block in blocks {
            self.k.walk_block(*block, &mut |_, op| match &op.kind {
                OpKind::Ttg(TtgOp::Acquire(pipe)) => drop(found.insert((pipe.index(), 0))),
                OpKind::Ttg(TtgOp::Ready(pipe)) => drop(found.insert((pipe.index(), 1))),
                _ => {}
            });
        }
        found.into_iter().collect()
    }

    /// What clocks show.
    pub(super) fn clocks(&self, moving: &[Clock]) -> Vec<Reg> {
        moving.iter().map(|(ring, side)| self.rings[*ring].clocks[*side]).collect()
    }

    /// Sets clocks.
    pub(super) fn set_clocks(&mut self, moving: &[Clock], regs: &[Reg]) {
        for ((ring, side), reg) in moving.iter().zip(regs) {
            self.rings[*ring].clocks[*side] = *reg;
        }
    }

    /// The offset that a clock shows, and the clock goes on.
    fn tick(&mut self, pipe: Pipe, side: usize) -> Reg {
        let ring = &self.rings[pipe.index()];
        let (now, stride, slots) = (ring.clocks[side], ring.stride, ring.slots);
        if slots > 1 {
            let next = self.b.add_const(now, i64::from(stride));
            let end = self.b.i32((stride * slots).cast_signed());
            let zero = self.b.i32(0);
            let around = self.b.cmp_s(Pred::Eq, next, end);
            let next = self.b.select(around, zero, next);
            self.rings[pipe.index()].clocks[side] = next;
        }
        now
    }

    /// A tile of the stage at an offset.
    fn field(&self, pipe: Pipe, offset: Reg, field: usize) -> Option<Staged> {
        let ring = self.rings.get(pipe.index())?;
        let (skip, encoding) = ring.fields.get(field)?;
        Some(Staged { buffer: ring.buffer, encoding: encoding.clone(), base: Some((offset, *skip)) })
    }

    fn stage_of(&self, token: Value) -> Option<(Pipe, Reg)> {
        match (self.k.ty(token), &self.held[token.index()]) {
            (Ty::Token(_, pipe), Some(Held::Stage(offset))) => Some((pipe, *offset)),
            (_, _) => None,
        }
    }

    pub(super) fn ring_op(&mut self, id: OpId, op: &Op, ttg: &TtgOp) -> Result<(), LowerError> {
        match ttg {
            TtgOp::Source(unit, _) => {
                let view = self.view(op.args[0])?;
                let rank = view.extents.len();
                let pad = self.scalar(op.args[rank + 1]);
                let source = Source { view, unit: *unit, coords: op.args[1..=rank].to_vec(), pad };
                self.hold(op.results[0], Held::Source(Box::new(source)));
            }
            TtgOp::Acquire(pipe) => {
                let offset = self.tick(*pipe, 0);
                self.hold(op.results[0], Held::Stage(offset));
            }
            TtgOp::Ready(pipe) => {
                let offset = self.tick(*pipe, 1);
                self.hold(op.results[0], Held::Stage(offset));
            }
            TtgOp::AsyncProduce { skipped, .. } => {
                self.fill(op, *skipped)?;
                self.close_group(id);
            }
            TtgOp::Fill(fill) => {
                self.fill_without(op, *fill)?;
                self.close_group(id);
            }
            TtgOp::WaitReady => {
                self.wait_group(id);
                self.pass_on(op);
            }
            TtgOp::ReadPerm | TtgOp::Consumed | TtgOp::Join | TtgOp::Split(_) => self.pass_on(op),
            TtgOp::Poisoned => self.ask_poison(op)?,
            TtgOp::View { field, .. } => {
                let staged = self.stage_of(op.args[0]).and_then(|(pipe, offset)| self.field(pipe, offset, usize::from(*field)));
                let Some(staged) = staged else { return Err(self.no_stage()) };
                self.hold(op.results[0], Held::Buffer(staged));
            }
            TtgOp::Read => {
                let Some(Held::Buffer(staged)) = self.held[op.args[0].index()].clone() else { return Err(self.no_stage()) };
                let home = self.home(op.results[0]);
                let regs = self.read_buffer(&staged, &home, self.k.ty(op.args[0]).elem());
                self.hold(op.results[0], Held::Tile(regs));
            }
            // The machine's matrix products have read their operands when the next instruction begins.
            TtgOp::ComputeIssue | TtgOp::AccMma => self.product(id, op)?,
            TtgOp::ComputeWait | TtgOp::AccStart(_) | TtgOp::AccFinish => self.same_registers(op)?,
            TtgOp::Rematerialize => self.same_value(op)?,
            TtgOp::Release | TtgOp::StoreWait | TtgOp::Fence { .. } => {}
            TtgOp::Write => self.write_stage(op)?,
            TtgOp::StoreIssue(unit) => self.store_stage(op, *unit)?,
            TtgOp::Finalize => self.drain(),
            TtgOp::SourceRows { .. } | TtgOp::Roles => {
                return Err(self.unsupported(format!("`{}`", crate::ir::op_table::mnemonic(&op.kind))));
            }
        }
        Ok(())
    }

    fn no_stage(&self) -> LowerError {
        LowerError::internal(self.k, "a token without a stage".to_owned())
    }

    /// The same stage, under another right.
    fn pass_on(&mut self, op: &Op) {
        let held = self.held[op.args[0].index()].clone();
        for result in &op.results {
            self.held[result.index()] = held.clone();
        }
    }

    fn same_registers(&mut self, op: &Op) -> Result<(), LowerError> {
        let home = self.home(op.results[0]);
        let regs = self.tile(op.args[0], &home)?;
        self.hold(op.results[0], Held::Tile(regs));
        Ok(())
    }

    fn same_value(&mut self, op: &Op) -> Result<(), LowerError> {
        if self.k.ty(op.results[0]).is_in_registers() {
            return self.same_registers(op);
        }
        let reg = self.scalar(op.args[0]);
        self.hold(op.results[0], Held::Scalar(reg));
        Ok(())
    }

    /// Copies to a slot.
    fn fill(&mut self, op: &Op, skipped: Option<Fill>) -> Result<(), LowerError> {
        let Some((pipe, offset)) = self.stage_of(op.args[0]) else { return Err(self.no_stage()) };
        let sources = op.args[1..].iter().copied().filter(|v| matches!(self.k.ty(*v), Ty::Source(..))).collect::<Vec<_>>();
        let asked = skipped.and_then(|_| op.args.last()).map(|c| self.scalar(*c));
        for (i, value) in sources.into_iter().enumerate() {
            let (Some(staged), Some(Held::Source(source))) = (self.field(pipe, offset, i), self.held[value.index()].clone()) else {
                return Err(self.no_stage());
            };
            let mut view = source.view.clone();
            // What is skipped is outside: zeros, and nothing is read.
            view.exists = self.both(view.exists, asked);
            let tile = Tile { view: &view, unit: source.unit, coords: &source.coords, value, pad: source.pad };
            self.load_to_buffer(&tile, &staged);
        }
        if let (Some(Fill::Poison), Some(asked)) = (skipped, asked) {
            let one = self.b.i32(1);
            let zero = self.b.i32(0);
            let word = self.b.select(asked, zero, one);
            self.tell_poison(pipe, offset, word);
        } else {
            let zero = self.b.i32(0);
            self.tell_poison(pipe, offset, zero);
        }
        Ok(())
    }

    /// A stage without a copy.
    fn fill_without(&mut self, op: &Op, fill: Fill) -> Result<(), LowerError> {
        let Some((pipe, offset)) = self.stage_of(op.args[0]) else { return Err(self.no_stage()) };
        let word = self.b.i32(i32::from(fill == Fill::Poison));
        self.tell_poison(pipe, offset, word);
        if fill == Fill::Poison {
            return Ok(());
        }
        let fields = self.k.pipe(pipe).map(|p| p.fields.clone()).unwrap_or_default();
        for (i, field) in fields.iter().enumerate() {
            let Some(staged) = self.field(pipe, offset, i) else { return Err(self.no_stage()) };
            self.clear(&staged, field.elem);
        }
        Ok(())
    }

    /// The word of the stage at an offset.
    fn poison_place(&mut self, pipe: Pipe, offset: Reg) -> Option<(u32, Place)> {
        let ring = self.rings.get(pipe.index())?;
        let (buffer, stride) = (ring.poison?, ring.stride.max(1));
        let base = self.b.one(lane::OpKind::Buffer(buffer), &[]);
        let stride = self.b.i32(stride.cast_signed());
        let slot = self.b.int(lane::IntBin::DivU, offset, stride);
        let four = self.b.i32(4);
        let skip = self.b.mul(slot, four);
        let address = self.b.add(base, skip);
        Some((buffer, Place { space: Space::Shared, address, offset: 0 }))
    }

    /// One thread says whether a stage holds nothing.
    fn tell_poison(&mut self, pipe: Pipe, offset: Reg, word: Reg) {
        let Some((buffer, place)) = self.poison_place(pipe, offset) else { return };
        self.touch(Region::Buffer(buffer), true);
        let first = self.is_first_thread();
        self.store_vector(place, crate::ir::Elem::I32, &[word], Some(first));
    }

    fn ask_poison(&mut self, op: &Op) -> Result<(), LowerError> {
        let Some((pipe, offset)) = self.stage_of(op.args[0]) else { return Err(self.no_stage()) };
        let answer = match self.poison_place(pipe, offset) {
            Some((buffer, place)) => {
                self.touch(Region::Buffer(buffer), false);
                let word = self.load_vector(place, crate::ir::Elem::I32, 1, None)[0];
                let zero = self.b.i32(0);
                self.b.cmp_u(Pred::Ne, word, zero)
            }
            None => self.b.one(lane::OpKind::Const(lane::Ty::Pred, 0), &[]),
        };
        self.hold(op.results[0], Held::Scalar(answer));
        Ok(())
    }

    /// Fills a slot of a staging ring from registers.
    fn write_stage(&mut self, op: &Op) -> Result<(), LowerError> {
        let Some((pipe, offset)) = self.stage_of(op.args[0]) else { return Err(self.no_stage()) };
        for (i, value) in op.args[1..].iter().enumerate() {
            let Some(staged) = self.field(pipe, offset, i) else { return Err(self.no_stage()) };
            let home = self.home(*value);
            let regs = self.tile(*value, &home)?;
            self.write_buffer(&staged, &regs, &home, self.k.ty(*value).elem());
        }
        self.pass_on(op);
        Ok(())
    }

    /// Stores a slot: read in whole lines, and done when the instruction is.
    fn store_stage(&mut self, op: &Op, unit: Unit) -> Result<(), LowerError> {
        let token = op.args.last().copied().and_then(|v| self.stage_of(v));
        let Some((pipe, offset)) = token else { return Err(self.no_stage()) };
        let (Some(staged), Some(field)) = (self.field(pipe, offset, 0), self.k.pipe(pipe).and_then(|p| p.fields.first().copied())) else {
            return Err(self.no_stage());
        };
        let extents: Vec<u32> = field.shape.into();
        let layout = crate::plan::wide(&extents, field.elem.bits(), self.plan.target.lanes, self.plan.warps);
        let regs = self.read_buffer(&staged, &layout, field.elem);
        let view = self.view(op.args[0])?;
        let rank = view.extents.len();
        self.store_registers(&view, (unit, &op.args[1..=rank]), &regs, &layout)?;
        if let (Some(result), Some(value)) = (op.results.first(), op.args.last()) {
            self.held[result.index()] = self.held[value.index()].clone();
        }
        Ok(())
    }

    /// Closes a commit group, where the assignment of virtual tokens says so.
    pub(super) fn close_group(&mut self, id: OpId) {
        if self.groups.commits.contains(&id) {
            if self.plan.target.copy_async {
                self.b.op(lane::OpKind::CopyCommit, &[]);
            }
            self.copying = false;
        }
    }

    fn wait_group(&mut self, id: OpId) {
        if self.plan.target.copy_async {
            let younger = self.groups.waits.get(&id).copied().unwrap_or(0);
            self.b.op(lane::OpKind::CopyWait(younger), &[]);
        }
    }

    /// Nothing is under way after this.
    fn drain(&mut self) {
        if self.plan.target.copy_async && !self.rings.is_empty() {
            self.b.op(lane::OpKind::CopyWait(0), &[]);
        }
    }
}
