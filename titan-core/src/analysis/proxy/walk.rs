//! A forward data-flow analysis over the structured code of a role: states are joined after branches, loops are walked to a fixed
//! point.

use crate::collections::SortedMap;
use crate::ir::{Block, Family, Flow, Kernel, Op, OpId, OpKind, TtgOp, Value};

/// The state at one point, which only grows at joins.
pub(super) trait Fact: Clone + Default + PartialEq {
    /// Joins the states of two paths.
    fn join(&mut self, other: &Self);
}

/// The transfer functions.
pub(super) trait Walk {
    /// The state that the analysis computes.
    type State: Fact;

    /// The transfer function of an operation, without its regions.
    fn step(&mut self, id: OpId, op: &Op, state: &mut Self::State);

    /// The transfer function of the back edge of a loop.
    fn next_iteration(&self, looped: OpId, state: &mut Self::State);

    /// Values get new names: those that a loop or branch carries or yields. Values that are computed in the loop `left` are not known
    /// afterwards by their old names.
    fn renamed(&self, from: &[Value], to: &[Value], left: Option<OpId>, state: &mut Self::State);
}

/// Analyses a role: every operation is visited until the state before it no longer grows.
pub(super) fn walk<W: Walk>(kernel: &Kernel, block: Block, start: W::State, walk: &mut W) {
    Walker { kernel, walk, loops: Vec::new(), headers: SortedMap::new() }.block(block, start);
}

/// A loop that is being walked.
struct Frame<S> {
    looped: OpId,
    body: Block,
    again: Option<S>,
    left: Option<S>,
}

struct Walker<'k, 'w, W: Walk> {
    kernel: &'k Kernel,
    walk: &'w mut W,
    loops: Vec<Frame<W::State>>,
    /// The states found so far at the heads of loops, which only grow.
    headers: SortedMap<OpId, W::State>,
}

fn unite<S: Fact>(into: &mut Option<S>, more: &S) {
    match into {
        Some(state) => state.join(more),
        None => *into = Some(more.clone()),
    }
}

impl<W: Walk> Walker<'_, '_, W> {
    /// Walks a block; returns the state after it, if its end is reachable.
    fn block(&mut self, block: Block, mut state: W::State) -> Option<W::State> {
        let kernel = self.kernel;
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            self.walk.step(*id, op, &mut state);
            match op.kind.family() {
                Family::Flow(Flow::For(_) | Flow::Loop) => state = self.looped(*id, op, state)?,
                Family::Flow(Flow::If) => {
                    let mut after = None;
                    for arm in &op.regions {
                        if let Some(mut end) = self.block(*arm, state.clone()) {
                            let given = kernel.block(*arm).ops.last().map_or(&[][..], |last| &kernel.op(*last).args);
                            self.walk.renamed(given, &op.results, None, &mut end);
                            unite(&mut after, &end);
                        }
                    }
                    state = after?;
                }
                Family::Flow(Flow::Continue(n) | Flow::Break(n)) => {
                    let level = usize::try_from(n).unwrap_or(usize::MAX);
                    let frame = self.loops.len().checked_sub(1).and_then(|top| top.checked_sub(level));
                    if let Some(frame) = frame.and_then(|i| self.loops.get_mut(i)) {
                        let again = matches!(op.kind, OpKind::Continue(_));
                        let to = if again {
                            carried(kernel, frame.body, frame.looped)
                        } else {
                            results(kernel, frame.looped)
                        };
                        self.walk.renamed(&op.args, to, Some(frame.looped), &mut state);
                        unite(if again { &mut frame.again } else { &mut frame.left }, &state);
                    }
                    return None;
                }
                Family::Flow(Flow::Return) => return None,
                Family::Flow(Flow::Yield) => return Some(state),
                // The roles are walked separately.
                Family::Ttg(TtgOp::Roles) => return None,
                // `step` has handled them.
                Family::Ttg(_)
                | Family::Data(_)
                | Family::Local(_)
                | Family::Region(_)
                | Family::Nv(_)
                | Family::Amd(_) => {}
            }
        }
        None
    }

    fn looped(&mut self, id: OpId, op: &Op, mut entry: W::State) -> Option<W::State> {
        let body = *op.regions.first()?;
        let inside = carried(self.kernel, body, id);
        self.walk.renamed(&op.args[op.args.len() - inside.len()..], inside, None, &mut entry);
        let mut head = self.headers.get(&id).cloned().unwrap_or_default();
        head.join(&entry);
        // The state at the head starts with what enters the loop, and grows by what comes around. When nothing is added anymore, the state
        // holds at the head of every iteration. Nested loops begin with what their head had in the previous round (`headers`), so that each
        // head grows through the whole walk and the rounds of all loops together are at most the height of the lattice.
        loop {
            self.loops.push(Frame { looped: id, body, again: None, left: None });
            self.block(body, head.clone());
            let frame = self.loops.pop();
            let (again, left) = frame.map_or((None, None), |frame| (frame.again, frame.left));
            let mut next = head.clone();
            if let Some(mut again) = again {
                self.walk.next_iteration(id, &mut again);
                next.join(&again);
            }
            if next != head {
                head = next;
                continue;
            }
            self.headers.insert(id, head.clone());
            // A counted loop may execute zero iterations; other loops are left only by `break`.
            let mut after = matches!(op.kind, OpKind::For(_)).then_some(head);
            if let Some(after) = &mut after {
                self.walk.renamed(inside, &op.results, Some(id), after);
            }
            if let Some(left) = left {
                unite(&mut after, &left);
            }
            return after;
        }
    }
}

/// The values that a loop carries, as the arguments of its body.
fn carried(kernel: &Kernel, body: Block, looped: OpId) -> &[Value] {
    let args = &kernel.block(body).args;
    &args[args.len().saturating_sub(kernel.op(looped).results.len())..]
}

fn results(kernel: &Kernel, looped: OpId) -> &[Value] {
    &kernel.op(looped).results
}
