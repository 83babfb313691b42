//! Facts about a kernel that are known before it runs: its roles, the addresses of rings and regions, the readers of each ring, the
//! arriving agents of each barrier.
//!
//! A ring runs by the protocol of `docs/protocol.md`, with two barriers for each slot: *Ready*, at which the filler arrives
//! once and copies deliver their bytes, and *Free*, at which each reader arrives once. A staging ring, which is written and
//! stored, has no readers and no barriers: the storing role waits for its own stores.
#![expect(clippy::wildcard_enum_match_arm, reason = "most operations are of no interest here")]

use super::finding::{Found, Kind};
use super::laid::Part;
use super::tcgen05::{self, MmaUnit};
use crate::engine::Class;
use titan_core::analysis::one_thread;
use titan_core::ir::{
    Bit, Block, Claim, Effect, Kernel, Layout, NvOp, Op, OpId, OpKind, Pipe, PipeDecl, PipeSpace, Proxy, RegionOp,
    TtgOp, Ty, Value,
};
use titan_core::verify::SHARED_BYTES;

/// The class of `cp.async` operations, which are in commit groups.
pub const CP_ASYNC: Class = Class(0);
/// The class of asynchronous MMAs, which are in commit groups.
pub const WGMMA: Class = Class(1);
/// The class of bulk stores, complete when they have read shared memory.
pub const BULK_STORE: Class = Class(2);
/// The class of the same bulk stores, complete when they have written the tensor.
pub const BULK_WRITE: Class = Class(3);
/// The class of AMD's vector memory operations.
pub const VMCNT: Class = Class(4);
/// The class of AMD's operations on local memory.
pub const LGKMCNT: Class = Class(5);
/// The class of bulk loads, which are in no group.
pub const BULK_LOAD: Class = Class(6);
/// The class of a ring's copies through the generic proxy, whose completion a barrier signals.
pub const RING_COPY: Class = Class(7);
/// The class of loads of tensor memory, which `wait_ld` waits for.
pub const TENSOR_LOAD: Class = Class(8);
/// The class of stores to tensor memory, which `wait_st` waits for.
pub const TENSOR_STORE: Class = Class(9);
/// The number of classes with commit groups, or of copies.
pub(super) const CLASSES: usize = 10;
/// The class of commits of operations on tensor memory, which arrive at barriers. This and the following ones are in no group.
pub const TENSOR_COMMIT: Class = Class(10);
/// The class of copies to tensor memory.
pub const TENSOR_COPY: Class = Class(11);
/// The class of shifts in tensor memory.
pub const TENSOR_SHIFT: Class = Class(12);
/// The first class of MMAs in tensor memory. MMAs that are executed in order have a class of their own.
pub const TENSOR_MMA: Class = Class(13);

/// The largest size of shared memory that is modelled, in bytes: more than any target has.
const MAX_SHARED: u64 = 1 << 20;

/// A ring of the kernel.
#[derive(Debug)]
pub(super) struct Ring {
    pub(super) slots: u64,
    /// The address of its first byte in shared memory.
    pub(super) base: u64,
    /// The distance from one slot to the next, in bytes.
    pub(super) stride: u64,
    /// The offset of each field in its slot, and its size, in bytes.
    pub(super) fields: Vec<(u64, u64)>,
    /// Whether it is a staging ring: it is written by a role and stored, not filled by copies and read.
    pub(super) staging: bool,
    /// Whether its copies go through the async proxy.
    pub(super) bulk: bool,
    /// The agents that read it, by their numbers in a program.
    pub(super) readers: Vec<usize>,
    /// The agents that fill it, by their numbers in a program.
    pub(super) fillers: Vec<usize>,
}

/// Barriers that the kernel allocates itself, with `alloc`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alloc {
    pub(super) value: Value,
    pub(super) op: OpId,
    pub(super) n: u32,
}

/// The warps that execute the same code, and the index of one of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct WarpSet {
    pub(super) index: usize,
    pub(super) warps: u32,
    pub(super) lanes: u32,
    pub(super) role: Option<usize>,
}

