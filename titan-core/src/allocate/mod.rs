//! Allocation of shared memory: regions whose live ranges do not overlap may share bytes.
//!
//! A region is live from the first operation that refers to it to the last, in program order. If it is created outside of a loop and used
//! inside, it is live in the whole loop, because its contents may come from another iteration. A region that is created inside a loop is
//! written before it is read in every iteration; rings that are empty between iterations are created there (`crate::expand`). A region that
//! asynchronous operations access is live wherever one of these may be in flight: on every path, including around loops, until a wait
//! completes them.
//!
//! Roles run concurrently, so program order does not separate them: regions that are used in different roles, or one in several roles and
//! the other in one of these, are live at the same time. Regions of the same role only may share bytes.
//!
//! ```text
//! %a = ttg.region {bytes = 4096}        live from 1
//! .. ttg.local.load of %a               to 2
//! %b = ttg.region {bytes = 2048}        live from 3 to 4: shares the bytes of %a
//! for ..                                5 to 9
//!     .. ttg.local.load of %ring        created outside: live from 5 to 9, or longer
//! ```
//!
//! Addresses are assigned first fit, the largest regions first. If MMAs of warpgroups read regions, none begins at the first address: ptxas
//! would keep that address in a register of each thread, and would compute the descriptors of a region there in such registers too, from
//! which they would have to be moved to uniform registers for every MMA.

mod flight;

use crate::collections::{SortedMap, SortedSet};
use crate::ir::{BarrierTy, Block, Kernel, NvOp, Op, OpId, OpKind, RegionOp, TtgOp, Ty, Value};

/// The bytes at the beginning that are unused if MMAs of warpgroups read regions; barriers fill the rest up to the next region.
const UNUSED: u32 = 16;

/// The alignment of tiles that are copied in bulk (PTX ISA, "cp.async.bulk.tensor").
const BOX: u32 = 128;

/// The live range of a region, as positions in program order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    first: u32,
    last: u32,
}

