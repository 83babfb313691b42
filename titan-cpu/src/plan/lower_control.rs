//! Loops, branches, terminators, prints and assertions.

use super::lower::{Frame, Lower, Region, Result};
use super::{BlockId, ForLoop, Moves, Plan, Slot, Step, TileStep};
use titan_core::ir::{ForKind, Op, OpKind, Value};

impl Lower<'_> {
    pub(super) fn control(&mut self, frame: &mut Frame, op: &Op) -> Result<()> {
        match (&op.kind, &op.args[..], &op.regions[..]) {
            (OpKind::Print(format), _, []) => {
                let mut args = Vec::new();
                for arg in &op.args {
                    args.push((self.any(frame, *arg)?, self.kernel.ty(*arg).elem()));
                }
                let uses: Vec<Slot> = args.iter().map(|(slot, _)| *slot).collect();
                self.push(frame, Step::Print { format: format.clone(), args }, &uses, &[]);
            }
            (OpKind::Assert(message), [condition], []) => {
                let condition = self.any(frame, *condition)?;
                self.push(frame, Step::Assert { message: message.clone(), condition }, &[condition], &[]);
            }
            (OpKind::For(kind), _, _) => self.for_loop(frame, op, *kind)?,
            (OpKind::Loop, values, [body]) => {
                let (enter, carried, results) = self.loop_slots(frame, op, values, 0)?;
                self.regions.push(Region::Loop { carried: carried.clone(), results: results.clone() });
                let body = self.loop_body(*body, &carried, 0)?;
                let uses: Vec<Slot> = enter.clone();
                let enter = enter.into_iter().zip(carried).collect();
                self.push(frame, Step::Loop { enter, body }, &uses, &results);
            }
            (OpKind::If, _, _) => self.branch(frame, op)?,
            (OpKind::Yield | OpKind::Break(_) | OpKind::Continue(_) | OpKind::Return, _, []) => {
                self.terminator(frame, op)?
            }
            _ => return self.wrong("an operation with the wrong operands"),
        }
        Ok(())
    }

    /// The slots of the initial values, of the carried values, and of the results. The body's first `skip` arguments are not carried.
    fn loop_slots(
        &mut self,
        frame: &mut Frame,
        op: &Op,
        init: &[Value],
        skip: usize,
    ) -> Result<(Vec<Slot>, Vec<Slot>, Vec<Slot>)> {
        let mut enter = Vec::new();
        for value in init {
            enter.push(self.any(frame, *value)?);
        }
        self.close_all(frame)?;
        let args = match op.regions.first().and_then(|b| self.kernel.blocks.get(b.index())) {
            Some(block) => block.args.clone(),
            None => return self.wrong("a loop without a body"),
        };
        if args.len() != init.len() + skip {
            return self.wrong("a loop that carries another number of values");
        }
        // The body's slots are defined before it is lowered, because `continue` needs them.
        let carried = args[skip..].iter().map(|a| self.define(*a)).collect::<Result<Vec<_>>>()?;
        let results = op.results.iter().map(|r| self.define(*r)).collect::<Result<Vec<_>>>()?;
        Ok((enter, carried, results))
    }

    /// Lowers a loop's body, whose block arguments after `skip` have these slots.
    fn loop_body(&mut self, body: titan_core::ir::Block, carried: &[Slot], skip: usize) -> Result<BlockId> {
        let loc = self.loc;
        let id = self.block_with(body, Some((carried, skip)))?;
        self.regions.pop();
        self.loc = loc;
        Ok(id)
    }

    fn for_loop(&mut self, frame: &mut Frame, op: &Op, kind: ForKind) -> Result<()> {
        let ([lo, hi, step, init @ ..], [body]) = (&op.args[..], &op.regions[..]) else {
            return self.wrong("a `for` without bounds or body");
        };
        let bounds = [self.scalar(*lo)?, self.scalar(*hi)?, self.scalar(*step)?];
        let (enter, carried, results) = self.loop_slots(frame, op, init, 1)?;
        if results.len() != carried.len() {
            return self.wrong("a `for` with another number of results");
        }
        self.regions.push(Region::Loop { carried: carried.clone(), results: results.clone() });
        let id = self.loop_body(*body, &carried, 1)?;
        let index = match self.kernel.block(*body).args.first().map(|a| self.scalar(*a)) {
            Some(index) => index?,
            None => return self.wrong("a `for` without an index"),
        };
        let uses = enter.clone();
        let enter: Moves = enter.into_iter().zip(carried.iter().copied()).collect();
        let leave = carried.into_iter().zip(results.iter().copied()).collect();
        let unit = self.plan.scalars[bounds[2] as usize] == 1 && self.kernel.int_constant(*step) == Some(1);
        let product = (self.options.products && kind != ForKind::Distributed)
            .then(|| super::product::recognize(&self.plan.blocks[id], (index, unit), &enter, &self.plan.tiles))
            .flatten();
        let step = Step::For(Box::new(ForLoop { kind, bounds, index, enter, leave, body: id, product }));
        self.push(frame, step, &uses, &results);
        Ok(())
    }

    fn branch(&mut self, frame: &mut Frame, op: &Op) -> Result<()> {
        let ([condition], [then, other]) = (&op.args[..], &op.regions[..]) else {
            return self.wrong("an `if` without its arms");
        };
        let condition = self.scalar(*condition)?;
        self.close_all(frame)?;
        let results = op.results.iter().map(|r| self.define(*r)).collect::<Result<Vec<_>>>()?;
        let loc = self.loc;
        self.regions.push(Region::Other { results: results.clone() });
        let (then, other) = (self.block(*then)?, self.block(*other)?);
        self.regions.pop();
        self.loc = loc;
        self.push(frame, Step::If { condition, then, other }, &[], &results);
        Ok(())
    }

    fn terminator(&mut self, frame: &mut Frame, op: &Op) -> Result<()> {
        let mut values = Vec::new();
        for arg in &op.args {
            values.push(self.any(frame, *arg)?);
        }
        self.close_all(frame)?;
        let step = match (&op.kind, self.regions.last()) {
            (OpKind::Yield, Some(Region::Other { results })) => Step::Yield(self.moves(&values, &results.clone())?),
            (OpKind::Break(depth), _) => Step::Break(*depth, self.moves(&values, &self.target(*depth)?.1)?),
            (OpKind::Continue(depth), _) => Step::Continue(*depth, self.moves(&values, &self.target(*depth)?.0)?),
            (OpKind::Return, _) => Step::Return,
            _ => return self.wrong("a `yield` outside of an `if`"),
        };
        self.push(frame, step, &values, &[]);
        Ok(())
    }

    /// The slots of the carried values and of the results of an enclosing loop.
    fn target(&self, depth: u32) -> Result<(Vec<Slot>, Vec<Slot>)> {
        let loops = self.regions.iter().rev().filter_map(|r| match r {
            Region::Loop { carried, results } => Some((carried.clone(), results.clone())),
            Region::Other { .. } => None,
        });
        match usize::try_from(depth).ok().and_then(|n| loops.into_iter().nth(n)) {
            Some(target) => Ok(target),
            None => self.wrong("a `break` or `continue` outside of a loop"),
        }
    }

    fn moves(&self, from: &[Slot], to: &[Slot]) -> Result<Moves> {
        let same_kind = |(a, b): (&Slot, &Slot)| std::mem::discriminant(a) == std::mem::discriminant(b);
        if from.len() != to.len() || !from.iter().zip(to).all(same_kind) {
            return self.wrong("a terminator with other values than its target takes");
        }
        Ok(from.iter().copied().zip(to.iter().copied()).collect())
    }
}

/// The number of iterations that is assumed for a loop.
const TRIPS: u64 = 8;

/// An estimate of the number of elements that a block computes.
pub(super) fn cost(plan: &Plan, block: BlockId) -> u64 {
    let mut sum = 0u64;
    for node in &plan.blocks[block] {
        let tiles: u64 =
            node.defs.iter().chain(&node.uses).map(|t| plan.tiles[*t as usize].len as u64).max().unwrap_or(0);
        let own = if let Step::Tile(TileStep::Mma { to, a, .. }) = &node.step {
            let k = plan.tiles[*a as usize].shape[3];
            plan.tiles[*to as usize].len as u64 * u64::try_from(k).unwrap_or(1) / 8
        } else if let Step::Elements(group) = &node.step {
            group.ops.len() as u64 * group.len as u64
        } else {
            tiles
        };
        let repeat = if matches!(node.step, Step::For(_) | Step::Loop { .. }) { TRIPS } else { 1 };
        let inner: u64 = node.step.inner_blocks().iter().map(|b| cost(plan, *b)).fold(0, u64::saturating_add);
        sum = sum.saturating_add(own).saturating_add(inner.saturating_mul(repeat)).saturating_add(16);
    }
    sum
}
