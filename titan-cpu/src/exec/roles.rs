//! The roles of a program take turns: each runs until it needs a stage that is not filled, or room in a ring that is full.
//!
//! Rings are queues with at least as many slots as the kernel declares, and roles interact nowhere else, so the order of the turns
//! does not affect their results, and a kernel that terminates on a GPU terminates here.
//!
//! Blocks in which a role may have to wait are run here, with an explicit stack that persists between turns; all other blocks,
//! including those inside of them, are run as without roles.

use super::control::{Counter, Flow};
use super::{Machine, Outcome, trap};
use crate::plan::rings::RingStep;
use crate::plan::{BlockId, Node, Step};
use std::sync::atomic::Ordering::Relaxed;
use titan_core::ir::Loc;

/// A block that a role is executing.
#[derive(Debug)]
struct Level<'p> {
    block: BlockId,
    /// The index of the next step.
    at: usize,
    kind: Kind<'p>,
}

/// The relation of the block to the step that contains it.
#[derive(Debug)]
enum Kind<'p> {
    /// An arm of a branch, or the whole role.
    Arm,
    For(Counter<'p>),
    Endless,
}

/// The way in which a turn ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Waits,
    Ended,
    /// The program has ended, or another one has trapped.
    Stopped,
}

/// The state of a role: the blocks that it is executing, outermost first. Empty when it has ended.
type Stack<'p> = Vec<Level<'p>>;

impl<'p> Machine<'p, '_> {
    /// Runs the blocks of the roles to their ends.
    pub(super) fn roles(&mut self, blocks: &'p [BlockId], loc: Loc) -> Outcome<Option<Flow>> {
        let mut roles: Vec<Stack<'p>> = blocks.iter().map(|block| vec![level(*block, Kind::Arm)]).collect();
        loop {
            let mut moved = false;
            for role in roles.iter_mut().filter(|role| !role.is_empty()) {
                match self.turn(role, &mut moved)? {
                    Turn::Waits | Turn::Ended => {}
                    Turn::Stopped => return Ok(Some(Flow::Return)),
                }
            }
            if roles.iter().all(Vec::is_empty) {
                return Ok(None);
            }
            if !moved {
                return trap(loc, "the roles wait for each other".to_owned());
            }
        }
    }

    /// Runs a role until it must wait or ends.
    fn turn(&mut self, role: &mut Stack<'p>, moved: &mut bool) -> Outcome<Turn> {
        let plan = self.plan;
        while let Some(Level { block, at, .. }) = role.last() {
            let node = plan.blocks[*block].get(*at);
            if node.is_some_and(|node| self.must_wait(node)) {
                return Ok(Turn::Waits);
            }
            *moved = true;
            let flow = match node {
                Some(node) => self.go_on(role, node)?,
                None => Some(Flow::Yield),
            };
            if let Some(flow) = flow
                && !self.unwind(role, flow)?
            {
                return Ok(Turn::Stopped);
            }
        }
        Ok(Turn::Ended)
    }

    fn must_wait(&self, node: &Node) -> bool {
        let Step::Ring(step) = &node.step else { return false };
        match step {
            RingStep::Acquire { ring, .. } => self.rings[*ring].is_full(),
            RingStep::Wait { ring, time } => !self.is_filled(*ring, *time),
            RingStep::Produce { .. }
            | RingStep::Fill { .. }
            | RingStep::Ready { .. }
            | RingStep::Poisoned { .. }
            | RingStep::View { .. }
            | RingStep::Release { .. } => false,
        }
    }

    /// Runs a step, or enters the block inside of it; returns how the block ended, if the step ends it.
    fn go_on(&mut self, role: &mut Stack<'p>, node: &'p Node) -> Outcome<Option<Flow>> {
        let waits = |block: &BlockId| self.plan.waits[*block];
        if let Step::For(f) = &node.step
            && waits(&f.body)
        {
            let counter = self.enter(f, node.loc)?;
            self.iterate_next(role, level(f.body, Kind::For(counter)))?;
        } else if let Step::Loop { enter, body } = &node.step
            && waits(body)
        {
            self.moves(enter);
            role.push(level(*body, Kind::Endless));
        } else if let Step::If { condition, then, other } = &node.step
            && (waits(then) || waits(other))
        {
            let arm = if self.scalar(*condition) != 0 { *then } else { *other };
            role.push(level(arm, Kind::Arm));
        } else {
            let flow = self.node(node)?;
            if flow.is_none() {
                self.next(role);
            }
            return Ok(flow);
        }
        Ok(None)
    }

    /// Advances past the step that a role has executed.
    fn next(&mut self, role: &mut Stack<'p>) {
        let Some(level) = role.last_mut() else { return };
        let node = self.plan.blocks[level.block].get(level.at);
        level.at += 1;
        for tile in node.iter().flat_map(|node| &node.kills) {
            self.kill(*tile);
        }
    }

    /// Ends the innermost block, and those around it that end with it; returns false if the program ends.
    fn unwind(&mut self, role: &mut Stack<'p>, mut flow: Flow) -> Outcome<bool> {
        while let Some(level) = role.pop() {
            let is_loop = !matches!(level.kind, Kind::Arm);
            flow = match flow {
                Flow::Return => return Ok(false),
                Flow::Break(0) if is_loop => {
                    self.next(role);
                    return Ok(true);
                }
                Flow::Break(n) if is_loop => Flow::Break(n - 1),
                Flow::Continue(n) if is_loop && n > 0 => Flow::Continue(n - 1),
                Flow::Yield | Flow::Continue(0) if is_loop => {
                    if self.stop.load(Relaxed) {
                        return Ok(false);
                    }
                    self.iterate_next(role, level)?;
                    return Ok(true);
                }
                Flow::Yield => {
                    self.next(role);
                    return Ok(true);
                }
                Flow::Break(_) | Flow::Continue(_) => flow,
            };
        }
        Ok(true)
    }

    /// Starts the next iteration of a loop, or continues after the loop.
    fn iterate_next(&mut self, role: &mut Stack<'p>, mut level: Level<'p>) -> Outcome<()> {
        level.at = 0;
        if let Kind::For(counter) = &mut level.kind
            && !self.iterate(counter)?
        {
            self.leave_for(counter.f);
            self.next(role);
        } else {
            role.push(level);
        }
        Ok(())
    }
}

fn level<'p>(block: BlockId, kind: Kind<'p>) -> Level<'p> {
    Level { block, at: 0, kind }
}
