//! The region-hazard analysis: where threads of a program could meet in a region, a barrier stands between.
//!
//! The state is what has been touched since the last barrier, by region. A mark that writes what was touched, or reads what
//! was written, needs a barrier in front of it. At joins states unite; around loops they go until nothing changes. So on every
//! path between two marks that conflict there is a barrier. What one barrier settles asks for no second one: those that only
//! a guess about loops asked for are taken away again. Buffers conflict when their places overlap, whichever value lies there.
//!
//! Barriers go right in front of the mark: as late as possible, so that what stands before may overlap with waiting. Marks that
//! follow each other without an access between them hold together: an access touches what all of them say, when it happens.
//! Where control joins, what follows belongs to the marks of every way.
//!
//! Asynchronous copies write when they are waited for: a barrier between the copy and the wait settles nothing.
//!
//! Deliberately absent: fences between proxies (all accesses here are generic); waiting for copies, which the lowering does.

use super::func::{Block, Func, Op, OpId};
use super::op::{OpKind, Region};
use std::collections::{BTreeMap, BTreeSet};

/// A region, and whether it is written.
type Touch = (Region, bool);

/// What threads may have done where control stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    /// What was touched since the last barrier.
    touched: BTreeSet<Touch>,
    /// The latest marks in a row, which say what an access touches; and whether one has followed, so that the next mark begins
    /// another row.
    open: BTreeSet<(Touch, bool)>,
    /// What copies under way touch: the buffers they write, the tensors they read.
    flying: BTreeSet<Touch>,
}

impl State {
    fn join(&mut self, other: State) {
        self.touched.extend(other.touched);
        self.open.extend(other.open);
        self.flying.extend(other.flying);
    }

    fn mark(&mut self, touch: Touch) {
        self.open.retain(|(_, accessed)| !accessed);
        self.open.insert((touch, false));
    }

    fn access(&mut self) {
        let row = self.row();
        self.touched.extend(row);
    }

    /// A copy begins between the regions that are marked. Until it is waited for, no barrier settles it.
    fn copy(&mut self) {
        let row = self.row();
        self.flying.extend(row);
    }

    /// What an access here touches.
    fn row(&mut self) -> Vec<Touch> {
        let row: Vec<Touch> = self.open.iter().map(|(touch, _)| *touch).collect();
        self.open = row.iter().map(|touch| (*touch, true)).collect();
        row
    }

    /// Copies have arrived, except perhaps the latest `n` groups.
    fn wait(&mut self, n: u32) {
        self.touched.extend(&self.flying);
        if n == 0 {
            self.flying.clear();
        }
    }
}

/// Joins what comes in from one more side.
fn join(into: &mut Option<State>, state: State) {
    match into {
        Some(into) => into.join(state),
        None => *into = Some(state),
    }
}

/// Places the barriers of a function whose shared memory is allocated, and removes the marks. Gives the number of barriers.
pub fn place_barriers(func: &mut Func) -> usize {
    let mut run = Run { func, fixed: None, conflicts: BTreeSet::new(), loops: Vec::new(), heads: BTreeMap::new() };
    let mut barriers = run.conflicts(None);
    // What one barrier settles may have asked for another when less was known of the loops.
    let settled: Vec<OpId> = barriers.difference(&run.conflicts(Some(&barriers))).copied().collect();
    for barrier in settled {
        barriers.remove(&barrier);
        if !run.conflicts(Some(&barriers)).is_subset(&barriers) {
            barriers.insert(barrier);
        }
    }
    let count = barriers.len();
    for (i, op) in func.ops.iter_mut().enumerate() {
        if barriers.contains(&OpId::new(i)) {
            op.kind = OpKind::Barrier;
        }
    }
    let keep: Vec<bool> = func.ops.iter().map(|op| !matches!(op.kind, OpKind::Access { .. })).collect();
    for block in &mut func.blocks {
        block.ops.retain(|op| keep[op.index()]);
    }
    count
}

struct Run<'a> {
    func: &'a Func,
    /// Marks with a barrier in front; if it is not known which, every mark that needs one has it.
    fixed: Option<BTreeSet<OpId>>,
    /// Marks that conflict with what was touched before.
    conflicts: BTreeSet<OpId>,
    loops: Vec<Around>,
    /// What may be pending at the head of each loop.
    heads: BTreeMap<OpId, State>,
}

