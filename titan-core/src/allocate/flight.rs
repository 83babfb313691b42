//! The live ranges of regions that asynchronous operations access: a region is live wherever one of these may be in flight. They are copies
//! to the region (`cp.async`), bulk stores from it, and MMAs of warpgroups that read it.
//!
//! A wait for all operations of a class completes only those of the waiting threads. A role waits for the copies of its own threads, so a
//! copy that is in flight when the roles begin keeps its region live until they end.

use super::{Region, Span};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Block, Class, Completion, Family, Flow, Kernel, NvOp, Op, OpId, OpKind, TtgOp, Value};

/// The regions that operations in flight access, each with the class of the operation.
type InFlight = SortedSet<(Class, usize)>;

/// Extends the live ranges of regions to all operations at which accesses to them may be in flight. Positions are those of the operations
/// in program order, as in `Span`.
pub(super) fn extend_spans(kernel: &Kernel, by_value: &SortedMap<Value, usize>, regions: &mut [Region]) {
    let mut at = SortedMap::new();
    let mut clock = 0;
    kernel.walk(&mut |id, _| {
        clock += 1;
        at.insert(id, clock);
    });
    Flight { kernel, by_value, regions, at, loops: Vec::new() }.block(kernel.body, InFlight::new());
}

/// The accesses in flight at the back edges of a loop, and at its exits.
#[derive(Default)]
struct Around {
    next: Option<InFlight>,
    exit: Option<InFlight>,
}

struct Flight<'k> {
    kernel: &'k Kernel,
    by_value: &'k SortedMap<Value, usize>,
    regions: &'k mut [Region],
    at: SortedMap<OpId, u32>,
    loops: Vec<Around>,
}

fn join(to: &mut Option<InFlight>, from: InFlight) {
    to.get_or_insert_default().extend(from);
}

impl Flight<'_> {
    /// The accesses that may be in flight after a block; `None` if its end is unreachable.
    fn block(&mut self, block: Block, entry: InFlight) -> Option<InFlight> {
        let kernel = self.kernel;
        let mut in_flight = entry;
        for id in &kernel.block(block).ops {
            let at = self.at.get(id).copied().unwrap_or(0);
            self.need(&in_flight, at);
            in_flight = self.op(*id, kernel.op(*id), in_flight)?;
        }
        Some(in_flight)
    }

    fn need(&mut self, in_flight: &InFlight, at: u32) {
        for (_, region) in in_flight {
            if let Some(Region { span: Some(span), .. }) = self.regions.get_mut(*region) {
                *span = Span { first: span.first.min(at), last: span.last.max(at) };
            }
        }
    }

    fn op(&mut self, id: OpId, op: &Op, mut in_flight: InFlight) -> Option<InFlight> {
        if let Completion::Prefix(class) = op.kind.completion() {
            in_flight.extend(op.args.iter().filter_map(|v| self.by_value.get(v)).map(|region| (class, *region)));
        }
        match op.kind.family() {
            Family::Nv(NvOp::WaitGroup { group, n: 0, .. }) => {
                in_flight.retain(|(class, _)| *class != group.class());
                Some(in_flight)
            }
            Family::Flow(Flow::If) | Family::Ttg(TtgOp::Roles) => {
                if op.kind != OpKind::If {
                    self.need(&in_flight, self.last(id, op));
                }
                let mut after = None;
                for arm in &op.regions {
                    if let Some(out) = self.block(*arm, in_flight.clone()) {
                        join(&mut after, out);
                    }
                }
                if op.regions.len() < 2 {
                    join(&mut after, in_flight);
                }
                after
            }
            Family::Flow(Flow::For(_) | Flow::Loop) => self.repeat(op, in_flight),
            Family::Flow(Flow::Break(n) | Flow::Continue(n)) => {
                let around = self.loops.len().checked_sub(1 + n as usize).and_then(|at| self.loops.get_mut(at))?;
                join(if matches!(op.kind, OpKind::Break(_)) { &mut around.exit } else { &mut around.next }, in_flight);
                None
            }
            Family::Flow(Flow::Return) => None,
            // These complete nothing that is in flight.
            Family::Flow(Flow::Yield)
            | Family::Data(_)
            | Family::Ttg(_)
            | Family::Local(_)
            | Family::Region(_)
            | Family::Nv(_)
            | Family::Amd(_) => Some(in_flight),
        }
    }

    /// The position of the last operation nested in an operation.
    fn last(&self, id: OpId, op: &Op) -> u32 {
        let mut last = self.at.get(&id).copied().unwrap_or(0);
        for region in &op.regions {
            self.kernel.walk_block(*region, &mut |id, _| last = last.max(self.at.get(&id).copied().unwrap_or(0)));
        }
        last
    }

    fn repeat(&mut self, op: &Op, entry: InFlight) -> Option<InFlight> {
        let mut head = entry;
        loop {
            self.loops.push(Around::default());
            if let Some(body) = op.regions.first() {
                self.block(*body, head.clone());
            }
            let Around { next, mut exit } = self.loops.pop()?;
            let known = head.len();
            head.extend(next.into_iter().flatten());
            if head.len() == known {
                // A `for` also exits at its head.
                if matches!(op.kind, OpKind::For(_)) {
                    join(&mut exit, head);
                }
                return exit;
            }
        }
    }
}
