//! The machine: programs of a cluster, their roles as agents of the engine, and one operation of the IR at a time.
//!
//! Each program has its own thread, agent `cta · (1 + roles)`, followed by its roles. Where roles begin, the thread starts
//! them and waits until all have ended. All state is `Clone`, and its hash leaves out what has no further effect, so that the model
//! checker can backtrack; the state of an agent is behind an `Rc`, so that copying a state is cheap.
#![expect(clippy::wildcard_enum_match_arm, reason = "operands that are not what an operation takes are refused alike")]

use super::control::ROLES_PART;
use super::eval::{Scope, pure};
use super::finding::{Found, Kind, Side};
use super::plan::{CLASSES, Plan};
use super::state::{Cta, Frame, Holds, Moved, Reader, Thread};
use super::store::Store;
use super::tensor::Setup;
use super::value::{Val, View};
use super::work::{Res, Span, Touch, Work};
use crate::engine::{self, Agent, BarrierId, Engine, Event, Halt, Helper, Observer, Place, State, Wait};
use std::collections::BTreeMap;
use std::rc::Rc;
use titan_core::ir::op_table::mnemonic;
use titan_core::ir::{self, AmdOp, Kernel, NvOp, Op, OpId, OpKind, ParamKind, Pipe, TtgOp, Value};

/// The observer of a run's events.
pub(super) type Obs<'a, 'b> = &'a mut (dyn Observer + 'b);

/// The programs of a cluster while they run.
#[derive(Clone, Debug)]
pub(super) struct Machine<'k> {
    pub(super) plan: &'k Plan<'k>,
    pub(super) engine: Engine<Work>,
    pub(super) store: Store,
    pub(super) threads: Vec<Rc<Thread>>,
    pub(super) ctas: Vec<Cta>,
    /// The barrier of the cluster, if the kernel uses it.
    pub(super) cluster: Option<BarrierId>,
    pub(super) printed: Vec<String>,
}