/// A loop that is being walked: what is pending where it goes on, and where it is left.
#[derive(Default)]
struct Around {
    next: Option<State>,
    exit: Option<State>,
}

impl Run<'_> {
    /// The marks that conflict with what was touched since the last barrier, when these have one in front, or all that conflict.
    fn conflicts(&mut self, fixed: Option<&BTreeSet<OpId>>) -> BTreeSet<OpId> {
        self.fixed = fixed.cloned();
        self.heads.clear();
        loop {
            let heads = self.heads.clone();
            self.conflicts.clear();
            self.block(self.func.body, State::default());
            if self.heads == heads {
                return std::mem::take(&mut self.conflicts);
            }
        }
    }

    /// What is pending after a block, `None` if its end is not reached.
    fn block(&mut self, block: Block, entry: State) -> Option<State> {
        let func = self.func;
        let mut state = entry;
        for id in &func.block(block).ops {
            state = self.op(*id, func.op(*id), state)?;
        }
        Some(state)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only marks, barriers and control change what is pending")]
    fn op(&mut self, id: OpId, op: &Op, mut state: State) -> Option<State> {
        match &op.kind {
            OpKind::Access { region, write } => {
                let meets = |(other, wrote): &Touch| (*write || *wrote) && self.overlap(*region, *other);
                let conflict = state.touched.iter().any(meets);
                if conflict {
                    self.conflicts.insert(id);
                }
                if self.fixed.as_ref().map_or(conflict, |fixed| fixed.contains(&id)) {
                    state.touched.clear();
                }
                state.mark((*region, *write));
                Some(state)
            }
            OpKind::Barrier => {
                state.touched.clear();
                Some(state)
            }
            OpKind::CopyAsync { .. } => {
                state.copy();
                Some(state)
            }
            OpKind::CopyWait(n) => {
                state.wait(*n);
                Some(state)
            }
            OpKind::Load { .. } | OpKind::Store { .. } | OpKind::Atomic { .. } | OpKind::CompareSwap(_)
            | OpKind::LoadMatrix { .. } => {
                state.access();
                Some(state)
            }
            OpKind::If => {
                let mut after = None;
                for arm in &op.regions {
                    if let Some(out) = self.block(*arm, state.clone()) {
                        join(&mut after, out);
                    }
                }
                after
            }
            OpKind::For | OpKind::Loop => self.repeat(id, op, state),
            OpKind::Break(n) | OpKind::Continue(n) => {
                let around = self.loops.len().checked_sub(1 + *n as usize).and_then(|at| self.loops.get_mut(at))?;
                join(if matches!(op.kind, OpKind::Break(_)) { &mut around.exit } else { &mut around.next }, state);
                None
            }
            OpKind::Return => None,
            _ => Some(state),
        }
    }

    fn repeat(&mut self, id: OpId, op: &Op, state: State) -> Option<State> {
        let mut entry = self.heads.remove(&id);
        join(&mut entry, state);
        let entry = entry.unwrap_or_default();
        self.loops.push(Around::default());
        if let Some(body) = op.regions.first() {
            self.block(*body, entry.clone());
        }
        let Around { next, mut exit } = self.loops.pop().unwrap_or_default();
        let mut head = Some(entry);
        if let Some(next) = next {
            join(&mut head, next);
        }
        let head = head.unwrap_or_default();
        // A `for` also ends at its head.
        if op.kind == OpKind::For {
            join(&mut exit, head.clone());
        }
        self.heads.insert(id, head);
        exit
    }

    fn overlap(&self, a: Region, b: Region) -> bool {
        match (a, b) {
            (Region::Buffer(a), Region::Buffer(b)) => {
                let (a, b) = (&self.func.buffers[a as usize], &self.func.buffers[b as usize]);
                a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes
            }
            (Region::Tensor(a), Region::Tensor(b)) => a == b,
            (Region::Buffer(_), Region::Tensor(_)) | (Region::Tensor(_), Region::Buffer(_)) => false,
        }
    }
}