/// The facts known about a kernel.
#[derive(Debug)]
pub(super) struct Plan<'k> {
    pub(super) kernel: &'k Kernel,
    /// The operation at which roles are specialized.
    pub(super) roles_op: Option<OpId>,
    pub(super) rings: Vec<Ring>,
    pub(super) allocs: Vec<Alloc>,
    /// The address of the words of the rings' barriers, two for each slot.
    pub(super) words: u64,
    /// The size of the shared memory in use, in bytes.
    pub(super) shared: u64,
    /// For each of `allocs`, the agents that arrive there, by their numbers in a program.
    pub(super) arrivers: Vec<Vec<usize>>,
    /// For each parameter: whether it is accessed both by bulk stores that do not state which elements they write and otherwise; and
    /// whether several roles issue such stores.
    pub(super) mixed: Vec<bool>,
    pub(super) stored_by_several: Vec<bool>,
    /// Whether the kernel has MMAs of warpgroups that read registers.
    pub(super) warpgroups: bool,
    /// The roles of a laid-out kernel that are executed by one thread.
    pub(super) one_thread: Vec<usize>,
    /// The MMAs in tensor memory that are executed in order.
    pub(super) mmas: Vec<MmaUnit>,
    /// Whether the kernel uses tensor memory.
    pub(super) tensor_memory: bool,
    /// For each layout of a laid-out kernel and each warp, the elements that the warp holds.
    layouts: Vec<Vec<Vec<Part>>>,
}

