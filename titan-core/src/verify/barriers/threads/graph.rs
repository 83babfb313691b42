//! The control flow of the operations that matter for the order of accesses.
//!
//! A node is one operation, or a place where paths meet or where values get another meaning:
//!
//! ```text
//! for .. { A; if .. { B } C; continue }        entry ─▶ Join ─▶ A ─┬▶ B ─▶ Join ─▶ C ─▶ Again ─┐
//! D                                                      │ ▲        └───────▲                    │
//!                                                        │ └─────────────────────────────────────┘
//!                                                        └▶ Left ─▶ D
//! ```
//!
//! A `for` may execute no iteration, so that its head leads out of it; a `loop` is left at its breaks only. Conditions are not looked at: every
//! path of the graph counts. Roles start together, and the code after them starts when all have ended.

use super::accesses::Accesses;
use crate::collections::SortedSet;
use crate::ir::{Block, Family, Flow, Kernel, NvOp, Op, OpId, OpKind, TtgOp};

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Paths meet.
    Join,
    Op(OpId),
    /// The next iteration of a loop begins.
    Again(OpId),
    /// A loop is left.
    Left(OpId),
    /// A role begins.
    Role(OpId, usize),
    /// All roles have ended.
    AllRoles(OpId),
}

/// The control flow of a kernel; node 0 is its entry.
#[derive(Default)]
pub(super) struct Graph {
    pub(super) kinds: Vec<Kind>,
    pub(super) next: Vec<Vec<usize>>,
    /// The role in which each node is.
    pub(super) roles: Vec<Option<usize>>,
}

impl Graph {
    pub(super) fn new(kernel: &Kernel, accesses: &Accesses) -> Graph {
        let mut build = Build { kernel, accesses, graph: Graph::default(), loops: Vec::new(), role: None };
        let entry = build.node(Kind::Join, None);
        build.block(kernel.body, entry);
        build.graph
    }

    /// The states before all nodes, from that at the entry; none for nodes that are not reachable. `after` gives the state after a node, and
    /// `join` adds that of another path to a state, and says whether it changed.
    ///
    /// A node is taken up again only when the state before it has changed. A join moves a state in one direction only (up for sets of what may
    /// have happened, down for sets of what certainly has), in which only finitely many are left, so this ends.
    pub(super) fn states<S: Clone>(
        &self,
        entry: S,
        after: impl Fn(usize, S) -> S,
        join: impl Fn(&mut S, &S) -> bool,
    ) -> Vec<Option<S>> {
        let mut states: Vec<Option<S>> = vec![None; self.kinds.len()];
        let mut open = SortedSet::new();
        if let Some(first) = states.first_mut() {
            *first = Some(entry);
            open.insert(0usize);
        }
        // The least node first, which is mostly the first in program order: then a node is seldom taken up before what
        // leads to it. The result does not depend on the order.
        while let Some(node) = open.first().copied() {
            open.remove(&node);
            let Some(state) = states.get(node).cloned().flatten() else { continue };
            let state = after(node, state);
            for next in self.next.get(node).into_iter().flatten() {
                let Some(known) = states.get_mut(*next) else { continue };
                let changed = match known {
                    Some(own) => join(own, &state),
                    None => {
                        *known = Some(state.clone());
                        true
                    }
                };
                if changed {
                    open.insert(*next);
                }
            }
        }
        states
    }
}

/// A loop whose body is being added: its head, and the node after it.
struct Around {
    op: OpId,
    head: usize,
    after: usize,
}

struct Build<'k> {
    kernel: &'k Kernel,
    accesses: &'k Accesses,
    graph: Graph,
    loops: Vec<Around>,
    role: Option<usize>,
}

