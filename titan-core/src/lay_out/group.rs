//! MMAs of warpgroups, which are asynchronous: their start, the waits for them, and the release of the stages that they read.
//!
//! ```text
//! ttg.nv.wgmma.fence
//! %a0 = ttg.local.slice<1, 16> %a, %zero : smem<128x16xf16, 0>
//! %b0 = ttg.local.slice<0, 16> %b, %zero : smem<16x256xf16, 1>
//! %d0 = ttg.nv.wgmma.mma_async %a0, %b0, %acc : compute<128x256xf32, 2>
//! .. the other steps of K
//! %read = ttg.stage.consumed %before              the MMA before, which read this stage, is complete
//! ttg.stage.release %read
//! ```
//!
//! An accumulator (`ttg.acc.*`) has a list of the stages of its MMAs in flight. The number of these at the head of a loop is fixed: it is
//! the number when the loop is entered. So a loop that is entered without an MMA in flight waits for each of its own at once; the schedule of
//! the loop may put these waits behind the MMA of the next iteration.
//!
//! Deliberately absent: the steps of other MMAs (`super::mma`); groups, and the numbers of those that a wait leaves in flight
//! ([`crate::complete`]).

use super::mma::Operand;
use super::{Laid, LayOut};
use crate::ir::{NvOp, Op, OpId, OpKind, TtgOp, Ty, Value};
use crate::plan::MmaPlan;

/// The MMAs in flight of an accumulator.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight {
    /// The permissions to read the stages of the MMAs in flight, the oldest first.
    pub(super) stages: Vec<Value>,
    /// The number of MMAs that may stay in flight.
    keep: usize,
}

impl LayOut<'_> {
    /// Whether an old value is the result of a warpgroup's MMA, which may be in flight.
    pub(super) fn is_in_flight(&self, old: Value) -> bool {
        self.made[old.index()].is_some_and(|made| matches!(self.b.ty(made), Ty::Compute(..)))
    }

    /// Starts the steps of an MMA. The result is in flight.
    pub(super) fn by_groups(&mut self, mma: &MmaPlan, k: u32, [a, b]: [&Operand; 2], acc: Value) -> Laid<Value> {
        let [m, _, depth] = mma.extents;
        let fragment = mma.a.with_extents(&[m, k]);
        let Operand::Shared(b) = b else { return Err(self.internal("an operand B of warpgroups in registers")) };
        // The registers of A are written before the fence.
        let mut steps = Vec::new();
        for step in 0..depth / k {
            let at = self.index(step * k);
            let (Operand::Fragments(all) | Operand::Shared(all)) = a;
            let a = self.part_at(*all, 1, k, at)?;
            if matches!(self.b.ty(a), Ty::Tile(..)) {
                self.b.put(a, &fragment);
            }
            steps.push((a, self.part_at(*b, 0, k, at)?));
        }
        if let Operand::Shared(a) = a {
            self.settle_copy(*a)?;
        }
        self.settle_copy(*b)?;
        self.op(OpKind::Nv(NvOp::WgmmaFence), &[])?;
        let mut acc = acc;
        for (a, b) in steps {
            acc = self.one(OpKind::Nv(NvOp::Wgmma), &[a, b, acc])?;
            self.b.put(acc, &mma.acc);
        }
        Ok(acc)
    }

    /// Waits for an MMA, and returns its tile.
    pub(super) fn retire(&mut self, in_flight: Value) -> Laid<Value> {
        let Some(layout) = self.b.kernel().layout(in_flight).cloned() else {
            return Err(self.internal("an MMA in flight without a layout"));
        };
        let tile = self.one(OpKind::Ttg(TtgOp::ComputeWait), &[in_flight])?;
        self.b.put(tile, &layout);
        Ok(tile)
    }

    /// Lays out an operation on an accumulator.
    pub(super) fn accumulator(&mut self, id: OpId, op: &Op, ttg: &TtgOp) -> Laid<()> {
        let (old, result) = (op.args[0], op.results[0]);
        let own = self.in_flight.remove(&old).unwrap_or_default();
        if let TtgOp::AccStart(keep) = ttg {
            let layout = self.layout(result);
            let value = self.tile(old, &layout)?;
            self.made[result.index()] = Some(value);
            self.in_flight.insert(result, InFlight { stages: Vec::new(), keep: usize::from(*keep) });
            return Ok(());
        }
        if *ttg == TtgOp::AccFinish {
            let tile = self.finished(old, own)?;
            self.made[result.index()] = Some(tile);
            return Ok(());
        }
        let value = self.started(id, op)?;
        self.make(result, value);
        let InFlight { mut stages, keep } = own;
        stages.push(self.same(op.args[1])?);
        if keep == 0 || !self.is_in_flight(result) {
            let tile = self.finished(result, InFlight { stages, keep })?;
            self.made[result.index()] = Some(tile);
            self.in_flight.insert(result, InFlight::default());
            return Ok(());
        }
        let over = stages.len().saturating_sub(keep);
        if over > 0 {
            let rest = stages.split_off(over);
            self.release(stages)?;
            stages = rest;
        }
        self.in_flight.insert(result, InFlight { stages, keep });
        Ok(())
    }

    /// Waits for all MMAs of an accumulator, and releases their stages.
    pub(super) fn finished(&mut self, old: Value, own: InFlight) -> Laid<Value> {
        let value = self.same(old)?;
        let tile = if self.is_in_flight(old) { self.retire(value)? } else { value };
        self.release(own.stages)?;
        Ok(tile)
    }

    fn release(&mut self, stages: Vec<Value>) -> Laid<()> {
        for stage in stages {
            let consumed = self.one(OpKind::Ttg(TtgOp::Consumed), &[stage])?;
            self.op(OpKind::Ttg(TtgOp::Release), &[consumed])?;
        }
        Ok(())
    }

    /// The values that a loop carries for a value: the value itself, and for an accumulator the stages of its MMAs in flight.
    pub(super) fn with_stages(&self, old: Value, new: Value) -> Vec<Value> {
        let stages = self.in_flight.get(&old).map_or(&[][..], |f| &f.stages);
        std::iter::once(new).chain(stages.iter().copied()).collect()
    }

    /// The inverse for the argument of a loop's body, or its result: it has as many stages in flight as the value that was given to the
    /// loop.
    pub(super) fn take_stages<'v>(&mut self, given: Value, old: Value, new: &'v [Value]) -> &'v [Value] {
        let Some(InFlight { stages, keep }) = self.in_flight.get(&given) else { return new };
        let n = stages.len();
        let (own, rest) = new.split_at(n.min(new.len()));
        let keep = n.min(*keep);
        self.in_flight.insert(old, InFlight { stages: own.to_vec(), keep });
        rest
    }
}
