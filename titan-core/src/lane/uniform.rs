//! Divergence analysis: which values are uniform, and where control flow may have diverged between lanes.
//!
//! Divergence starts at thread numbers and at loads from addresses that differ. It propagates through data, and through control flow: the
//! results of an `if` differ if its condition does; if lanes leave a loop in different iterations, everything that the loop carries or
//! returns differs. In code where lanes may have diverged, a convergent operation ([`OpKind::is_convergent`], such as a barrier of the
//! program) is an error. Stores and loads are allowed there.
//!
//! All warps of a role execute its code together: a role's own barrier is allowed there, and the program's is not. The values that roles
//! yield differ from warp to warp, because the warps execute different roles.
//!
//! Loads from one address give all lanes the same value: programs have no races (the output rule), and barriers separate the accesses by
//! which threads of a program exchange data.

use super::family::{Barrier, Family, Flow};
use super::func::{Block, Func, Op, OpId, Value};
use super::op::{OpKind, Role, Shuffle};

/// The set of threads in which a value is uniform, or which execute a point of the program together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// All threads of the program.
    #[default]
    Program,
    /// The threads of each role. Only control flow has this level, in the code of a role; no value does.
    Role,
    /// The lanes of each warp.
    Warp,
    /// No two lanes: fully divergent.
    Lane,
}

/// The result of the analysis.
#[derive(Clone, Debug)]
pub struct Uniformity {
    values: Vec<Level>,
    diverged: Vec<(OpId, Level)>,
}

impl Uniformity {
    /// The level at which a value is uniform.
    #[must_use]
    pub fn level(&self, value: Value) -> Level {
        self.values[value.index()]
    }

    /// Convergent operations in divergent code, in program order.
    #[must_use]
    pub fn diverged(&self) -> &[(OpId, Level)] {
        &self.diverged
    }
}

/// Analyses a function.
#[must_use]
pub fn analyze(func: &Func) -> Uniformity {
    let mut run = Run {
        func,
        values: vec![Level::Program; func.values.len()],
        loops: Vec::new(),
        path: Vec::new(),
        role: None,
        returned: Level::Program,
        changed: true,
        diverged: Vec::new(),
    };
    while run.changed {
        run.changed = false;
        run.diverged.clear();
        run.block(func.body, Level::Program);
    }
    Uniformity { values: run.values, diverged: run.diverged }
}

struct Run<'a> {
    func: &'a Func,
    values: Vec<Level>,
    loops: Vec<Enclosing<'a>>,
    /// The causes of divergence between the entry of the function and the current point: conditions, exits of loops, early jumps of lanes.
    path: Vec<Level>,
    /// The role whose code is being walked.
    role: Option<Role>,
    /// The level of divergence between lanes that have returned and those that have not.
    returned: Level,
    changed: bool,
    diverged: Vec<(OpId, Level)>,
}

/// A loop that is being walked.
#[derive(Clone, Copy)]
struct Enclosing<'a> {
    op: &'a Op,
    body: Block,
    /// The length of the path before its head.
    base: usize,
    /// The level of divergence at which lanes leave it.
    exit: Level,
}

/// The early exits from a block: their divergence relative to the lanes that entered the block, and how many loops they leave (`u32::MAX`
/// for `return`).
#[derive(Clone, Copy, Default)]
struct Escape {
    level: Level,
    depth: Option<u32>,
}

impl Escape {
    fn join(self, other: Escape) -> Escape {
        Escape { level: self.level.max(other.level), depth: self.depth.max(other.depth) }
    }
}

impl<'a> Run<'a> {
    fn raise(&mut self, value: Value, level: Level) {
        let slot = &mut self.values[value.index()];
        if *slot < level {
            *slot = level;
            self.changed = true;
        }
    }

    fn join(&self, values: &[Value]) -> Level {
        values.iter().map(|v| self.values[v.index()]).max().unwrap_or_default()
    }

    /// Walks a block that is entered with the divergence `entry`.
    fn block(&mut self, block: Block, entry: Level) -> Escape {
        let func = self.func;
        let mut here = entry.max(self.returned);
        let mut escape = Escape::default();
        let left = self.path.len();
        self.path.push(Level::Program);
        for id in &func.block(block).ops {
            let op = func.op(*id);
            if self.needs(&op.kind).is_some_and(|most| here > most) {
                self.part(*id, here);
            }
            let out = self.op(op, here);
            // After an early exit of some lanes, the remaining code is executed without them.
            if out.depth.is_some() {
                escape = escape.join(out);
                here = here.max(escape.level);
                self.path[left] = escape.level;
            }
        }
        self.path.truncate(left);
        escape
    }

