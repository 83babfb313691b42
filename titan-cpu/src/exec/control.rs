//! Blocks, loops, branches and moves.

use super::tile::{Data, Tile};
use super::{Machine, Outcome, trap};
use crate::plan::{BlockId, ForLoop, Moves, Node, Slot, Step};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;
use titan_core::ir::{ForKind, Loc};

/// The way in which a block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// By a `yield`.
    Yield,
    /// By a `break` to after the enclosing loop of this number.
    Break(u32),
    /// By a `continue` with the next iteration of the enclosing loop of this number.
    Continue(u32),
    /// The program has ended, or another one has trapped.
    Return,
}

/// The iterations of a counted loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter<'p> {
    pub(super) f: &'p ForLoop,
    index: i64,
    hi: i64,
    step: i64,
    /// The number of the iteration, for loops whose iterations are distributed over programs.
    number: u32,
}

impl<'p> Machine<'p, '_> {
    pub(super) fn block(&mut self, block: BlockId) -> Outcome<Flow> {
        let plan = self.plan;
        for node in &plan.blocks[block] {
            // A step that leaves the block may have given tiles of this block new values already, so it kills what it
            // determines to be dead itself.
            if let Some(flow) = self.node(node)? {
                return Ok(flow);
            }
            for tile in &node.kills {
                self.kill(*tile);
            }
        }
        Ok(Flow::Yield)
    }

    /// Runs a step; returns how the block ended, if the step ends it.
    pub(super) fn node(&mut self, node: &'p Node) -> Outcome<Option<Flow>> {
        match &node.step {
            Step::Scalar { to, f, args } => {
                let bits = f(args.map(|a| self.scalar(a)));
                self.set(*to, bits);
            }
            Step::Elements(group) => self.elements(group)?,
            Step::For(f) => return self.for_loop(f, node.loc),
            Step::Loop { enter, body } => return self.endless(enter, *body),
            Step::If { condition, then, other } => {
                let arm = if self.scalar(*condition) != 0 { *then } else { *other };
                let flow = self.block(arm)?;
                return Ok((flow != Flow::Yield).then_some(flow));
            }
            Step::Yield(moves) => return self.leave(node, moves, Flow::Yield),
            Step::Break(depth, moves) => return self.leave(node, moves, Flow::Break(*depth)),
            Step::Continue(depth, moves) => return self.leave(node, moves, Flow::Continue(*depth)),
            Step::Return => return Ok(Some(Flow::Return)),
            Step::Tile(step) => self.tile_step(step, node)?,
            Step::Fact(step) => self.fact(step, node.loc)?,
            Step::Memory(step) => self.memory_step(step, node.loc)?,
            Step::Ring(step) => self.ring_step(step, node.loc)?,
            Step::Roles(blocks) => return self.roles(blocks, node.loc),
            Step::Print { format, args } => self.print(format, args)?,
            Step::Assert { message, condition } => self.assert(message, *condition, node.loc)?,
        }
        Ok(None)
    }

    fn leave(&mut self, node: &Node, moves: &Moves, flow: Flow) -> Outcome<Option<Flow>> {
        self.moves(moves);
        for tile in &node.kills {
            self.kill(*tile);
        }
        Ok(Some(flow))
    }

    /// Copies values in parallel: sources are read before any target is set.
    pub(super) fn moves(&mut self, moves: &Moves) {
        match moves[..] {
            [] => {}
            [(from, to)] => self.one_move(from, to),
            _ => self.many_moves(moves),
        }
    }

    fn one_move(&mut self, from: Slot, to: Slot) {
        match (from, to) {
            (Slot::Scalar(from), Slot::Scalar(to)) => self.set(to, self.scalar(from)),
            (Slot::Tile(from), Slot::Tile(to)) => {
                let tile = self.share(from);
                self.set_tile(to, tile);
            }
            (Slot::View(from), Slot::View(to)) => self.views[to as usize] = self.view(from),
            (Slot::Scalar(_) | Slot::Tile(_) | Slot::View(_), _) => {}
        }
    }

    fn many_moves(&mut self, moves: &Moves) {
        let clash = moves.iter().enumerate().any(|(i, (_, to))| moves[i + 1..].iter().any(|(from, _)| from == to));
        if !clash {
            moves.iter().for_each(|(from, to)| self.one_move(*from, *to));
            return;
        }
        let mut scalars = std::mem::take(&mut self.work.moved);
        scalars.clear();
        let mut tiles: Vec<Tile<'_>> = Vec::new();
        let mut views = Vec::new();
        for (from, _) in moves {
            match from {
                Slot::Scalar(from) => scalars.push(self.scalar(*from)),
                Slot::Tile(from) => tiles.push(self.share(*from)),
                Slot::View(from) => views.push(self.view(*from)),
            }
        }
        let (mut s, mut t, mut v) = (scalars.iter(), tiles.into_iter(), views.into_iter());
        for (_, to) in moves {
            match to {
                Slot::Scalar(to) => self.work.scalars[*to as usize] = s.next().copied().unwrap_or(0),
                Slot::Tile(to) => {
                    let tile = t.next().unwrap_or_default();
                    self.set_tile(*to, tile);
                }
                Slot::View(to) => {
                    if let Some(view) = v.next() {
                        self.views[*to as usize] = view;
                    }
                }
            }
        }
        self.work.moved = scalars;
    }

    fn for_loop(&mut self, f: &'p ForLoop, loc: Loc) -> Outcome<Option<Flow>> {
        let mut counter = self.enter(f, loc)?;
        while self.iterate(&mut counter)? {
            if let ControlFlow::Break(flow) = self.iteration(f.body)? {
                return Ok(flow);
            }
        }
        self.leave_for(f);
        Ok(None)
    }

    /// Runs the body of a loop once; breaks if the loop has ended, with the continuation.
    fn iteration(&mut self, body: BlockId) -> Outcome<ControlFlow<Option<Flow>>> {
        Ok(match self.block(body)? {
            Flow::Break(0) => ControlFlow::Break(None),
            Flow::Break(n) => ControlFlow::Break(Some(Flow::Break(n - 1))),
            Flow::Continue(n) if n > 0 => ControlFlow::Break(Some(Flow::Continue(n - 1))),
            Flow::Return => ControlFlow::Break(Some(Flow::Return)),
            Flow::Yield | Flow::Continue(_) if self.stop.load(Relaxed) => ControlFlow::Break(Some(Flow::Return)),
            Flow::Yield | Flow::Continue(_) => ControlFlow::Continue(()),
        })
    }

    /// Begins a loop: its carried values get their initial values.
    pub(super) fn enter(&mut self, f: &'p ForLoop, loc: Loc) -> Outcome<Counter<'p>> {
        let [lo, hi, step] = f.bounds.map(|b| i64::from(self.int(b)));
        if step <= 0 {
            return trap(loc, format!("the step of a loop is {step}; it must be positive"));
        }
        self.moves(&f.enter);
        let index = match &f.product {
            Some(product) if product.rings.is_empty() => self.product_loop(product, lo, hi)?,
            Some(_) | None => lo,
        };
        Ok(Counter { f, index, hi, step, number: 0 })
    }

    /// Continues with the next iteration of this program; returns false if there is none.
    pub(super) fn iterate(&mut self, counter: &mut Counter<'p>) -> Outcome<bool> {
        let Counter { f, hi, step, .. } = *counter;
        if let Some(product) = &f.product
            && !product.rings.is_empty()
        {
            // The number of stages that are available; more may be filled while the role waits during an iteration.
            let span = (hi - counter.index).max(0);
            counter.index += self.staged_product(product, span / step + i64::from(span % step > 0))? * step;
        }
        while counter.index < hi {
            let (index, number) = (counter.index, counter.number);
            counter.index += step;
            counter.number = number.wrapping_add(1);
            if f.kind != ForKind::Distributed || number % self.grid[0].max(1) == self.program[0] {
                self.set(f.index, index.cast_unsigned());
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Ends a loop after its last iteration: its results get the last values.
    pub(super) fn leave_for(&mut self, f: &ForLoop) {
        self.moves(&f.leave);
        // The results have the values now; the carried slots are emptied, so that the buffers can be reused in place.
        for (from, _) in &f.leave {
            if let Slot::Tile(from) = from
                && matches!(self.tiles[*from as usize].data, Data::Buffer(_))
            {
                self.kill(*from);
            }
        }
    }

    fn endless(&mut self, enter: &Moves, body: BlockId) -> Outcome<Option<Flow>> {
        self.moves(enter);
        loop {
            if let ControlFlow::Break(flow) = self.iteration(body)? {
                return Ok(flow);
            }
        }
    }

    fn assert(&mut self, message: &str, condition: Slot, loc: Loc) -> Outcome<()> {
        let holds = match condition {
            Slot::Scalar(scalar) => self.scalar(scalar) != 0,
            Slot::Tile(tile) => {
                self.make_dense(tile)?;
                self.dense(tile).iter().all(|b| *b != 0)
            }
            Slot::View(_) => true,
        };
        if holds { Ok(()) } else { trap(loc, message.to_owned()) }
    }
}
