//! Rings, roles, MMAs in flight and stores through a slot.
//!
//! Most tokens are represented by the slot of the token before them: a read permission is the stage's time, and so is the result of
//! `consumed`.

use super::lower::{Frame, Lower, Region, Result};
use super::rings::{RingPlan, RingStep, Source};
use super::{MemoryStep, Slot, Step, TileStep, shape4};
use titan_core::ir::{Block, Fill, Kernel, Op, OpKind, Token, TtgOp, Ty, Value};

/// The roles that read each ring. A kernel without roles counts as one role.
pub(super) fn readers(kernel: &Kernel) -> Vec<Vec<usize>> {
    let mut specialized: Option<Vec<Block>> = None;
    kernel.walk(&mut |_, op| {
        if op.kind == OpKind::Ttg(TtgOp::Roles) {
            specialized = Some(op.regions.clone());
        }
    });
    let mut readers = vec![Vec::new(); kernel.pipes.len()];
    for (role, block) in specialized.unwrap_or_else(|| vec![kernel.body]).iter().enumerate() {
        kernel.walk_block(*block, &mut |_, op| {
            if let OpKind::Ttg(TtgOp::Ready(ring)) = op.kind
                && let Some(roles) = readers.get_mut(ring.index())
                && !roles.contains(&role)
            {
                roles.push(role);
            }
        });
    }
    readers
}