    /// The maximum divergence at which a convergent operation is allowed; `None` for all others.
    fn needs(&self, kind: &OpKind) -> Option<Level> {
        match kind.family() {
            Family::Barrier(Barrier::Program) | Family::Flow(Flow::Roles(_)) => Some(Level::Program),
            Family::Group(_) => Some(Level::Role),
            Family::Barrier(Barrier::Named { id, .. }) if self.role.is_some_and(|role| role.barrier == id) => {
                Some(Level::Role)
            }
            Family::Barrier(Barrier::Named { .. } | Barrier::Warp) | Family::Warp | Family::Matrix { .. } => {
                Some(Level::Warp)
            }
            Family::Pure
            | Family::Mark { .. }
            | Family::Access { .. }
            | Family::Copy(_)
            | Family::Protocol
            | Family::Order
            | Family::Flow(
                Flow::For | Flow::Loop | Flow::If | Flow::Yield | Flow::Break(_) | Flow::Continue(_) | Flow::Return,
            ) => None,
        }
    }

    /// Records a convergent operation in divergent code.
    fn part(&mut self, op: OpId, level: Level) {
        match self.diverged.iter_mut().find(|(id, _)| *id == op) {
            Some((_, known)) => *known = level.max(*known),
            None => self.diverged.push((op, level)),
        }
    }

    fn op(&mut self, op: &'a Op, here: Level) -> Escape {
        match op.kind.family() {
            Family::Flow(Flow::If) => self.branch(op, here),
            Family::Flow(Flow::Roles(roles)) => self.split(roles, op, here),
            Family::Flow(Flow::For | Flow::Loop) => self.repeat(op, here),
            Family::Flow(Flow::Break(n) | Flow::Continue(n)) => self.leave(op, n),
            Family::Flow(Flow::Return) => {
                if self.returned < here {
                    self.returned = here;
                    self.changed = true;
                }
                Escape { level: Level::Program, depth: Some(u32::MAX) }
            }
            Family::Flow(Flow::Yield) => Escape::default(),
            Family::Pure
            | Family::Warp
            | Family::Mark { .. }
            | Family::Access { .. }
            | Family::Matrix { .. }
            | Family::Copy(_)
            | Family::Protocol
            | Family::Order
            | Family::Group(_)
            | Family::Barrier(_) => {
                let level = source(&op.kind).unwrap_or_else(|| self.join(&op.args));
                for result in &op.results {
                    self.raise(*result, level);
                }
                Escape::default()
            }
        }
    }

    fn branch(&mut self, op: &'a Op, here: Level) -> Escape {
        let cond = self.join(&op.args);
        let mut escape = Escape::default();
        self.path.push(cond);
        for region in &op.regions {
            escape = escape.join(self.block(*region, here.max(cond)));
            self.receive(&op.results, *region, cond);
        }
        self.path.pop();
        Escape { level: escape.level.max(cond), depth: escape.depth }
    }

    fn split(&mut self, roles: &[Role], op: &'a Op, here: Level) -> Escape {
        let mut escape = Escape::default();
        self.path.push(Level::Warp);
        for (role, code) in roles.iter().zip(&op.regions) {
            let around = self.role.replace(*role);
            escape = escape.join(self.block(*code, here.max(Level::Role)));
            self.role = around;
            self.receive(&op.results, *code, Level::Warp);
        }
        self.path.pop();
        Escape { level: escape.level.max(Level::Warp), depth: escape.depth }
    }

    /// The results of an `if` are the values that its arms yield, and are at least as divergent as the condition.
    fn receive(&mut self, results: &[Value], arm: Block, cond: Level) {
        let func = self.func;
        let Some(last) = func.block(arm).ops.last().map(|op| func.op(*op)) else { return };
        if last.kind != OpKind::Yield {
            return;
        }
        for (result, value) in results.iter().zip(&last.args) {
            let level = self.values[value.index()].max(cond);
            self.raise(*result, level);
        }
    }