impl Span {
    const fn overlaps(self, other: Span) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// The code of a role: the `roles` operation, and the index of the role.
type Code = (OpId, usize);

/// A region to be allocated.
#[derive(Clone, Debug)]
struct Region {
    op: OpId,
    bytes: u32,
    align: u32,
    /// The position at which it is created.
    made: u32,
    span: Option<Span>,
    /// The roles that use it.
    codes: SortedSet<Code>,
}

/// Assigns an address to every region of a barrier program. Returns the size of the shared memory.
pub fn allocate(kernel: &mut Kernel) -> u32 {
    let (mut regions, by_value) = Walk::of(kernel);
    flight::extend_spans(kernel, &by_value, &mut regions);
    let mut order: Vec<usize> = (0..regions.len()).filter(|r| regions[*r].span.is_some()).collect();
    order.sort_by_key(|r| (std::cmp::Reverse(regions[*r].bytes), *r));
    let free = if reads_by_descriptor(kernel) { UNUSED } else { 0 };
    let mut placed: Vec<(usize, u32)> = Vec::new();
    let mut size = 0;
    for index in order {
        let region = &regions[index];
        let mut taken: Vec<(u32, u32)> = placed
            .iter()
            .filter(|(other, _)| interfere(region, &regions[*other]))
            .map(|(other, at)| (*at, at + regions[*other].bytes))
            .collect();
        taken.sort_unstable();
        let mut at = free.next_multiple_of(region.align);
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

/// Whether MMAs of warpgroups read shared memory by matrix descriptors.
fn reads_by_descriptor(kernel: &Kernel) -> bool {
    kernel.ops.iter().any(|op| matches!(op.kind, OpKind::Nv(NvOp::Wgmma)))
}

/// Whether two regions are live at the same time, so that they must not share bytes.
fn interfere(a: &Region, b: &Region) -> bool {
    in_different_roles(a, b) || a.span.zip(b.span).is_some_and(|(a, b)| a.overlaps(b))
}

fn in_different_roles(a: &Region, b: &Region) -> bool {
    a.codes.iter().any(|(split, role)| b.codes.iter().any(|(of, also)| split == of && role != also))
}

/// Whether bulk stores that are in flight for longer may need more shared memory: there are regions other than two of their buffers that are
/// not used in other roles, and so could share the buffers' bytes.
pub(crate) fn stores_need_more(kernel: &Kernel) -> bool {
    let (regions, by_value) = Walk::of(kernel);
    let mut buffers = SortedSet::new();
    kernel.walk(&mut |_, op| {
        if let OpKind::Nv(NvOp::BulkStore { .. }) = op.kind {
            buffers.extend(op.args.iter().filter_map(|v| by_value.get(v)).copied());
        }
    });
    let mut others = regions.iter().enumerate().filter(|(at, region)| region.span.is_some() && !buffers.contains(at));
    buffers.len() > 2
        || others.any(|(_, other)| buffers.iter().any(|buffer| !in_different_roles(&regions[*buffer], other)))
}

struct Walk<'k> {
    kernel: &'k Kernel,
    clock: u32,
    regions: Vec<Region>,
    by_value: SortedMap<Value, usize>,
    role: Option<Code>,
}

impl<'k> Walk<'k> {
    /// The regions of a program, live from their first use to the last, and the values that refer to each.
    fn of(kernel: &'k Kernel) -> (Vec<Region>, SortedMap<Value, usize>) {
        let mut walk = Walk { kernel, clock: 0, regions: Vec::new(), by_value: SortedMap::new(), role: None };
        walk.block(kernel.body);
        (walk.regions, walk.by_value)
    }

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

    /// Visits an operation, which creates a region or uses some.
    fn name(&mut self, id: OpId, op: &Op) {
        if let OpKind::Region(RegionOp::Place { bytes, .. }) = op.kind {
            self.by_value.extend(op.results.first().map(|v| (*v, self.regions.len())));
            let (made, codes) = (self.clock, SortedSet::new());
            self.regions.push(Region { op: id, bytes, align: 16, made, span: None, codes });
        } else if self.renames(op) {
            let (Some(result), Some(of)) = (op.results.first(), op.args.first()) else { return };
            let Some(region) = self.by_value.get(of).copied() else { return };
            self.by_value.insert(*result, region);
            if let (OpKind::Region(RegionOp::Tile { .. }), Some(e)) = (&op.kind, self.kernel.encoding(*result)) {
                let align = &mut self.regions[region].align;
                *align = e.align().max(*align);
            }
        } else {
            // The operation uses the regions to which its operands refer.
            let named: Vec<usize> = op.args.iter().filter_map(|v| self.by_value.get(v)).copied().collect();
            named.iter().for_each(|region| self.mark(*region));
            if let OpKind::Nv(NvOp::BulkLoad { tensor: true, .. } | NvOp::BulkStore { tensor: true, .. }) = op.kind {
                let tiles = op.args.iter().filter(|v| matches!(self.kernel.ty(**v), Ty::Smem(..)));
                let copied: Vec<usize> = tiles.filter_map(|v| self.by_value.get(v)).copied().collect();
                copied.into_iter().for_each(|region| self.regions[region].align = self.regions[region].align.max(BOX));
            }
        }
    }

    /// Whether the result of an operation refers to the same region, or to a part of it.
    fn renames(&self, op: &Op) -> bool {
        let is_shared = |v: &Value| {
            matches!(self.kernel.ty(*v), Ty::Smem(..) | Ty::Barrier(BarrierTy::Region | BarrierTy::Mbarrier))
        };
        op.results.first().is_some_and(is_shared) && op.args.first().is_some_and(is_shared)
    }

    fn mark(&mut self, region: usize) {
        let region = &mut self.regions[region];
        let first = region.span.map_or(self.clock, |s| s.first);
        region.span = Some(Span { first, last: self.clock });
        region.codes.extend(self.role);
    }

    /// Extends the live ranges of regions that are created before a loop and used in it to the whole loop.
    fn stretch(&mut self, around: Span) {
        for Region { made, span, .. } in &mut self.regions {
            let Some(span) = span else { continue };
            if *made < around.first && span.last > around.first {
                *span = Span { first: span.first.min(around.first), last: span.last.max(around.last) };
            }
        }
    }
}