impl Build<'_> {
    fn node(&mut self, kind: Kind, from: Option<usize>) -> usize {
        let node = self.graph.kinds.len();
        self.graph.kinds.push(kind);
        self.graph.next.push(Vec::new());
        self.graph.roles.push(self.role);
        from.into_iter().for_each(|from| self.edge(from, node));
        node
    }

    fn edge(&mut self, from: usize, to: usize) {
        if let Some(next) = self.graph.next.get_mut(from) {
            next.push(to);
        }
    }

    /// Adds a block; returns its last node, unless its end is unreachable.
    fn block(&mut self, block: Block, from: usize) -> Option<usize> {
        let mut at = from;
        for id in &self.kernel.block(block).ops {
            at = self.op(*id, self.kernel.op(*id), at)?;
        }
        Some(at)
    }

    fn op(&mut self, id: OpId, op: &Op, from: usize) -> Option<usize> {
        match op.kind.family() {
            Family::Flow(Flow::If) => {
                let after = self.node(Kind::Join, None);
                for arm in &op.regions {
                    let begin = self.node(Kind::Join, Some(from));
                    if let Some(end) = self.block(*arm, begin) {
                        self.edge(end, after);
                    }
                }
                // Without a second arm, there is a path on which nothing of the branch is executed.
                if op.regions.len() < 2 {
                    self.edge(from, after);
                }
                Some(after)
            }
            Family::Flow(Flow::For(_) | Flow::Loop) => {
                let head = self.node(Kind::Join, Some(from));
                let after = self.node(Kind::Join, None);
                // The bound may be reached at any head, the first one included: a `for` of no iteration is a path.
                if !matches!(op.kind, OpKind::Loop) {
                    let left = self.node(Kind::Left(id), Some(head));
                    self.edge(left, after);
                }
                self.loops.push(Around { op: id, head, after });
                let ends: Vec<usize> = op.regions.iter().filter_map(|body| self.block(*body, head)).collect();
                self.loops.pop();
                ends.into_iter().for_each(|end| self.edge(end, head));
                Some(after)
            }
            Family::Flow(Flow::Break(n) | Flow::Continue(n)) => {
                let target = self.loops.len().checked_sub(1 + n as usize)?;
                let mut at = from;
                // From the innermost loop outwards, each loop that is left on the way has a node: what is known of
                // tiles weakens at each of them.
                for inner in (target + 1..self.loops.len()).rev() {
                    at = self.node(Kind::Left(self.loops[inner].op), Some(at));
                }
                let Around { op: looped, head, after } = self.loops[target];
                let leaves = matches!(op.kind, OpKind::Break(_));
                let kind = if leaves { Kind::Left(looped) } else { Kind::Again(looped) };
                let last = self.node(kind, Some(at));
                self.edge(last, if leaves { after } else { head });
                None
            }
            Family::Flow(Flow::Return) => {
                // It has no successor. The node is there because nothing may be in flight when the threads end.
                self.node(Kind::Op(id), Some(from));
                None
            }
            Family::Flow(Flow::Yield) => Some(from),
            Family::Ttg(TtgOp::Roles) => {
                let after = self.node(Kind::AllRoles(id), None);
                for (role, block) in op.regions.iter().enumerate() {
                    // Each role begins from the state before all of them: no role's accesses come before those of
                    // another one, for all that is known here.
                    self.role = Some(role);
                    let begin = self.node(Kind::Role(id, role), Some(from));
                    if let Some(end) = self.block(*block, begin) {
                        self.edge(end, after);
                    }
                    self.role = None;
                }
                Some(after)
            }
            Family::Ttg(TtgOp::Finalize)
            | Family::Nv(NvOp::Commit { .. } | NvOp::WaitGroup { .. } | NvOp::BarrierSync { .. } | NvOp::WarpSync) => {
                Some(self.node(Kind::Op(id), Some(from)))
            }
            // Other operations matter for their accesses.
            Family::Data(_)
            | Family::Ttg(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => {
                let matters = !self.accesses.of(id).0.is_empty();
                Some(if matters { self.node(Kind::Op(id), Some(from)) } else { from })
            }
        }
    }
}