impl<'k> Machine<'k> {
    /// Creates the programs at these coordinates of the grid, before their first operation.
    pub(super) fn new(
        plan: &'k Plan<'k>,
        store: Store,
        engine: Engine<Work>,
        programs: &[[u32; 3]],
        obs: Obs<'_, '_>,
    ) -> Res<Machine<'k>> {
        let mut machine =
            Machine { plan, engine, store, threads: Vec::new(), ctas: Vec::new(), cluster: None, printed: Vec::new() };
        let everybody = programs.len() * (plan.agents() - 1).max(1);
        let comes = |op: &Op| matches!(op.kind, OpKind::Nv(NvOp::ClusterArrive | NvOp::ClusterWait));
        if !plan.who(|_, op| comes(op)).is_empty() {
            machine.cluster = Some(machine.made(0, index(everybody), obs)?);
        }
        for (cta, program) in programs.iter().enumerate() {
            machine.add_cta(cta, *program, obs)?;
            for local in 0..plan.agents() {
                machine.add_thread(cta, local);
            }
        }
        Ok(machine)
    }

    /// Creates a barrier that exists before the first operation.
    fn made(&mut self, agent: usize, count: u32, obs: Obs<'_, '_>) -> Res<BarrierId> {
        let barrier = self.engine.add_barrier();
        let done = self.engine.init(Agent::new(agent), barrier, count, None, Place::new(0), &mut &mut *obs);
        done.map(|()| barrier).map_err(|h| self.fault(agent, None, h))
    }

    fn add_cta(&mut self, cta: usize, program: [u32; 3], obs: Obs<'_, '_>) -> Res<()> {
        let (plan, agent) = (self.plan, cta * self.plan.agents());
        let mut rings = Vec::new();
        for ring in &plan.rings {
            let mut sides = (Vec::new(), Vec::new());
            let readers = u32::try_from(ring.readers.len()).unwrap_or(1).max(1);
            for _ in 0..if ring.staging || plan.kernel.laid_out.is_some() { 0 } else { ring.slots } {
                sides.0.push(self.made(agent, 1, obs)?);
                sides.1.push(self.made(agent, readers, obs)?);
            }
            rings.push(sides);
        }
        let mut made = BTreeMap::new();
        for alloc in &plan.allocs {
            let barriers: Vec<BarrierId> = (0..alloc.n).map(|_| self.engine.add_barrier()).collect();
            made.extend(barriers.first().map(|b| (index(alloc.value.index()), *b)));
        }
        let meets = !plan.who(|_, op| op.kind == OpKind::Amd(AmdOp::Barrier)).is_empty();
        let block = if meets { Some(self.made(agent, index((plan.agents() - 1).max(1)), obs)?) } else { None };
        self.ctas.push(Cta {
            program,
            rings,
            made,
            block,
            holds: plan.rings.iter().map(|r| vec![Holds::Nothing; usize::try_from(r.slots).unwrap_or(0)]).collect(),
            words: BTreeMap::new(),
            unfenced: BTreeMap::new(),
            named: BTreeMap::new(),
            counters: BTreeMap::new(),
            tensor: Default::default(),
        });
        Ok(())
    }

    fn add_thread(&mut self, cta: usize, local: usize) {
        let kernel = self.plan.kernel;
        let agent = Agent::new(self.threads.len());
        let mut thread = Thread {
            cta,
            local,
            env: vec![Val::Unknown; kernel.values.len()],
            fill: vec![0; self.plan.rings.len()],
            read: vec![Reader::default(); self.plan.rings.len()],
            ..Thread::default()
        };
        if local == 0 {
            if kernel.laid_out.is_none() {
                thread.frames.push(Frame { block: kernel.body, at: 0, op: None, count: None });
            }
            for (i, param) in kernel.sig.params.iter().enumerate() {
                let value = parameter(&self.store.setup, i, &param.kind);
                if let Some(slot) = thread.env.get_mut(i) {
                    *slot = value;
                }
            }
        } else {
            // Role agents are blocked until the program's own thread starts the roles.
            self.engine.agents_mut().set(agent, State::Blocked(Wait::Other(ROLES_PART)));
        }
        self.threads.push(Rc::new(thread));
    }

    pub(super) const fn kernel(&self) -> &'k Kernel {
        self.plan.kernel
    }

    pub(super) fn thread(&mut self, agent: usize) -> Res<&mut Thread> {
        self.threads.get_mut(agent).map(Rc::make_mut).ok_or_else(|| Found::not_modelled("an agent that does not exist"))
    }

    pub(super) fn look(&self, agent: usize) -> Res<&Thread> {
        self.threads.get(agent).map(|t| &**t).ok_or_else(|| Found::not_modelled("an agent that does not exist"))
    }

    pub(super) fn cta(&self, agent: usize) -> usize {
        self.threads.get(agent).map_or(0, |t| t.cta)
    }

    /// The next operation of an agent.
    pub(super) fn next_op(&self, agent: usize) -> Option<OpId> {
        let frame = self.threads.get(agent)?.frames.last()?;
        self.kernel().blocks.get(frame.block.index())?.ops.get(frame.at).copied()
    }

    pub(super) fn scope(&self, agent: usize) -> Res<Scope<'_>> {
        let thread = self.look(agent)?;
        let program = self.ctas.get(thread.cta).map_or([0; 3], |c| c.program);
        Ok(Scope {
            kernel: self.plan.kernel,
            env: &thread.env,
            program,
            grid: self.store.setup.grid,
            inner: BTreeMap::new(),
        })
    }

    pub(super) fn val(&self, agent: usize, value: Value) -> Val {
        self.threads.get(agent).and_then(|t| t.env.get(value.index())).cloned().unwrap_or_default()
    }

    /// The value of an operand.
    pub(super) fn arg(&self, agent: usize, op: &Op, i: usize) -> Val {
        op.args.get(i).map(|v| self.val(agent, *v)).unwrap_or_default()
    }

    /// The value of an operand that must be a known integer.
    pub(super) fn int(&self, agent: usize, op: &Op, i: usize) -> Res<i64> {
        match self.arg(agent, op, i) {
            Val::Num(n) => Ok(n.int()),
            _ => Err(Found::not_modelled("control flow depends on values that are not computed")),
        }
    }

    pub(super) fn set(&mut self, agent: usize, values: &[Value], new: impl IntoIterator<Item = Val>) -> Res<()> {
        let (data, kernel, warpgroups) = (self.store.data, self.kernel(), self.plan.warpgroups);
        let thread = self.thread(agent)?;
        for (value, new) in values.iter().zip(new) {
            if warpgroups && matches!(kernel.ty(*value), ir::Ty::Tile(..)) {
                thread.written_to.insert(value.index());
            }
            if data && matches!(new, Val::Unknown) {
                return Err(Found::not_modelled("a value that is not computed"));
            }
            if let Some(slot) = thread.env.get_mut(value.index()) {
                *slot = new;
            }
        }
        Ok(())
    }

    /// Executes one operation of an agent.
    ///
    /// # Errors
    /// The finding, if the operation has an error.
    pub(super) fn step(&mut self, agent: usize, obs: Obs<'_, '_>) -> Res<Moved> {
        let Some(id) = self.next_op(agent) else {
            return if self.begins_warps(agent) { self.begin_warps(agent, obs) } else { self.end(agent, obs) };
        };
        let op = self.kernel().op(id);
        let located =
            |e: Box<Found>, m: &Self| if e.sides.is_empty() { e.side(m.side(agent, id, None, None)) } else { e };
        self.dispatch(agent, id, op, obs).map_err(|e| located(e, self))
    }

    fn dispatch(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<Moved> {
        if self.leaves_to_one(agent, op) {
            return self.leave_role(agent);
        }
        match &op.kind {
            OpKind::For(kind) => self.enter_for(agent, id, op, *kind).map(|()| Moved::On),
            OpKind::Loop => self.enter_loop(agent, id, op).map(|()| Moved::On),
            OpKind::If => {
                let arm = usize::from(self.int(agent, op, 0)? == 0);
                let block = *op.regions.get(arm).ok_or_else(|| Found::not_modelled("a branch without an arm"))?;
                self.thread(agent)?.frames.push(Frame { block, at: 0, op: Some(id), count: None });
                Ok(Moved::On)
            }
            OpKind::Yield => self.leave(agent, op).map(|()| Moved::On),
            OpKind::Break(n) => {
                let frame = self.unwind(agent, *n)?;
                let results = frame.op.map(|o| self.kernel().op(o).results.clone()).unwrap_or_default();
                let values = self.hand_on(agent, &op.args)?;
                self.thread(agent)?.frames.pop();
                self.set(agent, &results, values)?;
                self.advance(agent).map(|()| Moved::On)
            }
            OpKind::Continue(n) => self.again(agent, op, *n).map(|()| Moved::On),
            OpKind::Return => {
                self.thread(agent)?.frames.clear();
                Ok(Moved::On)
            }
            OpKind::Ttg(TtgOp::Roles) if self.warp_set(agent).is_some() => self.enter_role(agent, id, op),
            OpKind::Ttg(TtgOp::Roles) => self.part(agent, op, obs),
            _ => {
                let moved = self.exec(agent, id, op, obs)?;
                if matches!(moved, Moved::On | Moved::Polled) {
                    if matches!(&op.kind, OpKind::Ttg(ttg) if ttg.uses() == ir::Use::Move) {
                        self.used_up(agent, &op.args)?;
                    }
                    self.advance(agent)?;
                }
                Ok(moved)
            }
        }
    }

    /// Consumes tokens, which are used once: a second use finds none.
    fn used_up(&mut self, agent: usize, args: &[Value]) -> Res<()> {
        let kernel = self.kernel();
        for value in args.iter().filter(|v| kernel.ty(**v).is_linear()) {
            if let Some(slot) = self.thread(agent)?.env.get_mut(value.index()) {
                *slot = Val::Unknown;
            }
        }
        Ok(())
    }

    /// The values of operands that are passed on, such as to a loop; tokens are moved.
    pub(super) fn hand_on(&mut self, agent: usize, args: &[Value]) -> Res<Vec<Val>> {
        let values = args.iter().map(|v| self.val(agent, *v)).collect();
        self.used_up(agent, args)?;
        Ok(values)
    }

    fn exec(&mut self, agent: usize, id: OpId, op: &Op, obs: Obs<'_, '_>) -> Res<Moved> {
        if !matches!(op.kind.effect(), ir::Effect::Pure) {
            if self.has_finalized(agent)? {
                return Err(Found::new(Kind::Token, format!("{} continues after its end", self.role(agent))));
            }
            let tag = if let Val::Token { time, .. } = self.arg(agent, op, 0) { time } else { 0 };
            self.tell(obs, &Event::At { agent: Agent::new(agent), place: Place::new(id.index()), tag })?;
        }
        match &op.kind {
            OpKind::Ttg(TtgOp::Rematerialize) => {}
            OpKind::Ttg(ttg) => return self.ttg(agent, id, op, ttg, obs),
            OpKind::Local(local) => return self.local(agent, id, op, *local, obs).map(|()| Moved::On),
            OpKind::Permute(perm) if matches!(self.arg(agent, op, 0), Val::Local(_)) => {
                let Val::Local(local) = self.arg(agent, op, 0) else { return Ok(Moved::On) };
                return self.permute_local(agent, op, &local, *perm).map(|()| Moved::On);
            }
            kind if Self::is_of_one(kind) && !self.is_first(agent) => return Ok(Moved::On),
            OpKind::Region(region) => return self.region(agent, id, op, region, obs),
            OpKind::Nv(nv) => return self.nv(agent, id, op, *nv, obs),
            OpKind::Amd(AmdOp::Mfma) => {}
            OpKind::Amd(amd) => return self.amd(agent, id, op, *amd, obs),
            OpKind::Mma if self.reads_stages(op) => return self.mma_of_stages(agent, id, op, obs).map(|()| Moved::On),
            kind => match kind.effect() {
                ir::Effect::Pure => {}
                _ => return self.memory(agent, id, op, obs).map(|()| Moved::On),
            },
        }
        let values = pure(&self.scope(agent)?, op)?;
        self.set(agent, &op.results, values)?;
        Ok(Moved::On)
    }

    pub(super) fn advance(&mut self, agent: usize) -> Res<()> {
        if let Some(frame) = self.thread(agent)?.frames.last_mut() {
            frame.at += 1;
        }
        Ok(())
    }

    /// Reports an event to the observer.
    pub(super) fn tell(&self, obs: Obs<'_, '_>, event: &Event<'_>) -> Res<()> {
        obs.event(event).map_err(|engine::event::Stop| stopped())
    }

    /// Whether an agent can take a step that is not only a wait.
    pub(super) fn is_ready(&self, agent: usize) -> bool {
        self.engine.agents().state(Agent::new(agent)) == State::Ready
    }

    /// Completes an operation in flight: applies its effect and signals barriers.
    pub(super) fn complete(&mut self, op: engine::OpId, obs: Obs<'_, '_>) -> Res<()> {
        let Machine { engine, store, .. } = self;
        let done =
            engine.complete(op, &mut &mut *obs, |spaces, op| store.apply(spaces, &op.payload).map_err(Failed::Found));
        done.map_err(|e| self.failed(0, e))
    }

    /// Waits until at most `n` groups of a class are in flight.
    pub(super) fn wait_groups(
        &mut self,
        agent: usize,
        class: engine::Class,
        at_most: u32,
        obs: Obs<'_, '_>,
    ) -> Res<()> {
        let Machine { engine, store, .. } = self;
        let done = engine.wait_groups(Agent::new(agent), class, at_most, &mut &mut *obs, |spaces, op| {
            store.apply(spaces, &op.payload).map_err(Failed::Found)
        });
        done.map_err(|e| self.failed(agent, e))?;
        let groups = &mut self.thread(agent)?.groups[usize::from(class.0) % CLASSES];
        while groups.sizes.len() > at_most as usize {
            groups.sizes.pop_front();
        }
        Ok(())
    }

    fn failed(&self, agent: usize, e: Failed) -> Box<Found> {
        match e {
            Failed::Found(found) => found,
            Failed::Halt(halt) => self.fault(agent, None, halt),
        }
    }

    /// The finding for an error of the engine.
    pub(super) fn fault(&self, agent: usize, op: Option<OpId>, halt: Halt) -> Box<Found> {
        let found = match halt {
            Halt::Stop => return stopped(),
            Halt::Barrier(barrier, fault) => {
                let name = self.barrier_name(barrier);
                Found::new(Kind::Barrier, format!("`{name}`: {fault}"))
            }
            Halt::Meeting(_, fault) => Found::new(Kind::Participants, fault.to_string()),
            Halt::Unknown => Found::not_modelled("a barrier that does not exist"),
        };
        match op {
            Some(op) => found.side(self.side(agent, op, None, None)),
            None => found,
        }
    }

    /// An agent at an operation, as a participant of a finding.
    pub(super) fn side(&self, agent: usize, op: OpId, what: Option<&Touch>, time: Option<u64>) -> Side {
        let role = self.role(agent);
        let at = self.kernel().ops.get(op.index());
        let (what, stage) = match what.map(|t| &t.span) {
            None => (String::new(), None),
            Some(Span::Tensor { param, .. }) => {
                (self.kernel().sig.params.get(*param).map_or(String::new(), |p| p.name.clone()), None)
            }
            Some(Span::Columns { cta, lo, .. }) => {
                let value = self.ctas.get(*cta).and_then(|c| c.tensor.name(*lo));
                (value.map_or_else(|| "tensor memory".to_owned(), |v| self.kernel().display_name(v)), None)
            }
            Some(Span::Shared { lo, hi, .. }) => match self.plan.ring_at(*lo) {
                Some((ring, slot)) => (self.kernel().pipe_name(Pipe::new(ring)), Some(slot)),
                None => self.plan.region_at(*lo, *hi).unwrap_or((format!("bytes {lo}..{hi} of shared memory"), None)),
            },
        };
        Side {
            what,
            stage,
            time,
            role,
            op: at.map_or("", |o| mnemonic(&o.kind)),
            helper: false,
            loc: at.map_or_else(Default::default, |o| o.loc),
        }
    }

    /// The display name of an agent.
    pub(super) fn role(&self, agent: usize) -> String {
        let name = self.role_name(agent);
        if self.ctas.len() > 1 {
            format!("{name} of program {} of the cluster", agent / self.plan.agents())
        } else {
            name
        }
    }

    /// The name of an agent in its program.
    pub(super) fn role_name(&self, agent: usize) -> String {
        let local = agent % self.plan.agents();
        let role = self.plan.role_of(local).and_then(|r| self.kernel().roles.get(r));
        let name = role.map_or_else(|| "the program".to_owned(), |r| format!("`{}`", r.name));
        match self.plan.warp_set(local, role.is_some()) {
            Some(warp_set) => format!("warp {} of {name}", warp_set.index),
            None => name,
        }
    }

    /// The helper thread of an operation in flight, as observers identify it.
    pub(super) const fn helper(class: engine::Class, op: engine::OpId) -> Option<Helper> {
        Some(Helper { class, op })
    }
}

/// A failure of a payload or of the engine.
#[derive(Debug)]
enum Failed {
    Found(Box<Found>),
    Halt(Halt),
}

impl From<Halt> for Failed {
    fn from(halt: Halt) -> Failed {
        Failed::Halt(halt)
    }
}

/// The error that stands for a run ended by its observer, which has recorded the reason.
pub(super) fn stopped() -> Box<Found> {
    Found::new(Kind::Race, "")
}

/// The value of a parameter.
fn parameter(setup: &Setup, i: usize, kind: &ParamKind) -> Val {
    match (kind, setup.tensors.get(i).and_then(Option::as_ref), setup.scalars.get(i)) {
        (ParamKind::Tensor { elem, .. }, Some(t), _) => Val::Tensor(Rc::new(View {
            param: i,
            elem: *elem,
            start: vec![0; t.extents.len()],
            axes: (0..t.extents.len()).collect(),
            extents: t.extents.clone(),
            outside: false,
        })),
        (ParamKind::Scalar(_), _, Some(Some(n))) => Val::Num(*n),
        (_, _, _) => Val::Unknown,
    }
}

/// An index as `u32`.
pub(super) fn index(i: usize) -> u32 {
    u32::try_from(i).unwrap_or(u32::MAX)
}
