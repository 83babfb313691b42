//! Divergence: which values are the same in all lanes, and where lanes may have parted.
//!
//! Divergence starts at thread numbers and at what is loaded through addresses that differ, spreads through data, and
//! through control: what an `if` gives differs where its condition does, and so does everything that a loop carries or
//! gives if lanes leave it at different times. Where lanes may have parted, an operation that needs them together
//! ([`OpKind::is_convergent`], barriers of the whole program) is an error. Stores and loads there are ordinary.
//!
//! The code of a role is run by its warps together: there a role's own barrier may stand, and the program's may not. What a
//! role yields differs from warp to warp, because the roles differ.
//!
//! Loads from one address give all lanes one value: programs have no races (the output rule), and barriers separate what
//! the threads of a program exchange.

use super::func::{Block, Func, Op, OpId, Value};
use super::op::{OpKind, Role, Shuffle};

/// How widely a value is the same, or how many lanes are together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Level {
    /// In the whole program.
    #[default]
    Program,
    /// In each role. No value is known to be that and no more; lanes are so far apart at the code of a role.
    Role,
    /// In each warp.
    Warp,
    /// Not known to be the same in any two lanes.
    Lane,
}

/// What the analysis found.
#[derive(Clone, Debug)]
pub struct Uniformity {
    values: Vec<Level>,
    diverged: Vec<(OpId, Level)>,
}

impl Uniformity {
    /// How widely a value is the same.
    #[must_use]
    pub fn level(&self, value: Value) -> Level {
        self.values[value.index()]
    }

    /// Operations that need lanes together where they may have parted, in program order.
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
    /// What has parted lanes on the way to where control stands: conditions, ends of loops, and lanes that left.
    path: Vec<Level>,
    /// The role whose code is being walked.
    role: Option<Role>,
    /// How far apart lanes are that have ended and those that have not.
    returned: Level,
    changed: bool,
    diverged: Vec<(OpId, Level)>,
}

/// A loop that is being walked.
#[derive(Clone, Copy)]
struct Enclosing<'a> {
    op: &'a Op,
    body: Block,
    /// How much of the path lies before its head.
    base: usize,
    /// How far apart lanes leave it.
    exit: Level,
}

/// What leaves a block early: how far apart from those that entered the block with it, and through how many loops (`u32::MAX`
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

    /// Walks a block that lanes enter this far apart.
    fn block(&mut self, block: Block, entry: Level) -> Escape {
        let func = self.func;
        let mut here = entry.max(self.returned);
        let mut escape = Escape::default();
        let left = self.path.len();
        self.path.push(Level::Program);
        for id in &func.block(block).ops {
            let op = func.op(*id);
            if op.kind.is_convergent() && here > self.needs(&op.kind) {
                self.part(*id, here);
            }
            let out = self.op(op, here);
            // Some lanes have left: the others go on without them.
            if out.depth.is_some() {
                escape = escape.join(out);
                here = here.max(escape.level);
                self.path[left] = escape.level;
            }
        }
        self.path.truncate(left);
        escape
    }

    /// How far apart lanes may be at an operation that is convergent.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others are of one warp")]
    fn needs(&self, kind: &OpKind) -> Level {
        match kind {
            OpKind::Barrier | OpKind::Roles(_) => Level::Program,
            OpKind::GroupFence
            | OpKind::GroupMma(_)
            | OpKind::GroupCommit
            | OpKind::GroupWait(_)
            | OpKind::SetMaxRegisters { .. } => Level::Role,
            OpKind::NamedBarrier { id, .. } if self.role.is_some_and(|role| role.barrier == *id) => Level::Role,
            _ => Level::Warp,
        }
    }

    /// Keeps that an operation needs more lanes than come.
    fn part(&mut self, op: OpId, level: Level) {
        match self.diverged.iter_mut().find(|(id, _)| *id == op) {
            Some((_, known)) => *known = level.max(*known),
            None => self.diverged.push((op, level)),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "`source` names every operation without regions")]
    fn op(&mut self, op: &'a Op, here: Level) -> Escape {
        match &op.kind {
            OpKind::If => self.branch(op, here),
            OpKind::Roles(roles) => self.split(roles, op, here),
            OpKind::For | OpKind::Loop => self.repeat(op, here),
            OpKind::Break(n) | OpKind::Continue(n) => self.leave(op, *n),
            OpKind::Return => {
                if self.returned < here {
                    self.returned = here;
                    self.changed = true;
                }
                Escape { level: Level::Program, depth: Some(u32::MAX) }
            }
            OpKind::Yield => Escape::default(),
            kind => {
                let level = source(kind).unwrap_or_else(|| self.join(&op.args));
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

    /// The results of an `if` are what an arm yields, and differ where the condition does.
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
        // How far apart lanes are that have ended the loop and those that have not.
        let mut apart = self.join(bounds);
        let args = &self.func.block(body).args;
        let (index, carried) = args.split_at(usize::from(is_for));
        for value in index {
            self.raise(*value, apart);
        }
        for (value, first) in carried.iter().zip(init) {
            self.raise(*value, self.values[first.index()].max(apart));
        }
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
            // Lanes leave at different times: those that stay are apart from them, and what is carried differs.
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
        // Since all lanes of this round were together.
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

/// The level of operations whose results do not follow from their operands alone.
const fn source(kind: &OpKind) -> Option<Level> {
    match kind {
        OpKind::ThreadId
        | OpKind::LaneId
        | OpKind::Atomic { .. }
        | OpKind::CompareSwap(_)
        | OpKind::LoadMatrix { .. }
        | OpKind::Mma(_)
        | OpKind::Elect
        | OpKind::GroupMma(_)
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
        | OpKind::CopyAsync { .. }
        | OpKind::CopyCommit
        | OpKind::CopyWait(_)
        | OpKind::CopyArrive { .. }
        | OpKind::MbarrierInit { .. }
        | OpKind::MbarrierInvalidate { .. }
        | OpKind::MbarrierArrive { .. }
        | OpKind::MbarrierWait
        | OpKind::MbarrierExpect { .. }
        | OpKind::MbarrierFence
        | OpKind::MapCluster
        | OpKind::MbarrierArriveCluster { .. }
        | OpKind::ClusterArrive
        | OpKind::ClusterWait
        | OpKind::TensorMap(_)
        | OpKind::BulkLoad { .. }
        | OpKind::BulkStore { .. }
        | OpKind::BulkCommit
        | OpKind::BulkWait { .. }
        | OpKind::StoreMatrix { .. }
        | OpKind::ProxyFence
        | OpKind::GroupFence
        | OpKind::GroupCommit
        | OpKind::GroupWait(_)
        | OpKind::SetMaxRegisters { .. }
        | OpKind::StoreRelease { .. }
        | OpKind::SequenceWait
        | OpKind::Shuffle(Shuffle::Index)
        | OpKind::Barrier
        | OpKind::NamedBarrier { .. }
        | OpKind::WarpBarrier
        | OpKind::For
        | OpKind::Loop
        | OpKind::If
        | OpKind::Roles(_)
        | OpKind::Yield
        | OpKind::Break(_)
        | OpKind::Continue(_)
        | OpKind::Return => None,
    }
}