impl Lower<'_> {
    pub(super) fn rings(&mut self) {
        let rings = self.readers.iter().zip(&self.kernel.pipes);
        self.plan.rings = rings.map(|(readers, ring)| RingPlan::new(readers.len(), ring.slots)).collect();
    }

    pub(super) fn ring_op(&mut self, frame: &mut Frame, op: &Op, ttg: &TtgOp) -> Result<()> {
        match (ttg, &op.args[..], &op.results[..]) {
            // Sources are lowered where they are copied; the other operations concern only the memory of a GPU.
            (
                TtgOp::Source(..) | TtgOp::SourceRows { .. } | TtgOp::Finalize | TtgOp::Fence { .. } | TtgOp::StoreWait,
                ..,
            ) => Ok(()),
            (TtgOp::Roles, ..) => self.roles(frame, op),
            (TtgOp::Acquire(ring), _, [result]) => self.acquire(frame, ring.index(), *result),
            (TtgOp::Ready(ring), _, [result]) => self.ready(frame, ring.index(), *result),
            (TtgOp::AsyncProduce { skipped, .. }, [slot, copied @ ..], []) => {
                self.produce(frame, *slot, copied, *skipped)
            }
            (TtgOp::Fill(fill), [slot], []) => {
                let (ring, time) = self.time(*slot)?;
                self.ring_step(frame, RingStep::Fill { ring, time, fill: *fill });
                Ok(())
            }
            (TtgOp::WaitReady, [ready], [stage]) => {
                let (ring, time) = self.time(*ready)?;
                self.ring_step(frame, RingStep::Wait { ring, time });
                self.alias(*stage, Slot::Scalar(time));
                Ok(())
            }
            (TtgOp::Poisoned, [stage], [result]) => {
                let (ring, time) = self.time(*stage)?;
                let to = self.new_scalar(*result)?;
                self.ring_step(frame, RingStep::Poisoned { to, ring, time });
                Ok(())
            }
            (TtgOp::View { field, .. }, [stage], [result]) => {
                let ((ring, time), field) = (self.time(*stage)?, usize::from(*field));
                let to = self.new_tile(*result)?;
                self.push(frame, Step::Ring(RingStep::View { to, ring, time, field }), &[], &[Slot::Tile(to)]);
                Ok(())
            }
            (TtgOp::Release, [stage], []) => self.release(frame, *stage),
            (TtgOp::StoreIssue(unit), [tensor, at @ .., written], [result]) => {
                let (to, from) = (self.place(*tensor, at, *unit)?, self.slot(*written)?);
                let Slot::Tile(tile) = from else { return self.wrong("a store of a slot that was not written") };
                self.push(frame, Step::Memory(MemoryStep::Store { to, from: tile }), &[from], &[]);
                self.define(*result).map(drop)
            }
            (TtgOp::ComputeIssue, [a, b, c], [result]) => self.product(frame, [*a, *b, *c], *result),
            (TtgOp::AccMma, [acc, stage, a, b], [result]) => {
                self.product(frame, [*a, *b, *acc], *result)?;
                self.release(frame, *stage)
            }
            (
                TtgOp::ReadPerm
                | TtgOp::Split(_)
                | TtgOp::Join
                | TtgOp::Consumed
                | TtgOp::Read
                | TtgOp::ComputeWait
                | TtgOp::AccStart(_)
                | TtgOp::AccFinish
                | TtgOp::Rematerialize,
                [first, ..],
                results,
            ) => self.same(frame, *first, results),
            (TtgOp::Write, [_, tile, ..], results) => self.same(frame, *tile, results),
            _ => self.wrong("an operation with the wrong operands"),
        }
    }

    /// Lets results share the slot of an operand.
    fn same(&mut self, frame: &mut Frame, value: Value, results: &[Value]) -> Result<()> {
        let slot = self.any(frame, value)?;
        results.iter().for_each(|result| self.alias(*result, slot));
        Ok(())
    }

    fn ring_step(&self, frame: &mut Frame, step: RingStep) {
        self.push(frame, Step::Ring(step), &[], &[]);
    }

    /// The ring and the time of a token.
    fn time(&self, token: Value) -> Result<(usize, u32)> {
        let Ty::Token(kind, ring) = self.kernel.ty(token) else {
            return self.wrong("a token of a ring is wanted here");
        };
        if kind == Token::Written || ring.index() >= self.plan.rings.len() {
            return self.wrong("a token of a ring is wanted here");
        }
        Ok((ring.index(), self.scalar(token)?))
    }

    fn acquire(&mut self, frame: &mut Frame, ring: usize, result: Value) -> Result<()> {
        match self.plan.rings.get(ring).map(|ring| ring.readers) {
            // A written stage is stored directly from its buffer.
            Some(0) => self.define(result).map(drop),
            Some(_) => {
                let to = self.new_scalar(result)?;
                self.ring_step(frame, RingStep::Acquire { ring, to });
                Ok(())
            }
            None => self.wrong("a ring that does not exist"),
        }
    }

    fn ready(&mut self, frame: &mut Frame, ring: usize, result: Value) -> Result<()> {
        let mut readers = self.readers.get(ring).into_iter().flatten();
        let Some(reader) = readers.position(|role| *role == self.role) else {
            return self.wrong("a ring that the role does not read");
        };
        let to = self.new_scalar(result)?;
        self.ring_step(frame, RingStep::Ready { ring, reader, to });
        Ok(())
    }

    fn produce(&mut self, frame: &mut Frame, slot: Value, copied: &[Value], skipped: Option<Fill>) -> Result<()> {
        let (ring, time) = self.time(slot)?;
        let (unless, copied) = match (skipped, copied) {
            (Some(fill), [copied @ .., condition]) => (Some((self.scalar(*condition)?, fill)), copied),
            (Some(_), []) => return self.wrong("a copy without its condition"),
            (None, copied) => (None, copied),
        };
        let mut sources = Vec::new();
        let mut uses = Vec::new();
        for value in copied {
            sources.push(self.source(frame, *value, &mut uses)?);
        }
        self.push(frame, Step::Ring(RingStep::Produce { ring, time, sources, unless }), &uses, &[]);
        Ok(())
    }

    /// The source of a copy, lowered from the operation that names it. Its operands still have the same values.
    fn source(&mut self, frame: &mut Frame, value: Value, uses: &mut Vec<Slot>) -> Result<Source> {
        let kernel = self.kernel;
        let Some((OpKind::Ttg(ttg), [tensor, at @ .., pad])) = kernel.def_op(value).map(|op| (&op.kind, &op.args[..]))
        else {
            return self.wrong("a copy without a named source");
        };
        let pad = self.scalar(*pad)?;
        match (ttg, at) {
            (TtgOp::Source(unit, shape), _) => {
                Ok(Source::Tile { from: self.place(*tensor, at, *unit)?, shape: shape4(*shape), pad })
            }
            (TtgOp::SourceRows { rows: count, .. }, [rows @ .., col]) => {
                let (view, col, rows) = (self.view(*tensor)?, self.scalar(*col)?, self.slots_of(frame, rows)?);
                uses.extend(&rows);
                Ok(Source::Rows { view, rows, count: usize::try_from(*count).unwrap_or(0), col, pad })
            }
            _ => self.wrong("a copy without a named source"),
        }
    }

    fn product(&mut self, frame: &mut Frame, operands: [Value; 3], result: Value) -> Result<()> {
        let [Slot::Tile(a), Slot::Tile(b), Slot::Tile(c)] = self.slots_of(frame, &operands)?[..] else {
            return self.wrong("an MMA of values that are not tiles");
        };
        let to = self.new_tile(result)?;
        let uses = [a, b, c].map(Slot::Tile);
        self.push(frame, Step::Tile(TileStep::Mma { to, a, b, c }), &uses, &[Slot::Tile(to)]);
        Ok(())
    }

    fn release(&mut self, frame: &mut Frame, stage: Value) -> Result<()> {
        let (ring, time) = self.time(stage)?;
        self.ring_step(frame, RingStep::Release { ring, time });
        Ok(())
    }

    fn roles(&mut self, frame: &mut Frame, op: &Op) -> Result<()> {
        self.close_all(frame)?;
        let loc = self.loc;
        let mut blocks = Vec::new();
        for (role, region) in op.regions.iter().enumerate() {
            self.role = role;
            self.regions.push(Region::Other { results: Vec::new() });
            blocks.push(self.block(*region)?);
            self.regions.pop();
        }
        self.loc = loc;
        self.push(frame, Step::Roles(blocks), &[], &[]);
        Ok(())
    }
}