    fn repeat(&mut self, op: &'a Op, here: Level) -> Escape {
        let Some(body) = op.regions.first().copied() else { return Escape::default() };
        let is_for = op.kind == OpKind::For;
        let (bounds, init) = op.args.split_at(if is_for { 3 } else { 0 });
        // The divergence between lanes that have left the loop and those that are still in it.
        let mut apart = self.join(bounds);
        let args = &self.func.block(body).args;
        let (index, carried) = args.split_at(usize::from(is_for));
        for value in index {
            self.raise(*value, apart);
        }
        for (value, first) in carried.iter().zip(init) {
            self.raise(*value, self.values[first.index()].max(apart));
        }
        // A `for` may execute zero iterations; its results are then the initial values.
        if is_for {
            for (result, first) in op.results.iter().zip(init) {
                self.raise(*result, self.values[first.index()].max(apart));
            }
        }
        loop {
            self.path.push(apart);
            self.loops.push(Enclosing { op, body, base: self.path.len(), exit: apart });
            let escape = self.block(body, here.max(apart));
            let exit = self.loops.pop().map_or(apart, |l| l.exit);
            self.path.pop();
            if exit <= apart {
                let level = escape.level.max(apart);
                return match escape.depth {
                    Some(u32::MAX) => Escape { level, depth: Some(u32::MAX) },
                    Some(n) if n > 0 => Escape { level, depth: Some(n - 1) },
                    Some(_) | None => Escape::default(),
                };
            }
            // Lanes leave in different iterations, so that the remaining ones are diverged, and carried values and results differ.
            apart = exit;
            for value in args.iter().chain(&op.results) {
                self.raise(*value, exit);
            }
        }
    }

    fn leave(&mut self, op: &Op, n: u32) -> Escape {
        let escape = Escape { level: Level::Program, depth: Some(n) };
        let Some(at) = self.loops.len().checked_sub(1 + n as usize) else { return escape };
        let Some(target) = self.loops.get(at).copied() else { return escape };
        // The divergence since the start of the current iteration, where all lanes of the iteration were together.
        let since = self.path[target.base..].iter().copied().max().unwrap_or_default();
        let is_break = matches!(op.kind, OpKind::Break(_));
        let is_for = target.op.kind == OpKind::For;
        let carried = self.func.block(target.body).args.iter().skip(usize::from(is_for));
        let into: Vec<Value> = if is_break { target.op.results.clone() } else { carried.copied().collect() };
        for (slot, value) in into.iter().zip(&op.args) {
            self.raise(*slot, self.values[value.index()].max(since));
        }
        if !is_break && is_for {
            for (slot, value) in target.op.results.iter().zip(&op.args) {
                self.raise(*slot, self.values[value.index()].max(since));
            }
        }
        if is_break && let Some(slot) = self.loops.get_mut(at) {
            slot.exit = slot.exit.max(since);
        }
        escape
    }
}

/// The level of the results of an operation, if it does not follow from the operands.
const fn source(kind: &OpKind) -> Option<Level> {
    match kind {
        OpKind::ThreadId
        | OpKind::LaneId
        | OpKind::Atomic { .. }
        | OpKind::CompareSwap(_)
        | OpKind::Mma(_)
        | OpKind::Shuffle(Shuffle::Xor(_) | Shuffle::Up(_))
        | OpKind::LoadAcquire => Some(Level::Lane),
        OpKind::WarpId | OpKind::Vote(_) | OpKind::Shuffle(Shuffle::Lane(_)) => Some(Level::Warp),
        OpKind::Const(..)
        | OpKind::Slot(_)
        | OpKind::ProgramId(_)
        | OpKind::NumPrograms(_)
        | OpKind::SharedBase
        | OpKind::Buffer(_)
        | OpKind::Access { .. }
        | OpKind::Int(_)
        | OpKind::IntUn(_)
        | OpKind::MulWide { .. }
        | OpKind::IntCmp { .. }
        | OpKind::Extend { .. }
        | OpKind::Truncate(_)
        | OpKind::FromPred
        | OpKind::Float(..)
        | OpKind::FloatUn(..)
        | OpKind::Fma(_)
        | OpKind::FloatCmp(..)
        | OpKind::Convert { .. }
        | OpKind::Select
        | OpKind::Pack
        | OpKind::Unpack
        | OpKind::UnpackBytes { .. }
        | OpKind::Load { .. }
        | OpKind::Store { .. }
        | OpKind::StoreRelease { .. }
        | OpKind::SequenceWait
        | OpKind::Shuffle(Shuffle::Index)
        | OpKind::Barrier
        | OpKind::WarpBarrier
        | OpKind::For
        | OpKind::Loop
        | OpKind::If
        | OpKind::Roles(_)
        | OpKind::Yield
        | OpKind::Break(_)
        | OpKind::Continue(_)
        | OpKind::Return => None,
        OpKind::Nv(op) => op.level(),
        OpKind::Amd(op) => op.level(),
    }
}
