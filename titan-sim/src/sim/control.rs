//! Control flow: loops, branches, the specialization and join of roles, and the end of an agent.

use super::finding::{Found, Kind};
use super::machine::{Machine, Obs};
use super::state::{Frame, Moved};
use super::value::{Num, Val};
use super::work::Res;
use crate::engine::{Agent, Event, State, Wait};
use titan_core::ir::{ForKind, NvOp, Op, OpId, OpKind};

/// The reason of the wait of a role that has not begun.
pub(super) const ROLES_PART: u32 = 0;
/// The reason of the wait of a program's own thread while its roles run.
pub(super) const ROLES_JOIN: u32 = 1;

impl Machine<'_> {
    pub(super) fn enter_for(&mut self, agent: usize, id: OpId, op: &Op, kind: ForKind) -> Res<()> {
        let (mut lo, hi, mut step) = (self.int(agent, op, 0)?, self.int(agent, op, 1)?, self.int(agent, op, 2)?);
        if step <= 0 {
            return Err(Found::new(Kind::Trap, format!("the step of a loop is {step}; it must be positive")));
        }
        if kind == ForKind::Distributed {
            let program = self.ctas.get(self.cta(agent)).map_or(0, |c| c.program[0]);
            // Iterations over output tiles are distributed over clusters, not programs.
            let cluster = super::run::own_cluster(self.kernel());
            lo += i64::from(program / cluster) * step;
            step *= i64::from((self.store.setup.grid[0] / cluster).max(1));
        }
        let init = self.hand_on(agent, &op.args[3.min(op.args.len())..])?;
        self.enter(agent, id, op, Some((lo, hi, step)), init)?;
        self.head(agent)
    }

    pub(super) fn enter_loop(&mut self, agent: usize, id: OpId, op: &Op) -> Res<()> {
        let init = self.hand_on(agent, &op.args)?;
        self.enter(agent, id, op, None, init)
    }

    fn enter(&mut self, agent: usize, id: OpId, op: &Op, count: Option<(i64, i64, i64)>, init: Vec<Val>) -> Res<()> {
        let Some(block) = op.regions.first().copied() else { return Err(Found::not_modelled("a loop without a body")) };
        let args = &self.kernel().block(block).args;
        self.set(agent, &args[usize::from(count.is_some()).min(args.len())..], init)?;
        self.thread(agent)?.frames.push(Frame { block, at: 0, op: Some(id), count });
        Ok(())
    }

    /// Continues at the head of a counted loop: with the next iteration, or behind the loop.
    fn head(&mut self, agent: usize) -> Res<()> {
        let kernel = self.kernel();
        let Some(frame) = self.look(agent)?.frames.last().cloned() else { return Ok(()) };
        let (Some((index, hi, _)), Some(op)) = (frame.count, frame.op) else { return Ok(()) };
        let args = &kernel.block(frame.block).args;
        if index < hi {
            return self.set(agent, args, [Val::Num(Num::Int(index))]);
        }
        let last = self.hand_on(agent, &args[1.min(args.len())..])?;
        self.thread(agent)?.frames.pop();
        self.set(agent, &kernel.op(op).results, last)?;
        self.advance(agent)
    }

    /// The frame of the `n`-th enclosing loop; frames inside it are discarded.
    pub(super) fn unwind(&mut self, agent: usize, n: u32) -> Res<Frame> {
        let (kernel, mut left) = (self.kernel(), n);
        let thread = self.thread(agent)?;
        while let Some(frame) = thread.frames.last() {
            let is_loop = frame.op.is_some_and(|o| kernel.op(o).kind.is_loop());
            if is_loop && left == 0 {
                return Ok(frame.clone());
            }
            left -= u32::from(is_loop);
            thread.frames.pop();
        }
        Err(Found::not_modelled("a break out of more loops than exist"))
    }

    pub(super) fn again(&mut self, agent: usize, op: &Op, n: u32) -> Res<()> {
        let next = self.hand_on(agent, &op.args)?;
        let frame = self.unwind(agent, n)?;
        let args = &self.kernel().block(frame.block).args;
        let skip = usize::from(frame.count.is_some()).min(args.len());
        self.set(agent, &args[skip..], next)?;
        if let Some(frame) = self.thread(agent)?.frames.last_mut() {
            frame.at = 0;
            frame.count = frame.count.map(|(i, hi, step)| (i.saturating_add(step), hi, step));
        }
        self.head(agent)
    }

    /// Ends an arm of a branch, or a role.
    pub(super) fn leave(&mut self, agent: usize, op: &Op) -> Res<()> {
        let values = self.hand_on(agent, &op.args)?;
        let Some(frame) = self.thread(agent)?.frames.pop() else { return Ok(()) };
        let Some(inner) = frame.op else { return Ok(()) };
        if self.kernel().laid_out.is_some() && Some(inner) == self.plan.roles_op {
            return self.behind_roles(agent);
        }
        let results = self.kernel().op(inner).results.clone();
        self.set(agent, &results, values)?;
        self.advance(agent)
    }

    /// Starts the roles; the program's own thread waits for them.
    pub(super) fn part(&mut self, agent: usize, op: &Op, obs: Obs<'_, '_>) -> Res<Moved> {
        let per = self.plan.agents();
        let roles: Vec<usize> = (agent + 1..agent + per).collect();
        let state = |m: &Self, r: usize| m.engine.agents().state(Agent::new(r));
        if roles.iter().any(|r| state(self, *r) == State::Blocked(Wait::Other(ROLES_PART))) {
            let env = self.look(agent)?.env.clone();
            for (role, block) in roles.iter().zip(&op.regions) {
                let thread = self.thread(*role)?;
                thread.env.clone_from(&env);
                thread.frames.push(Frame { block: *block, at: 0, op: None, count: None });
                self.engine.agents_mut().set(Agent::new(*role), State::Ready);
            }
            let into: Vec<Agent> = roles.iter().map(|r| Agent::new(*r)).collect();
            self.tell(obs, &Event::Fork { agent: Agent::new(agent), into: &into })?;
        }
        if roles.iter().all(|r| state(self, *r) == State::Done) {
            let agents: Vec<Agent> = roles.iter().map(|r| Agent::new(*r)).collect();
            self.tell(obs, &Event::Join { agents: &agents, into: Agent::new(agent) })?;
            self.advance(agent)?;
            return Ok(Moved::On);
        }
        self.engine.agents_mut().set(Agent::new(agent), State::Blocked(Wait::Other(ROLES_JOIN)));
        Ok(Moved::Blocked)
    }

    /// Whether an agent is the program's own thread of a laid-out kernel, whose warps execute all operations.
    pub(super) fn begins_warps(&self, agent: usize) -> bool {
        let is_main = agent.is_multiple_of(self.plan.agents());
        let all_done = || {
            let warps = agent + 1..agent + self.plan.agents();
            warps.into_iter().all(|w| self.engine.agents().state(Agent::new(w)) == State::Done)
        };
        is_main && self.kernel().laid_out.is_some() && !all_done()
    }

    /// Starts the warps of a program; the program's own thread waits for them.
    pub(super) fn begin_warps(&mut self, agent: usize, obs: Obs<'_, '_>) -> Res<Moved> {
        let warps: Vec<usize> = (agent + 1..agent + self.plan.agents()).collect();
        let waits =
            |m: &Self, w: usize| m.engine.agents().state(Agent::new(w)) == State::Blocked(Wait::Other(ROLES_PART));
        if warps.iter().any(|w| waits(self, *w)) {
            let (env, block) = (self.look(agent)?.env.clone(), self.kernel().body);
            for warp in &warps {
                let thread = self.thread(*warp)?;
                thread.env.clone_from(&env);
                thread.frames.push(Frame { block, at: 0, op: None, count: None });
                self.engine.agents_mut().set(Agent::new(*warp), State::Ready);
            }
            let into: Vec<Agent> = warps.iter().map(|r| Agent::new(*r)).collect();
            self.tell(obs, &Event::Fork { agent: Agent::new(agent), into: &into })?;
        }
        self.engine.agents_mut().set(Agent::new(agent), State::Blocked(Wait::Other(ROLES_JOIN)));
        Ok(Moved::Blocked)
    }

    /// A warp enters the code of its role.
    pub(super) fn enter_role(&mut self, agent: usize, id: OpId, op: &Op) -> Res<Moved> {
        let role = self.plan.role_of(self.look(agent)?.local);
        let block = role.and_then(|r| op.regions.get(r)).copied();
        let block = block.ok_or_else(|| Found::not_modelled("a warp without a role"))?;
        let thread = self.thread(agent)?;
        thread.in_role = true;
        thread.frames.push(Frame { block, at: 0, op: Some(id), count: None });
        Ok(Moved::On)
    }

    /// Whether a warp leaves its role here, because one thread executes the rest of it, in the first warp.
    pub(super) fn leaves_to_one(&self, agent: usize, op: &Op) -> bool {
        let frame = self.threads.get(agent).and_then(|thread| thread.frames.last());
        let in_role = frame.is_some_and(|frame| frame.op.is_some() && frame.op == self.plan.roles_op);
        let role = self.warp_set(agent).filter(|set| in_role && set.index > 0).and_then(|set| set.role);
        role.is_some_and(|role| self.plan.one_thread.contains(&role))
            && !matches!(op.kind, OpKind::Nv(NvOp::SetMaxNReg { .. }) | OpKind::Const(_))
    }

    /// Leaves the role that a warp executes.
    pub(super) fn leave_role(&mut self, agent: usize) -> Res<Moved> {
        let thread = self.thread(agent)?;
        thread.finalized = true;
        thread.frames.pop();
        self.behind_roles(agent)?;
        Ok(Moved::On)
    }

    /// Continues after the roles: a warp at the end of its role executes the code of the program again.
    fn behind_roles(&mut self, agent: usize) -> Res<()> {
        if !self.look(agent)?.finalized {
            return Err(self.not_finalized(agent));
        }
        self.thread(agent)?.in_role = false;
        self.advance(agent)
    }

    fn not_finalized(&self, agent: usize) -> Box<Found> {
        Found::new(Kind::Token, format!("{} ends without `ttg.pipeline.finalize`", self.role(agent)))
    }

    /// Whether an agent has executed the end of its role. Without roles, the rings of a program end before the program does.
    pub(super) fn has_finalized(&self, agent: usize) -> Res<bool> {
        let thread = self.look(agent)?;
        let in_role = thread.in_role || thread.local > 0 && self.kernel().laid_out.is_none();
        Ok(thread.finalized && in_role)
    }

    pub(super) fn end(&mut self, agent: usize, obs: Obs<'_, '_>) -> Res<Moved> {
        self.check_in_flight(agent, None)?;
        let finalizes = self.kernel().laid_out.is_none() || self.look(agent)?.in_role;
        if !agent.is_multiple_of(self.plan.agents()) && finalizes && !self.look(agent)?.finalized {
            return Err(self.not_finalized(agent));
        }
        self.leave_barriers(agent, obs)?;
        self.engine.exit(&[Agent::new(agent)], &mut &mut *obs).map_err(|h| self.fault(agent, None, h))?;
        let per = self.plan.agents();
        let main = agent / per * per;
        let done = |r: usize| self.engine.agents().state(Agent::new(r)) == State::Done;
        if agent != main && (main + 1..main + per).all(done) {
            self.engine.agents_mut().wake(|w| w == Wait::Other(ROLES_JOIN));
        }
        if agent == main {
            self.check_rings(agent)?;
            self.check_columns(agent)?;
        }
        Ok(Moved::Ended)
    }
}
