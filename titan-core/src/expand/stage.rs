//! Lowers the operations that fill and read stages.

use super::filling::Filling;
use super::ring::Mode;
use super::{Expand, Made, Stage};
use crate::analysis::sides;
use crate::ir::{
    Claim, Const, Elem, Fill, Fold, LocalOp, NvGroup, NvOp, Op, OpKind, Pipe, Pred, ReduceOp, Strided, TileShape,
    TtgOp, Ty, Unit, Value,
};
use crate::layout::Layout;

impl Expand<'_> {
    pub(super) fn ring_op(&mut self, op: &Op, ttg: &TtgOp) -> Made<()> {
        match ttg {
            TtgOp::Source(..) | TtgOp::SourceRows { .. } => self.copy(op),
            TtgOp::Acquire(pipe) => {
                let stage = self.tick(*pipe, 0)?;
                self.wait_free(stage)?;
                self.stages.insert(op.results[0], stage);
                Ok(())
            }
            TtgOp::Ready(pipe) => {
                let stage = self.tick(*pipe, 1)?;
                self.claim(Claim::Next, stage)?;
                self.stages.insert(op.results[0], stage);
                Ok(())
            }
            TtgOp::AsyncProduce { skipped, .. } => self.produce(op, *skipped),
            TtgOp::Fill(fill) => self.fill_without(op, *fill),
            TtgOp::WaitReady => {
                let stage = self.stage_of(op)?;
                self.wait_ready(stage)?;
                self.pass_on(op, stage);
                Ok(())
            }
            TtgOp::ReadPerm | TtgOp::Consumed | TtgOp::Join | TtgOp::Split(_) => {
                let stage = self.stage_of(op)?;
                self.pass_on(op, stage);
                Ok(())
            }
            TtgOp::Poisoned => self.ask_poison(op),
            TtgOp::View { field, elem, shape } => {
                let stage = self.stage_of(op)?;
                let view = self.field(stage, usize::from(*field), *elem, *shape)?;
                self.make(op.results[0], view);
                Ok(())
            }
            TtgOp::Release => {
                let stage = self.stage_of(op)?;
                self.release(stage)
            }
            TtgOp::Write => self.write_stage(op),
            TtgOp::StoreIssue(unit) => self.store_stage(op, *unit),
            TtgOp::StoreWait => Ok(()),
            // Copies by lanes and accesses of threads are generic, so that no proxy fence is needed without copies of boxes.
            TtgOp::Fence { .. } if self.target.box_copies().is_none() => Ok(()),
            TtgOp::Fence { .. } => self.copy(op),
            TtgOp::Finalize => {
                self.drain()?;
                self.op(OpKind::Ttg(TtgOp::Finalize), &[]).map(drop)
            }
            TtgOp::Roles => self.roles(op),
            TtgOp::Read
            | TtgOp::ComputeIssue
            | TtgOp::ComputeWait
            | TtgOp::AccStart(_)
            | TtgOp::AccMma
            | TtgOp::AccFinish
            | TtgOp::Claim(..)
            | TtgOp::Rematerialize => Err(self.internal("an operation of a ring that is not laid out")),
        }
    }

    fn stage_of(&self, op: &Op) -> Made<Stage> {
        let token = op.args.iter().find_map(|v| self.stages.get(v)).copied();
        token.ok_or_else(|| self.internal("a token without a stage"))
    }

    /// Makes the result of an operation stand for the same stage.
    fn pass_on(&mut self, op: &Op, stage: Stage) {
        self.stages.extend(op.results.iter().map(|token| (*token, stage)));
    }

    fn fields(&self, stage: Stage) -> Vec<(Elem, TileShape)> {
        self.k.pipes[stage.pipe].fields.iter().map(|f| (f.elem, f.shape)).collect()
    }

    /// Starts the bulk copies to a slot, whose barrier expects their bytes.
    fn start_boxes(&mut self, op: &Op, stage: Stage, full: Value) -> Made<()> {
        let barrier = self.barrier_of(full, stage)?;
        let filling = self.rings[stage.pipe].filling.clone();
        let tiles = op.args[1..].iter().zip(self.fields(stage)).enumerate();
        let boxes: Vec<_> = tiles.filter(|(field, _)| filling.is_box(*field)).collect();
        let of_tile = |(elem, shape): (Elem, TileShape)| tile_bytes(elem, shape);
        let bytes = boxes.iter().map(|(_, (_, tile))| of_tile(*tile)).fold(0, u32::saturating_add);
        self.op(OpKind::Nv(NvOp::ArriveExpectTx { bytes }), &[barrier])?;
        for (field, (old, (elem, shape))) in boxes {
            let source = self.same(*old)?;
            let tile = self.field(stage, field, elem, shape)?;
            let bytes = tile_bytes(elem, shape);
            let multicast = self.receivers(stage, *old, field);
            self.op(
                OpKind::Nv(NvOp::BulkLoad { tensor: true, bytes, multicast, strided: Strided::NONE }),
                &[source, tile, barrier],
            )?;
        }
        Ok(())
    }

    /// The programs of the cluster that receive a tile, as a bit mask; 0 means this program alone.
    fn receivers(&self, stage: Stage, source: Value, field: usize) -> u16 {
        let ring = &self.rings[stage.pipe];
        let encoding = ring.fields.get(field).and_then(|(_, id)| self.laid.encodings.get(id.index()));
        let parts = encoding.map_or(1, |e| crate::lay_out::parts(self.k, &self.differing, source, e));
        if ring.shared && parts > 1 { u16::MAX >> (16 - parts.min(16)) } else { 0 }
    }

    /// Starts the copies to a slot.
    fn produce(&mut self, op: &Op, skipped: Option<Fill>) -> Made<()> {
        let stage = self.stage_of(op)?;
        let filling = self.rings[stage.pipe].filling.clone();
        if let (true, Mode::Mbarriers { full, .. } | Mode::Sequence { full, .. }) =
            (filling.has_boxes(), self.rings[stage.pipe].mode.clone())
        {
            // Bulk copies are started before the copies by threads, which take longer to issue.
            self.start_boxes(op, stage, full)?;
        }
        if filling == Filling::Bulk {
            return self.claim(Claim::Filled, stage);
        }
        let asked = match (skipped, op.args.last()) {
            (Some(_), Some(asked)) => Some(self.same(*asked)?),
            (_, _) => None,
        };
        let word = match (skipped, asked) {
            (Some(Fill::Poison), Some(asked)) => {
                let (zero, one) = (self.b.i32(0), self.b.i32(1));
                self.one(OpKind::Select, &[asked, zero, one])?
            }
            (_, _) => self.b.i32(0),
        };
        let told = self.tell_poison(stage, word)?;
        let (mut copied, mut stored) = (false, told);
        let sources = op.args[1..].iter().copied().filter(|v| matches!(self.k.ty(*v), Ty::Source(..) | Ty::Tile(..)));
        for (field, (old, (elem, shape))) in sources.zip(self.fields(stage)).enumerate() {
            if filling.is_box(field) {
                continue;
            }
            if let Ty::Tile(..) = self.k.ty(old) {
                // Its elements were fetched before.
                let (held, tile) = (self.same(old)?, self.field(stage, field, elem, shape)?);
                self.op(OpKind::Local(LocalOp::Store), &[held, tile])?;
                stored = true;
                continue;
            }
            let mut source = self.same(old)?;
            if let Some(asked) = asked {
                // A copy that is skipped writes zeros, and reads nothing.
                source = self.one(OpKind::Local(LocalOp::Guard), &[source, asked])?;
                self.b.set_place(source, self.k.value(old).place);
            }
            let tile = self.field(stage, field, elem, shape)?;
            let asynchronous =
                crate::lay_out::copies_itself(self.b.kernel(), source, tile, self.target.lane_copies().is_some());
            self.op(OpKind::Local(LocalOp::Copy { asynchronous }), &[source, tile])?;
            copied |= asynchronous;
            stored |= !asynchronous;
        }
        self.filled(stage, [copied, stored])
    }

    /// Fills a stage without a copy.
    fn fill_without(&mut self, op: &Op, fill: Fill) -> Made<()> {
        let stage = self.stage_of(op)?;
        let word = self.b.i32(i32::from(fill == Fill::Poison));
        self.tell_poison(stage, word)?;
        for (field, (elem, shape)) in self.fields(stage).into_iter().enumerate().filter(|_| fill == Fill::Zero) {
            let tile = self.field(stage, field, elem, shape)?;
            let zero = if elem.is_float() { Const::Float(elem, 0.0) } else { Const::Int(elem, 0) };
            let zero = self.b.constant(zero);
            // The encoding may be larger than the tile; all of it is filled with zeros.
            let Some(extents) = self.b.kernel().encoding(tile).map(|e| e.extents.clone()) else { continue };
            let mut whole = tile;
            for (axis, n) in (0u8..).zip(&extents) {
                let n = i32::try_from(*n).unwrap_or(i32::MAX);
                if self.b.ty(whole).tile_shape().and_then(|s| s.get(usize::from(axis)).copied()) != Some(n) {
                    let start = self.b.i32(0);
                    let place = self.b.kernel().value(whole).place;
                    whole = self.one(OpKind::Local(LocalOp::Slice { axis, n }), &[whole, start])?;
                    self.b.set_place(whole, place);
                }
            }
            let Some(Ty::Smem(_, shape)) = Some(self.b.ty(whole)) else { continue };
            let zeros = self.one(OpKind::Splat(shape), &[zero])?;
            let layout = crate::plan::wide(&extents, elem.bits(), self.laid.lanes, self.warps);
            self.b.put(zeros, &layout);
            self.op(OpKind::Local(LocalOp::Store), &[zeros, whole])?;
        }
        self.filled(stage, [false, true])
    }

    /// Writes the poison word of a stage by one thread; returns whether the ring has poison words.
    fn tell_poison(&mut self, stage: Stage, word: Value) -> Made<bool> {
        let Some(place) = self.poison_word(stage)? else { return Ok(false) };
        let Some(shape) = TileShape::new(&[1]) else { return Ok(false) };
        let tile = self.one(OpKind::Splat(shape), &[word])?;
        self.b.put(tile, &Layout::by_all(self.laid.lanes, self.warps));
        self.op(OpKind::Local(LocalOp::Store), &[tile, place])?;
        Ok(true)
    }

    fn ask_poison(&mut self, op: &Op) -> Made<()> {
        let stage = self.stage_of(op)?;
        let answer = match self.poison_word(stage)? {
            Some(place) => {
                let tile = self.one(OpKind::Local(LocalOp::Load), &[place])?;
                self.b.put(tile, &Layout::by_all(self.laid.lanes, self.warps));
                let only = LocalOp::Fold { f: Fold::Plain(ReduceOp::Max), axis: 0, parts: 1 };
                let word = self.one(OpKind::Local(only), &[tile])?;
                let zero = self.b.i32(0);
                self.one(OpKind::Cmp(Pred::Ne), &[word, zero])?
            }
            None => self.b.constant(Const::Int(Elem::Bool, 0)),
        };
        self.make(op.results[0], answer);
        Ok(())
    }

    /// Fills a slot of a staging ring from registers.
    fn write_stage(&mut self, op: &Op) -> Made<()> {
        let stage = self.stage_of(op)?;
        for (field, (old, (elem, shape))) in op.args[1..].iter().zip(self.fields(stage)).enumerate() {
            let tile = self.field(stage, field, elem, shape)?;
            let value = self.same(*old)?;
            self.op(OpKind::Local(LocalOp::Store), &[value, tile])?;
        }
        self.claim(Claim::Filled, stage)?;
        self.pass_on(op, stage);
        Ok(())
    }

    /// Stores a slot synchronously through registers, in whole lines.
    fn store_stage(&mut self, op: &Op, unit: Unit) -> Made<()> {
        let stage = self.stage_of(op)?;
        let Some((elem, shape)) = self.fields(stage).first().copied() else {
            return Err(self.internal("a stage without tiles"));
        };
        let tile = self.field(stage, 0, elem, shape)?;
        let extents: Vec<u32> = shape.into();
        let layout = crate::plan::wide(&extents, elem.bits(), self.laid.lanes, self.warps);
        let value = self.one(OpKind::Local(LocalOp::Load), &[tile])?;
        self.b.put(value, &layout);
        let mut args = self.all_same(&op.args[..op.args.len() - 1])?;
        args.push(value);
        self.store(unit, args)?;
        self.claim(Claim::Released, stage)?;
        self.pass_on(op, stage);
        Ok(())
    }

    /// Commits the open group.
    pub(super) fn commit(&mut self) -> Made<()> {
        self.tokens += 1;
        self.op(OpKind::Nv(NvOp::Commit { group: NvGroup::CpAsync, n: self.tokens - 1 }), &[]).map(drop)
    }

    pub(super) fn wait_groups(&mut self, n: u32) -> Made<()> {
        self.op(OpKind::Nv(NvOp::WaitGroup { group: NvGroup::CpAsync, n, read: false }), &[]).map(drop)
    }

    /// Waits for all copies of the threads of this role.
    fn drain(&mut self) -> Made<()> {
        // Only the readers of bulk copies wait for them, and a role that fills a ring by bulk copies alone does nothing else.
        let filled = |ring: usize| self.role.is_some_and(|role| sides::of(self.k, Pipe::new(ring))[0].contains(&role));
        let mut bulk = self.rings.iter().enumerate().filter(|(_, ring)| ring.filling == Filling::Bulk);
        if self.target.lane_copies().is_none()
            || bulk.clone().count() == self.rings.len()
            || bulk.any(|(ring, _)| filled(ring))
        {
            return Ok(());
        }
        if self.role.is_some() {
            // Copies to rings between roles are not committed to a group otherwise.
            self.commit()?;
        }
        self.wait_groups(0)
    }
}

/// The size of a tile in bytes.
fn tile_bytes(elem: Elem, shape: TileShape) -> u32 {
    u32::try_from(shape.len() as u64 * u64::from(elem.bits()) / 8).unwrap_or(u32::MAX)
}
