//! Operations on stages: reads, MMAs in flight, and stores of staging rings.
#![expect(clippy::wildcard_enum_match_arm, reason = "all other operands are rejected in the same way")]

use super::access::{shared, tensor};
use super::arith::{bytes, product};
use super::finding::{Found, Kind};
use super::machine::{Machine, Obs};
use super::plan::{BULK_STORE, BULK_WRITE, WGMMA};
use super::ring::{Slot, TO_ASYNC, misused, token};
use super::state::{Acc, Holds};
use super::value::{Smem, Tile, Val};
use super::work::{Effect, Operand, Res, Work};
use crate::engine::{self, Agent};
use std::rc::Rc;
use titan_core::ir::{Elem, FenceSpace, Op, OpId, Pipe, Proxy, Scope, TileShape, TtgOp, Ty, Unit};
use titan_core::num::pack_nibbles;

impl Machine<'_> {
    pub(super) fn view_stage(&mut self, agent: usize, op: &Op, (field, elem, lies): (u8, Elem, TileShape)) -> Res<()> {
        let s = self.slot(agent, op, 0)?;
        let field = usize::from(field);
        let len = self.ring(s.ring)?.fields.get(field).map_or(0, |f| f.1);
        if elem.bytes_for(lies.len()) as u64 > len {
            let name = self.kernel().pipe_name(Pipe::new(s.ring));
            return Err(Found::new(
                Kind::Bounds,
                format!(
                    "tile {field} of `{name}` has {len} bytes, but is viewed as one of {}",
                    elem.bytes_for(lies.len())
                ),
            ));
        }
        let smem = Smem { pipe: s.ring, time: s.time, field, elem, lies, order: (0..lies.rank()).collect() };
        self.set(agent, &op.results, [Val::Smem(Rc::new(smem))])
    }

    /// The slot, the address and the length in bytes of a tile of a stage.
    fn placed(&self, agent: usize, smem: &Smem) -> Res<(Slot, u64, u64)> {
        let s = self.slot_of(agent, smem.pipe, smem.time)?;
        let offset = self.ring(s.ring)?.fields.get(smem.field).map_or(0, |f| f.0);
        Ok((s, s.base + offset, smem.elem.bytes_for(smem.lies.len()) as u64))
    }

    pub(super) fn read_stage(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<()> {
        let Val::Smem(smem) = self.arg(agent, op, 0) else { return Err(misused("a stage")) };
        let tile = self.read_tile(agent, id, &smem, obs)?;
        self.set(agent, &op.results, [tile])
    }

    /// Reads a tile of a stage with ordinary loads.
    fn read_tile(&self, agent: usize, id: OpId, smem: &Smem, obs: Obs<'_, '_>) -> Res<Val> {
        let (s, lo, len) = self.placed(agent, smem)?;
        self.check_stage(agent, s)?;
        self.touch(agent, id, Some(s.time), shared(s.cta, lo, lo + len, false), obs)?;
        let tile = self.store.stage(&self.engine, s.cta, lo, smem)?;
        Ok(tile.map_or(Val::Unknown, |t| Val::Tile(Rc::new(t))))
    }

    /// Whether an operation is an MMA that reads its operands from stages.
    pub(super) fn reads_stages(&self, op: &Op) -> bool {
        op.args.iter().any(|v| matches!(self.kernel().ty(*v), Ty::Smem(..)))
    }

    /// Executes an MMA that reads stages and completes at once.
    pub(super) fn mma_of_stages(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<()> {
        let mut tiles = Vec::new();
        for i in 0..op.args.len() {
            tiles.push(match self.arg(agent, op, i) {
                Val::Smem(smem) => self.read_tile(agent, id, &smem, obs)?,
                other => other,
            });
        }
        let elem = op.results.first().map_or(Elem::F32, |v| self.kernel().ty(*v).elem());
        let sum = match &tiles[..] {
            [Val::Tile(a), Val::Tile(b), Val::Tile(c)] => {
                Val::Tile(Rc::new(Tile { shape: c.shape, cells: product::mma(a, b, c, elem) }))
            }
            _ => Val::Unknown,
        };
        self.set(agent, &op.results, [sum])
    }

    pub(super) fn product(&mut self, agent: usize, id: OpId, op: &Op, ttg: &TtgOp, obs: Obs<'_, '_>) -> Res<()> {
        match ttg {
            TtgOp::ComputeIssue => {
                let number = self.number(agent)?;
                self.keep_tile(agent, number, op, 2)?;
                let group = self.issue_product(agent, id, op, (number, 0), obs)?;
                self.thread(agent)?.products.insert(number);
                self.set(agent, &op.results, [Val::Compute { id: number, group }])
            }
            TtgOp::ComputeWait => {
                let Val::Compute { id: number, group } = self.arg(agent, op, 0) else {
                    return Err(misused("a product"));
                };
                self.wait_for(agent, WGMMA, group, obs)?;
                if !self.thread(agent)?.products.remove(&number) {
                    return Err(Found::new(Kind::Token, "an MMA is waited for twice"));
                }
                self.take_tile(agent, number, op)
            }
            TtgOp::AccStart(keep) => {
                let number = self.number(agent)?;
                self.keep_tile(agent, number, op, 0)?;
                self.thread(agent)?.accs.insert(number, Acc { keep: usize::from(*keep), ..Acc::default() });
                self.set(agent, &op.results, [Val::Acc(number)])
            }
            TtgOp::AccMma => {
                let Val::Acc(number) = self.arg(agent, op, 0) else { return Err(misused("an accumulator")) };
                let s = self.slot(agent, op, 1)?;
                let group = self.issue_product(agent, id, op, (number, 2), obs)?;
                if let Some(acc) = self.thread(agent)?.accs.get_mut(&number) {
                    acc.held.push_back((group, s.ring, s.time));
                }
                let keep = self.look(agent)?.accs.get(&number).map_or(0, |a| a.keep);
                self.retire(agent, id, (number, keep), obs)?;
                self.set(agent, &op.results, [Val::Acc(number)])
            }
            _ => {
                let Val::Acc(number) = self.arg(agent, op, 0) else { return Err(misused("an accumulator")) };
                self.retire(agent, id, (number, 0), obs)?;
                if self.thread(agent)?.accs.remove(&number).is_none() {
                    return Err(Found::new(Kind::Token, "an accumulator is finished twice"));
                }
                self.take_tile(agent, number, op)
            }
        }
    }

    pub(super) fn number(&mut self, agent: usize) -> Res<u32> {
        let next = &mut self.thread(agent)?.next;
        *next += 1;
        Ok(*next)
    }

    pub(super) fn keep_tile(&mut self, agent: usize, number: u32, op: &Op, i: usize) -> Res<()> {
        if let Val::Tile(tile) = self.arg(agent, op, i) {
            self.store.results.insert((agent, number), tile);
        }
        Ok(())
    }

    fn take_tile(&mut self, agent: usize, number: u32, op: &Op) -> Res<()> {
        let tile: Option<Rc<Tile>> = self.store.results.remove(&(agent, number));
        self.set(agent, &op.results, [tile.map_or(Val::Unknown, Val::Tile)])
    }

    /// Starts an MMA whose operands begin at argument `at`; returns its commit group.
    fn issue_product(
        &mut self,
        agent: usize,
        id: OpId,
        op: &Op,
        (number, at): (u32, usize),
        obs: Obs<'_, '_>,
    ) -> Res<u32> {
        let (mut touches, mut operands, mut time) = (Vec::new(), Vec::new(), None);
        for i in [at, at + 1] {
            operands.push(match self.arg(agent, op, i) {
                Val::Tile(tile) => Operand::Tile(tile),
                Val::Smem(smem) => {
                    let (s, address, len) = self.placed(agent, &smem)?;
                    self.check_stage(agent, s)?;
                    touches.push(shared(s.cta, address, address + len, false));
                    time = Some(s.time);
                    Operand::Shared { cta: s.cta, address, smem }
                }
                _ => Operand::Unknown,
            });
        }
        self.fence(agent, id, TO_ASYNC, obs)?;
        let elem = op.results.first().map_or(Elem::F32, |v| self.kernel().ty(*v).elem());
        let (Some(b), Some(a)) = (operands.pop(), operands.pop()) else { return Err(misused("operands")) };
        let before = self.engine.pending().of(Agent::new(agent), WGMMA).last().copied();
        let work = Work { op: id, time, touches, effect: Effect::Mma { id: (agent, number), a, b, elem } };
        self.start(agent, WGMMA, (before.into_iter().collect(), Vec::new()), work, obs)?;
        self.commit(agent, WGMMA, obs)
    }

    /// Waits until at most `keep` MMAs of an accumulator have unread stages, and releases the stages of the others.
    fn retire(&mut self, agent: usize, id: OpId, (number, keep): (u32, usize), obs: Obs<'_, '_>) -> Res<()> {
        loop {
            let acc = self.look(agent)?.accs.get(&number);
            let oldest = acc.filter(|a| a.held.len() > keep).and_then(|a| a.held.front().copied());
            let Some((group, ring, time)) = oldest else { return Ok(()) };
            self.wait_for(agent, WGMMA, group, obs)?;
            if let Some(acc) = self.thread(agent)?.accs.get_mut(&number) {
                acc.held.pop_front();
            }
            let s = self.slot_of(agent, ring, time)?;
            self.release(agent, id, s, obs)?;
        }
    }

    pub(super) fn write_stage(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<()> {
        let s = self.slot(agent, op, 0)?;
        let fields = self.ring(s.ring)?.fields.clone();
        self.hold(s, Holds::Stage(s.time));
        self.thread(agent)?.taken.remove(&(s.ring, s.time));
        if !self.thread(agent)?.written.insert((s.ring, s.time)) {
            return Err(Found::new(Kind::Token, format!("time {} of a staging ring is written twice", s.time)));
        }
        for (i, (offset, len)) in fields.into_iter().enumerate() {
            let lo = s.base + offset;
            self.touch(agent, id, Some(s.time), shared(s.cta, lo, lo + len, true), obs)?;
            let Machine { engine, store, .. } = self;
            store.define(engine, s.cta, lo, lo + len)?;
            if let (Some(value), Val::Tile(tile)) = (op.args.get(i + 1), self.arg(agent, op, i + 1)) {
                let elem = match self.kernel().ty(*value) {
                    Ty::Tile(e, _) => e,
                    _ => continue,
                };
                let mut raw = bytes::encode(elem, &tile.cells);
                if elem.bits() == 4 {
                    raw = pack_nibbles(&raw);
                }
                raw.truncate(usize::try_from(len).unwrap_or(0));
                let Machine { engine, store, .. } = self;
                store.write_shared(engine, s.cta, lo, &raw)?;
            }
        }
        self.set(agent, &op.results, [token(s)])
    }

    /// Starts the store of a slot: the slot is read first, then the tensor is written.
    pub(super) fn store_issue(&mut self, agent: usize, id: OpId, op: &Op, unit: Unit, obs: Obs<'_, '_>) -> Res<()> {
        let view = self.view(agent, op, 0)?;
        let rank = view.extents.len();
        let s = self.slot(agent, op, op.args.len().saturating_sub(1))?;
        if !self.thread(agent)?.written.remove(&(s.ring, s.time)) {
            return Err(Found::new(
                Kind::Token,
                format!("time {} of a staging ring is stored twice, or was not written", s.time),
            ));
        }
        let Some(shape) = self.kernel().pipe(Pipe::new(s.ring)).and_then(|p| p.fields.first()).map(|f| f.shape) else {
            return Err(misused("a slot"));
        };
        let Some((offset, len)) = self.ring(s.ring)?.fields.first().copied() else { return Err(misused("a slot")) };
        if shape.rank() != rank {
            return Err(Found::new(
                Kind::Bounds,
                format!("a tile of rank {} is stored to a tensor of rank {rank}", shape.rank()),
            ));
        }
        let first = self.first(agent, op, (1, rank), (unit == Unit::Tile).then_some(shape));
        // Earlier accesses of the role are ordered before the store: those to the slot, and those to the output.
        self.fence(agent, id, TO_ASYNC, obs)?;
        let output = (Proxy::Generic, Proxy::Async, Scope::Gpu, FenceSpace::Global);
        self.fence(agent, id, output, obs)?;
        let (number, lo) = (self.number(agent)?, s.base + offset);
        let kept = (agent, number);
        let read = Work {
            op: id,
            time: Some(s.time),
            touches: vec![shared(s.cta, lo, lo + len, false)],
            effect: Effect::Keep { id: kept, cta: s.cta, address: lo, len },
        };
        let read = self.start(agent, BULK_STORE, (Vec::new(), Vec::new()), read, obs)?;
        let written = tensor(&view, first.as_deref(), Some(shape), true, false);
        let put = Work {
            op: id,
            time: Some(s.time),
            touches: vec![written],
            effect: Effect::Put { id: kept, view: Rc::clone(&view), first: first.clone(), shape },
        };
        let before = self.engine.pending().of(Agent::new(agent), BULK_WRITE).last().copied();
        let put = self.start(agent, BULK_WRITE, (before.into_iter().chain([read]).collect(), Vec::new()), put, obs)?;
        if let Some(first) = first.as_deref() {
            let helper = Self::helper(BULK_WRITE, put);
            let write = (engine::AccessKind::Write, engine::Strength::Weak);
            self.tell_tensor((agent, id), (&view, first, shape), write, helper, obs)?;
        }
        let group = self.commit(agent, BULK_STORE, obs)?;
        self.commit(agent, BULK_WRITE, obs)?;
        self.set(agent, &op.results, [Val::Group(BULK_STORE, group)])
    }
}
