//! The region-hazard analysis: where threads of a program could meet in a region, a barrier stands between.
//!
//! The state is what has been touched since the last barrier, by region. A mark that writes what was touched, or reads what
//! was written, needs a barrier in front of it. At joins states unite; around loops they go until nothing changes. So on every path
//! between two marks that conflict there is a barrier, and none is placed where no path has a conflict. Buffers conflict when
//! their places overlap, whichever value lies there.
//!
//! Barriers go right in front of the mark: as late as possible, so that what stands before may overlap with waiting.
//!
//! Deliberately absent: fences between proxies (all accesses here are generic; asynchronous copies are waited for by their
//! own operation, in front of the barrier).

use super::func::{Block, Func, Op, OpId};
use super::op::{OpKind, Region};
use std::collections::{BTreeMap, BTreeSet};

/// What was touched since the last barrier; the flag says whether by a write.
type State = BTreeSet<(Region, bool)>;

/// Places the barriers of a function whose shared memory is allocated, and removes the marks. Gives the number of barriers.
pub fn place_barriers(func: &mut Func) -> usize {
    let mut run = Run { func, barriers: BTreeSet::new(), loops: Vec::new(), heads: BTreeMap::new() };
    loop {
        let (barriers, heads) = (run.barriers.len(), run.heads.clone());
        run.block(func.body, State::new());
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

const fn mark(op: &Op) -> Option<(Region, bool)> {
    if let OpKind::Access { region, write } = op.kind { Some((region, write)) } else { None }
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
    next: State,
    exit: State,
}

impl Run<'_> {
    /// What is pending after a block, `None` if its end is not reached.
    fn block(&mut self, block: Block, entry: State) -> Option<State> {
        let func = self.func;
        let mut state = entry;
        let mut ops = func.block(block).ops.as_slice();
        while let [first, rest @ ..] = ops {
            let marks = ops.iter().map_while(|id| mark(func.op(*id))).collect::<Vec<_>>();
            if marks.is_empty() {
                state = self.op(*first, func.op(*first), state)?;
                ops = rest;
            } else {
                self.access(*first, &marks, &mut state);
                ops = &ops[marks.len()..];
            }
        }
        Some(state)
    }

    /// Marks in a row speak of the same accesses: a barrier goes in front of all of them, or of none.
    fn access(&mut self, first: OpId, marks: &[(Region, bool)], state: &mut State) {
        let meets = |(other, wrote): &(Region, bool)| {
            marks.iter().any(|(region, write)| (*write || *wrote) && self.overlap(*region, *other))
        };
        if self.barriers.contains(&first) || state.iter().any(meets) {
            self.barriers.insert(first);
            state.clear();
        }
        state.extend(marks);
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only marks, barriers and control change what is pending")]
    fn op(&mut self, id: OpId, op: &Op, state: State) -> Option<State> {
        match &op.kind {
            OpKind::Barrier => Some(State::new()),
            OpKind::If => {
                let arms: Vec<State> = op.regions.iter().filter_map(|arm| self.block(*arm, state.clone())).collect();
                arms.into_iter().reduce(|mut all, arm| {
                    all.extend(arm);
                    all
                })
            }
            OpKind::For | OpKind::Loop => Some(self.repeat(id, op, state)),
            OpKind::Break(n) | OpKind::Continue(n) => {
                let around = self.loops.len().checked_sub(1 + *n as usize).and_then(|at| self.loops.get_mut(at))?;
                let into = if matches!(op.kind, OpKind::Break(_)) { &mut around.exit } else { &mut around.next };
                into.extend(state);
                None
            }
            OpKind::Return => None,
            _ => Some(state),
        }
    }

    fn repeat(&mut self, id: OpId, op: &Op, state: State) -> State {
        let head = self.heads.entry(id).or_default();
        head.extend(state);
        let entry = head.clone();
        self.loops.push(Around::default());
        if let Some(body) = op.regions.first() {
            self.block(*body, entry.clone());
        }
        let around = self.loops.pop().unwrap_or_default();
        self.heads.entry(id).or_default().extend(around.next.iter().copied());
        // A `for` also ends at its head.
        let mut exit = around.exit;
        if op.kind == OpKind::For {
            exit.extend(entry);
            exit.extend(around.next);
        }
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
