//! The region-hazard analysis: where threads of a program could meet in a region, a barrier stands between.
//!
//! The state is what has been touched since the last barrier, by region. A mark that writes what was touched, or reads what
//! was written, needs a barrier in front of it. At joins states unite; around loops they go until nothing changes. So on every path
//! between two marks that conflict there is a barrier, and none is placed where no path has a conflict. Buffers conflict when
//! their places overlap, whichever value lies there.
//!
//! Barriers go right in front of the mark: as late as possible, so that what stands before may overlap with waiting. Marks that
//! follow each other without an access between them hold together: a barrier in front of the last one does not settle the
//! others, whose accesses come after it.
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
    /// The latest marks, whose accesses follow.
    open: BTreeSet<Touch>,
    /// Whether some have: then the next mark is not one of them.
    accessed: bool,
    /// What copies under way touch: the buffers they write, the tensors they read.
    flying: BTreeSet<Touch>,
}

impl State {
    fn join(&mut self, other: State) {
        self.touched.extend(other.touched);
        self.open.extend(other.open);
        self.accessed &= other.accessed;
        self.flying.extend(other.flying);
    }

    /// A mark comes: if the latest ones have had their accesses, those are what was touched.
    fn settle(&mut self) {
        if std::mem::take(&mut self.accessed) {
            self.touched.append(&mut self.open);
        }
    }

    /// A copy begins between the regions that are marked.
    fn copy(&mut self) {
        self.accessed = true;
        self.flying.extend(&self.open);
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
    let mut run = Run { func, barriers: BTreeSet::new(), loops: Vec::new(), heads: BTreeMap::new() };
    loop {
        let (barriers, heads) = (run.barriers.len(), run.heads.clone());
        run.block(func.body, State::default());
        if run.barriers.len() == barriers && run.heads == heads {
            break;
        }
    }
    let barriers = run.barriers;
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
    /// Marks with a barrier in front.
    barriers: BTreeSet<OpId>,
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
                state.settle();
                let meets = |(other, wrote): &Touch| (*write || *wrote) && self.overlap(*region, *other);
                if self.barriers.contains(&id) || state.touched.iter().any(meets) {
                    self.barriers.insert(id);
                    state.touched.clear();
                }
                state.open.insert((*region, *write));
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
                state.accessed = true;
                Some(state)
            }
            OpKind::If => {
                state.accessed = true;
                let mut after = None;
                for arm in &op.regions {
                    if let Some(out) = self.block(*arm, state.clone()) {
                        join(&mut after, out);
                    }
                }
                after
            }
            OpKind::For | OpKind::Loop => {
                state.accessed = true;
                self.repeat(id, op, state)
            }
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
