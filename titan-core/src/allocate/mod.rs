//! Allocation of shared memory: regions that are not needed at the same time lie in the same place.
//!
//! A region is needed from the first operation that names it to the last, in program order; if it is made outside of a loop and
//! named inside, in the whole loop: what it holds may be of another iteration. A region that is made inside of a loop is
//! written before it is read in every iteration; rings that are empty between iterations are made there (`crate::expand`). What
//! is copied to asynchronously is needed wherever the copy may be under way: on every path, around loops too, until a wait for
//! all copies.
//!
//! Roles run at the same time, and program order says nothing of them: regions that are named in different roles, or one in
//! several roles and the other in one of these, are needed at the same time. Those of one role alone may take each other's
//! place.
//!
//! ```text
//! %a = ttg.region {bytes = 4096}        needed from 1
//! .. ttg.local.load of %a               to 2
//! %b = ttg.region {bytes = 2048}        3 to 4: in the place of %a
//! for ..                                5 to 9
//!     .. ttg.local.load of %ring        made outside: needed from 5 to 9, or longer
//! ```
//!
//! Places are first fit, the largest regions first.

mod flight;

use crate::ir::{Block, Kernel, Op, OpId, OpKind, Raw, RegionOp, TtgOp, Ty, Value};
use std::collections::{BTreeMap, BTreeSet};

/// When a region is needed: positions in program order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first: u32,
    last: u32,
}

impl Span {
    const fn meets(self, other: Span) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// The code of a role: which roles, and which of them.
type Code = (OpId, usize);

/// A region while its place is looked for.
#[derive(Clone, Debug)]
struct Region {
    op: OpId,
    bytes: u32,
    align: u32,
    /// Where it is made.
    made: u32,
    span: Option<Span>,
    /// The code of which roles names it.
    codes: BTreeSet<Code>,
}

/// Gives every region of a barrier program its place. Gives the size of the shared memory.
pub fn allocate(kernel: &mut Kernel) -> u32 {
    let mut walk = Walk { kernel, clock: 0, regions: Vec::new(), by_value: BTreeMap::new(), role: None };
    walk.block(kernel.body);
    let mut regions = walk.regions;
    flight::fly(kernel, &walk.by_value, &mut regions);
    let mut order: Vec<usize> = (0..regions.len()).filter(|r| regions[*r].span.is_some()).collect();
    order.sort_by_key(|r| (std::cmp::Reverse(regions[*r].bytes), *r));
    let mut placed: Vec<(usize, u32)> = Vec::new();
    let mut size = 0;
    for index in order {
        let region = &regions[index];
        let mut taken: Vec<(u32, u32)> = placed
            .iter()
            .filter(|(other, _)| at_once(region, &regions[*other]))
            .map(|(other, at)| (*at, at + regions[*other].bytes))
            .collect();
        taken.sort_unstable();
        let mut at = 0u32;
        for (start, end) in taken {
            if at.saturating_add(region.bytes) > start {
                at = at.max(end.next_multiple_of(region.align));
            } else {
                break;
            }
        }
        placed.push((index, at));
        size = size.max(at.saturating_add(region.bytes));
    }
    for (index, at) in placed {
        if let OpKind::Region(RegionOp::Place { offset, .. }) = &mut kernel.ops[regions[index].op.index()].kind {
            *offset = at;
        }
    }
    size
}

/// Whether two regions are needed at the same time.
fn at_once(a: &Region, b: &Region) -> bool {
    let roles = a.codes.iter().any(|(split, role)| b.codes.iter().any(|(of, also)| split == of && role != also));
    roles || a.span.zip(b.span).is_some_and(|(a, b)| a.meets(b))
}

struct Walk<'k> {
    kernel: &'k Kernel,
    clock: u32,
    regions: Vec<Region>,
    by_value: BTreeMap<Value, usize>,
    role: Option<Code>,
}

impl Walk<'_> {
    fn block(&mut self, block: Block) {
        let kernel = self.kernel;
        for id in &kernel.block(block).ops {
            let op = kernel.op(*id);
            self.clock += 1;
            self.name(*id, op);
            let before = self.clock;
            for (i, region) in op.regions.iter().enumerate() {
                if op.kind == OpKind::Ttg(TtgOp::Roles) {
                    self.role = Some((*id, i));
                }
                self.block(*region);
            }
            if op.kind == OpKind::Ttg(TtgOp::Roles) {
                self.role = None;
            }
            if op.kind.is_loop() {
                self.stretch(Span { first: before, last: self.clock });
            }
        }
    }

    /// Makes a region, or names one.
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other operation needs what its operands name")]
    fn name(&mut self, id: OpId, op: &Op) {
        match op.kind {
            OpKind::Region(RegionOp::Place { bytes, .. }) => {
                self.by_value.extend(op.results.first().map(|v| (*v, self.regions.len())));
                let (made, codes) = (self.clock, BTreeSet::new());
                self.regions.push(Region { op: id, bytes, align: 16, made, span: None, codes });
            }
            _ if self.renames(op) => {
                let (Some(result), Some(of)) = (op.results.first(), op.args.first()) else { return };
                let Some(region) = self.by_value.get(of).copied() else { return };
                self.by_value.insert(*result, region);
                if let (OpKind::Region(RegionOp::Tile { .. }), Some(e)) = (&op.kind, self.kernel.encoding(*result)) {
                    let align = &mut self.regions[region].align;
                    *align = e.align().max(*align);
                }
            }
            _ => {
                let named: Vec<usize> = op.args.iter().filter_map(|v| self.by_value.get(v)).copied().collect();
                named.iter().for_each(|region| self.mark(*region));
            }
        }
    }

    /// Whether an operation only calls a region, or a part of it, otherwise.
    fn renames(&self, op: &Op) -> bool {
        let is_shared = |v: &Value| matches!(self.kernel.ty(*v), Ty::Smem(..) | Ty::Raw(Raw::Region | Raw::Mbarrier));
        op.results.first().is_some_and(is_shared) && op.args.first().is_some_and(is_shared)
    }

    fn mark(&mut self, region: usize) {
        let region = &mut self.regions[region];
        let first = region.span.map_or(self.clock, |s| s.first);
        region.span = Some(Span { first, last: self.clock });
        region.codes.extend(self.role);
    }

    /// A region that is made before a loop and named in it is needed in all of it.
    fn stretch(&mut self, around: Span) {
        for Region { made, span, .. } in &mut self.regions {
            let Some(span) = span else { continue };
            if *made < around.first && span.last > around.first {
                *span = Span { first: span.first.min(around.first), last: span.last.max(around.last) };
            }
        }
    }
}
