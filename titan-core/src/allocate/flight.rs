//! Where copies may be under way: what they write is needed there.
//!
//! A wait for all copies ends those of the threads that wait. Roles wait for those of their own threads only: what is under way
//! when roles begin is needed until they end.

use super::{Region, Span};
use crate::ir::{Block, Kernel, LocalOp, NvGroup, NvOp, Op, OpId, OpKind, TtgOp, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Regions to which copies are under way.
type Flying = BTreeSet<usize>;

/// Stretches the spans of regions over all places where copies to them may be under way. Positions are those of the operations
/// in program order, as spans have them.
pub(super) fn fly(kernel: &Kernel, by_value: &BTreeMap<Value, usize>, regions: &mut [Region]) {
    let mut at = BTreeMap::new();
    let mut clock = 0;
    kernel.walk(&mut |id, _| {
        clock += 1;
        at.insert(id, clock);
    });
    Flight { kernel, by_value, regions, at, loops: Vec::new() }.block(kernel.body, Flying::new());
}

/// What is under way where a loop goes on, and where it is left.
#[derive(Default)]
struct Around {
    next: Option<Flying>,
    exit: Option<Flying>,
}

struct Flight<'k> {
    kernel: &'k Kernel,
    by_value: &'k BTreeMap<Value, usize>,
    regions: &'k mut [Region],
    at: BTreeMap<OpId, u32>,
    loops: Vec<Around>,
}

fn join(to: &mut Option<Flying>, from: Flying) {
    to.get_or_insert_default().extend(from);
}

impl Flight<'_> {
    /// What may be under way after a block, `None` if its end is not reached.
    fn block(&mut self, block: Block, entry: Flying) -> Option<Flying> {
        let kernel = self.kernel;
        let mut flying = entry;
        for id in &kernel.block(block).ops {
            let at = self.at.get(id).copied().unwrap_or(0);
            self.need(&flying, at);
            flying = self.op(*id, kernel.op(*id), flying)?;
        }
        Some(flying)
    }

    fn need(&mut self, flying: &Flying, at: u32) {
        for region in flying {
            if let Some(Region { span: Some(span), .. }) = self.regions.get_mut(*region) {
                *span = Span { first: span.first.min(at), last: span.last.max(at) };
            }
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only copies, waits and control change what is under way")]
    fn op(&mut self, id: OpId, op: &Op, mut flying: Flying) -> Option<Flying> {
        match &op.kind {
            OpKind::Local(LocalOp::Copy { asynchronous: true }) => {
                flying.extend(op.args.iter().filter_map(|v| self.by_value.get(v)).copied());
                Some(flying)
            }
            OpKind::Nv(NvOp::WaitGroup { group: NvGroup::CpAsync, n: 0, .. }) => Some(Flying::new()),
            OpKind::If | OpKind::Ttg(TtgOp::Roles) => {
                if op.kind != OpKind::If {
                    self.need(&flying, self.last(id, op));
                }
                let mut after = None;
                for arm in &op.regions {
                    if let Some(out) = self.block(*arm, flying.clone()) {
                        join(&mut after, out);
                    }
                }
                if op.regions.len() < 2 {
                    join(&mut after, flying);
                }
                after
            }
            OpKind::For(_) | OpKind::Loop => self.repeat(op, flying),
            OpKind::Break(n) | OpKind::Continue(n) => {
                let around = self.loops.len().checked_sub(1 + *n as usize).and_then(|at| self.loops.get_mut(at))?;
                join(if matches!(op.kind, OpKind::Break(_)) { &mut around.exit } else { &mut around.next }, flying);
                None
            }
            OpKind::Return => None,
            _ => Some(flying),
        }
    }

    /// The position of the last operation inside of one.
    fn last(&self, id: OpId, op: &Op) -> u32 {
        let mut last = self.at.get(&id).copied().unwrap_or(0);
        for region in &op.regions {
            self.kernel.walk_block(*region, &mut |id, _| last = last.max(self.at.get(&id).copied().unwrap_or(0)));
        }
        last
    }

    fn repeat(&mut self, op: &Op, entry: Flying) -> Option<Flying> {
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
                // A `for` also ends at its head.
                if matches!(op.kind, OpKind::For(_)) {
                    join(&mut exit, head);
                }
                return exit;
            }
        }
    }
}