impl<'k> Plan<'k> {
    /// Determines the facts about a kernel.
    ///
    /// # Errors
    /// A finding, if a declaration is invalid.
    pub(super) fn of(kernel: &'k Kernel) -> Result<Plan<'k>, Box<Found>> {
        let roles_op = roles(kernel)?;
        let mut plan = Plan {
            kernel,
            roles_op,
            rings: Vec::new(),
            allocs: Vec::new(),
            words: 0,
            shared: 0,
            arrivers: Vec::new(),
            mixed: Vec::new(),
            stored_by_several: Vec::new(),
            warpgroups: kernel.ops.iter().any(|op| op.kind == OpKind::Nv(NvOp::Wgmma) && !op.results.is_empty()),
            one_thread: Vec::new(),
            mmas: tcgen05::units(kernel),
            tensor_memory: tcgen05::is_used(kernel),
            layouts: kernel.laid_out.as_deref().map(|l| l.layouts.iter().map(parts_of).collect()).unwrap_or_default(),
        };
        if plan.mmas.len() > usize::from(u8::MAX - TENSOR_MMA.0) {
            return Err(Found::not_modelled("more MMAs in tensor memory than can be told apart"));
        }
        plan.shared = plan.regions()?;
        if kernel.laid_out.is_some() {
            let roles = plan.roles_op.map_or(&[][..], |id| &kernel.op(id).regions);
            let of_one = |(_, block): &(usize, &Block)| one_thread::executes(kernel, **block, false);
            plan.one_thread = roles.iter().enumerate().filter(of_one).map(|(role, _)| role).collect();
        }
        for (i, pipe) in kernel.pipes.iter().enumerate() {
            let ring = plan.ring(i, pipe)?;
            plan.shared = ring.base + ring.stride * ring.slots;
            plan.rings.push(ring);
        }
        let rings = kernel.pipes.iter().filter(|p| p.space == PipeSpace::Shared);
        let bytes = rings.fold(0u64, |sum, p| sum.saturating_add(p.bytes().saturating_mul(p.slots.into())));
        if bytes > SHARED_BYTES {
            return Err(Found::new(
                Kind::Declaration,
                format!("the rings take {bytes} bytes of shared memory: a program has at most {SHARED_BYTES}"),
            ));
        }
        plan.words = plan.shared.next_multiple_of(8);
        plan.shared = plan.words + 16 * plan.rings.iter().map(|r| r.slots).sum::<u64>();
        if plan.shared > MAX_SHARED {
            return Err(Found::new(
                Kind::Declaration,
                format!("{} bytes of shared memory: no target has that much", plan.shared),
            ));
        }
        plan.check_pipes()?;
        plan.arrivers = plan.allocs.iter().map(|a| plan.who(|k, op| arrives(k, op, a.value))).collect();
        (plan.mixed, plan.stored_by_several) = (0..kernel.sig.params.len()).map(|i| plan.stores_in_bulk(i)).unzip();
        Ok(plan)
    }

    /// Whether a tensor is accessed both by bulk stores without a tile and otherwise, and whether several roles store it so.
    fn stores_in_bulk(&self, param: usize) -> (bool, bool) {
        let of = |k: &Kernel, op: &Op| op.args.first().is_some_and(|v| param_of(k, *v) == Some(param));
        // Bulk stores of tiles state which elements they write, and so do not count here.
        let bulk = |op: &Op| {
            let of_bytes = op.args.first().is_some_and(|v| matches!(self.kernel.ty(*v), Ty::Tensor(..)));
            matches!(op.kind, OpKind::Nv(NvOp::BulkStore { .. })) && of_bytes
        };
        let others =
            self.who(|k, op| of(k, op) && !bulk(op) && !matches!(op.kind.effect(), Effect::Pure | Effect::Control));
        let bulk = self.who(|k, op| bulk(op) && of(k, op));
        (!bulk.is_empty() && !others.is_empty(), bulk.len() > 1)
    }

    /// The warps that execute the same code as an agent, with the agent's index among them, if the kernel is laid out.
    pub(super) fn warp_set(&self, local: usize, in_role: bool) -> Option<WarpSet> {
        let laid = self.kernel.laid_out.as_deref()?;
        let warp = local.checked_sub(1)?;
        let lanes = laid.lanes;
        if !in_role {
            return Some(WarpSet { index: warp, warps: laid.warps, lanes, role: None });
        }
        let role = self.role_of(local)?;
        let before: usize = self.kernel.roles[..role].iter().map(|r| r.warps as usize).sum();
        Some(WarpSet { index: warp - before, warps: self.kernel.roles[role].warps, lanes, role: Some(role) })
    }

    /// The elements of a tile that a warp holds.
    pub(super) fn parts(&self, kernel: &Kernel, value: Value, warp: usize) -> Option<&[Part]> {
        let titan_core::ir::Place::Registers(id) = kernel.value(value).place else { return None };
        let warps = self.layouts.get(id.index())?;
        warps.get(warp % warps.len().max(1)).map(Vec::as_slice)
    }

    /// The role of an agent, by its number in its program.
    pub(super) fn role_of(&self, local: usize) -> Option<usize> {
        let number = local.checked_sub(1)?;
        if self.kernel.laid_out.is_none() {
            return Some(number).filter(|n| *n < self.kernel.roles.len());
        }
        let mut end = 0;
        self.kernel.roles.iter().position(|r| {
            end += r.warps as usize;
            number < end
        })
    }

    /// The number of agents of a program: its own thread and its roles, or its own thread and its warps if it is laid out.
    pub(super) fn agents(&self) -> usize {
        if let Some(laid) = self.kernel.laid_out.as_deref() {
            return 1 + laid.warps as usize;
        }
        1 + if self.roles_op.is_some() { self.kernel.roles.len() } else { 0 }
    }

    /// The block of one of the agents of a program.
    pub(super) fn block_of(&self, local: usize) -> Option<Block> {
        match local.checked_sub(1) {
            None => Some(self.kernel.body),
            Some(_) => match (self.roles_op, self.role_of(local)) {
                (Some(op), Some(role)) => self.kernel.op(op).regions.get(role).copied(),
                (_, _) => Some(self.kernel.body),
            },
        }
    }

    /// The agents of a program that have an operation for which `holds` is true. A program with roles is counted by its roles.
    pub(super) fn who(&self, holds: impl Fn(&Kernel, &Op) -> bool) -> Vec<usize> {
        let has = |block: Block| {
            let mut found = false;
            self.kernel.walk_block(block, &mut |_, op| found |= holds(self.kernel, op));
            found
        };
        let roles: Vec<usize> = (1..self.agents()).filter(|i| self.block_of(*i).is_some_and(has)).collect();
        if roles.is_empty() && has(self.kernel.body) { vec![0] } else { roles }
    }

    /// The end of the last region in shared memory; collects the barriers on the way.
    fn regions(&mut self) -> Result<u64, Box<Found>> {
        let (mut end, mut allocs, mut bad) = (0, Vec::new(), None);
        self.kernel.walk(&mut |id, op| match op.kind {
            OpKind::Region(RegionOp::Place { offset, bytes, parts }) => {
                end = end.max(u64::from(offset) + u64::from(bytes));
                if parts == 0 || bytes == 0 || bytes % parts != 0 {
                    bad = Some(format!("a region of {bytes} bytes has no {parts} equal parts"));
                }
            }
            OpKind::Nv(NvOp::MbarrierAlloc { n, .. }) => match op.results.first() {
                Some(value) if n <= 1024 => allocs.push(Alloc { value: *value, op: id, n }),
                _ => bad = Some(format!("{n} barriers at once")),
            },
            _ => {}
        });
        self.allocs = allocs;
        match bad {
            Some(bad) => Err(Found::new(Kind::Declaration, bad)),
            None if end > SHARED_BYTES => Err(Found::new(
                Kind::Declaration,
                format!("a region ends at byte {end}: a program has {SHARED_BYTES} bytes of shared memory"),
            )),
            None => Ok(end.next_multiple_of(128)),
        }
    }

    fn ring(&self, index: usize, pipe: &PipeDecl) -> Result<Ring, Box<Found>> {
        let name = self.kernel.pipe_name(Pipe::new(index));
        if pipe.slots == 0 || pipe.slots > PipeDecl::MAX_SLOTS || pipe.fields.is_empty() {
            return Err(Found::new(
                Kind::Declaration,
                format!("`{name}` has {} slots of {} tiles", pipe.slots, pipe.fields.len()),
            ));
        }
        let mut at = 0u64;
        let fields = pipe.fields.iter().map(|field| {
            let start = at.next_multiple_of(128);
            at = start + field.bytes();
            (start, field.bytes())
        });
        let (fields, base) = (fields.collect(), self.shared.next_multiple_of(128));
        // In a barrier program, the memory of a ring is a region, so the ring itself occupies no bytes.
        let stride = if self.kernel.laid_out.is_some() { 0 } else { at.next_multiple_of(128) };
        let names = |op: &Op, wanted: fn(&TtgOp) -> Option<Pipe>| matches!(&op.kind, OpKind::Ttg(t) if wanted(t) == Some(Pipe::new(index)));
        let token = |k: &Kernel, op: &Op| {
            op.args.first().is_some_and(|a| matches!(k.ty(*a), Ty::Token(_, p) if p.index() == index))
        };
        let writes = self.who(|k, op| op.kind == OpKind::Ttg(TtgOp::Write) && token(k, op));
        let bulk = self.who(|k, op| {
            matches!(op.kind, OpKind::Ttg(TtgOp::AsyncProduce { proxy: Proxy::Async, .. })) && token(k, op)
        });
        Ok(Ring {
            slots: pipe.slots.into(),
            base,
            stride,
            fields,
            staging: !writes.is_empty(),
            bulk: !bulk.is_empty(),
            readers: self.who(|_, op| {
                names(op, |t| if let TtgOp::Ready(p) | TtgOp::Claim(Claim::Next, p) = t { Some(*p) } else { None })
            }),
            fillers: self.who(|_, op| {
                names(
                    op,
                    |t| if let TtgOp::Acquire(p) | TtgOp::Claim(Claim::Acquired, p) = t { Some(*p) } else { None },
                )
            }),
        })
    }

    /// Checks that every ring that an operation or a type refers to exists.
    fn check_pipes(&self) -> Result<(), Box<Found>> {
        let mut bad = None;
        self.kernel.walk(&mut |_, op| {
            let named = match &op.kind {
                OpKind::Ttg(TtgOp::Acquire(p) | TtgOp::Ready(p) | TtgOp::Claim(_, p)) => Some(*p),
                _ => None,
            };
            bad = bad.or(named.filter(|p| p.index() >= self.rings.len()));
        });
        match bad {
            Some(pipe) => Err(Found::new(Kind::Declaration, format!("there is no ring {}", pipe.index()))),
            None => Ok(()),
        }
    }

    /// The ring and the slot in which a byte of shared memory lies.
    pub(super) fn ring_at(&self, byte: u64) -> Option<(usize, u64)> {
        let holds = |r: &Ring| byte >= r.base && byte < r.base + r.stride * r.slots;
        let i = self.rings.iter().position(holds)?;
        let ring = self.rings.get(i)?;
        Some((i, (byte - ring.base) / ring.stride.max(1)))
    }

    /// The user's name of the smallest region that contains these bytes, and the index of its part.
    pub(super) fn region_at(&self, lo: u64, hi: u64) -> Option<(String, Option<u64>)> {
        let mut best: Option<(u64, String, Option<u64>)> = None;
        self.kernel.walk(&mut |_, op| {
            let OpKind::Region(RegionOp::Place { offset, bytes, parts }) = op.kind else { return };
            let (start, bytes, parts) = (u64::from(offset), u64::from(bytes), u64::from(parts).max(1));
            if start <= lo && hi <= start + bytes && best.as_ref().is_none_or(|b| bytes < b.0) {
                let name = op.results.first().map(|v| self.kernel.display_name(*v)).unwrap_or_default();
                let part = (parts > 1).then(|| (lo - start) / (bytes / parts).max(1));
                best = Some((bytes, name, part));
            }
        });
        best.map(|(_, name, part)| (name, part))
    }
}

/// The elements that each warp holds in a layout.
fn parts_of(layout: &Layout) -> Vec<Vec<Part>> {
    let is_copy =
        |bits: &[Bit], number: usize| bits.iter().enumerate().any(|(i, b)| *b == Bit::Copy && number >> i & 1 == 1);
    let of_warp = |warp: usize| {
        let mut parts = Vec::new();
        for lane in 0..1 << layout.lane_bits().len() {
            let first = !is_copy(layout.lane_bits(), lane) && !is_copy(layout.warp_bits(), warp);
            parts.extend((0..layout.registers()).map(|r| Part { at: layout.coords(r, lane, warp), first }));
        }
        parts
    };
    (0..1 << layout.warp_bits().len()).map(of_warp).collect()
}

/// The operation at which roles are specialized, of which there is at most one.
fn roles(kernel: &Kernel) -> Result<Option<OpId>, Box<Found>> {
    let is = |id: &OpId| kernel.op(*id).kind == OpKind::Ttg(TtgOp::Roles);
    let top: Vec<OpId> = kernel.block(kernel.body).ops.iter().copied().filter(is).collect();
    let mut all = 0;
    kernel.walk(&mut |_, op| all += usize::from(op.kind == OpKind::Ttg(TtgOp::Roles)));
    if all > 1 || top.len() != all {
        return Err(Found::new(Kind::Declaration, "roles are specialized once, outside of loops and branches"));
    }
    Ok(top.first().copied())
}

/// Whether an operation arrives at the barriers of an `alloc`, itself or by its copies.
fn arrives(kernel: &Kernel, op: &Op, alloc: Value) -> bool {
    let last = |v: Option<&Value>| {
        v.is_some_and(|v| {
            *v == alloc
                || kernel
                    .def_op(*v)
                    .is_some_and(|d| d.kind == OpKind::Nv(NvOp::MbarrierAt) && d.args.first() == Some(&alloc))
        })
    };
    match op.kind {
        OpKind::Nv(
            NvOp::Arrive { .. }
            | NvOp::ArriveCluster { .. }
            | NvOp::ArriveExpectTx { .. }
            | NvOp::CpAsyncArrive { .. }
            | NvOp::BulkLoad { .. },
        ) => last(op.args.last()),
        _ => false,
    }
}

/// The parameter that a value is a view of.
pub(super) fn param_of(kernel: &Kernel, value: Value) -> Option<usize> {
    let mut at = value;
    loop {
        if !matches!(kernel.ty(at), Ty::Tensor(..) | Ty::Source(..)) {
            return None;
        }
        match kernel.def_op(at) {
            None => return Some(at.index()),
            Some(op) => at = *op.args.first()?,
        }
    }
}
