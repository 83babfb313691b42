//! The objects to which operations of the barrier dialect refer: barriers and bytes.
//!
//! A value of type barrier or region determines its object statically, except for an index. Barriers of one `alloc` that are selected by
//! constants only are separate objects; if one is selected in any other way, all of them form an array that is used in turn, like the slots
//! of a ring. The same holds for regions. Only the elements of an array that some index can select count: `t % 2` uses two of four. An
//! array with indices of the form `n − 1 − t % n` is used backwards, and is renumbered.
//!
//! An output of bulk stores is an object too, tracked as a whole, and so are the columns of each allocation of tensor memory.

use super::tensor::Units;
use crate::analysis::number::root;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::traffic::{On, traffic};
use crate::ir::{
    AmdOp, BarrierTy, BinOp, Block, Def, Kernel, NvOp, Op, OpId, OpKind, RegionOp, Stated, Tcgen05Op, Ty, Value,
};
use crate::verify::roles::threads;

/// The kind of a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) enum Kind {
    /// An mbarrier in shared memory.
    Mbarrier,
    /// A named barrier (`bar.sync`).
    Named,
    /// The cluster barrier, or the barrier of all waves.
    Everybody,
}

/// A barrier, or an array of barriers that are used in turn.
#[derive(Clone, Debug)]
pub(in crate::verify) struct Barrier {
    /// The name in messages, which includes quotes if it is the user's.
    pub(in crate::verify) name: String,
    pub(in crate::verify) kind: Kind,
    /// The operation that allocates it, or refers to it first.
    pub(in crate::verify) op: OpId,
    /// The number of elements that are used in turn.
    pub(in crate::verify) n: i64,
    /// The number of all elements, including unused ones.
    pub(in crate::verify) all: i64,
    /// The arrival count of a phase.
    pub(in crate::verify) count: u32,
}

/// Where a memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) enum Place {
    /// A byte range in shared memory.
    Shared(u64, u64),
    /// Columns of tensor memory that one operation allocates.
    Tensor,
    /// An output.
    Output,
}

/// Bytes of shared memory, or equal parts of them that are used in turn; or columns of tensor memory; or an output.
#[derive(Clone, Debug)]
pub(in crate::verify) struct Memory {
    pub(in crate::verify) name: String,
    pub(in crate::verify) n: i64,
    /// The number of all parts, including unused ones.
    pub(in crate::verify) all: i64,
    pub(in crate::verify) place: Place,
}

impl Memory {
    /// The bytes of one part.
    pub(in crate::verify) fn part(&self) -> u64 {
        let parts = u64::try_from(self.n).unwrap_or(1).max(1);
        if let Place::Shared(first, end) = self.place { (end - first) / parts } else { u64::MAX }
    }

    pub(in crate::verify) fn overlaps(&self, other: &Memory) -> bool {
        match (self.place, other.place) {
            (Place::Shared(first, end), Place::Shared(start, last)) => first < last && start < end,
            (Place::Shared(..) | Place::Tensor | Place::Output, _) => false,
        }
    }
}

/// An object, with the index of the element.
#[derive(Clone, Copy, Debug)]
pub(in crate::verify) struct Named {
    pub(in crate::verify) object: usize,
    pub(in crate::verify) index: Option<Value>,
    /// Whether the index counts down: it is `n − 1` minus the index of an array that is used in ascending order.
    pub(in crate::verify) backwards: bool,
}

impl Named {
    /// An object without an index.
    pub(in crate::verify) const fn only(object: usize) -> Named {
        Named { object, index: None, backwards: false }
    }
}

/// All objects of a kernel.
#[derive(Clone, Debug, Default)]
pub(in crate::verify) struct Objects {
    pub(in crate::verify) barriers: Vec<Barrier>,
    pub(in crate::verify) memories: Vec<Memory>,
    barrier_of: SortedMap<Value, Named>,
    memory_of: SortedMap<Value, Named>,
    named: SortedMap<u8, usize>,
    everybody: SortedMap<bool, usize>,
    /// The barriers of an `alloc`.
    of_alloc: SortedMap<Value, Vec<usize>>,
    /// The object of each parameter that bulk stores write.
    outputs: SortedMap<usize, usize>,
    /// Barriers that some operation invalidates.
    pub(in crate::verify) mortal: SortedSet<usize>,
    /// Pairs of bulk stores that write different elements, if none of their coordinates overflows `i32`.
    pub(in crate::verify) apart: SortedSet<(OpId, OpId)>,
    /// The operations on tensor memory, by the order in which they are executed.
    pub(in crate::verify) units: Units,
}

impl Objects {
    pub(in crate::verify) fn new(kernel: &Kernel) -> Objects {
        let mut all = Objects { apart: super::outputs::apart(kernel), units: Units::new(kernel), ..Objects::default() };
        let mut counts: SortedMap<Value, u32> = SortedMap::new();
        kernel.walk(&mut |_, op| {
            if let (OpKind::Nv(NvOp::MbarrierInit { count }), [alloc]) = (&op.kind, &op.args[..]) {
                // Rule 48 asks for exactly one initialisation; here only a number is needed.
                counts.entry(*alloc).or_insert(*count);
            }
        });
        kernel.walk(&mut |id, op| match (&op.kind, &op.results[..]) {
            (OpKind::Nv(NvOp::MbarrierAlloc { n, .. }), [alloc]) => {
                all.barriers_of(kernel, (id, *alloc), i64::from(*n), counts.get(alloc).copied().unwrap_or(1));
            }
            (OpKind::Region(RegionOp::Place { offset, bytes, parts }), [region]) => {
                all.memories_of(kernel, *region, (u64::from(*offset), u64::from(*bytes)), i64::from(*parts));
            }
            (
                OpKind::Nv(NvOp::BarrierSync { id: number, threads } | NvOp::BarrierArrive { id: number, threads }),
                _,
            ) => {
                all.named_barrier(id, *number, *threads);
            }
            (OpKind::Nv(NvOp::ClusterArrive | NvOp::ClusterWait), _) => all.everybody(kernel, id, true),
            (OpKind::Amd(AmdOp::Barrier), _) => all.everybody(kernel, id, false),
            (OpKind::Nv(NvOp::BulkStore { .. }), _) => all.output_of(kernel, op),
            (OpKind::Nv(NvOp::Tcgen05(Tcgen05Op::Alloc { .. })), [columns]) => all.columns_of(kernel, *columns),
            (_, _) => {}
        });
        kernel.walk(&mut |_, op| {
            if let (OpKind::Nv(NvOp::MbarrierInval), [alloc]) = (&op.kind, &op.args[..]) {
                let own = all.of_alloc(*alloc).to_vec();
                all.mortal.extend(own);
            }
        });
        all
    }

    pub(in crate::verify) fn is_empty(&self) -> bool {
        self.barriers.is_empty() && self.memories.is_empty()
    }

    /// The barrier to which a value refers; `None` for a whole array.
    pub(in crate::verify) fn barrier(&self, value: Value) -> Option<Named> {
        self.barrier_of.get(&value).copied()
    }

    pub(in crate::verify) fn memory(&self, value: Value) -> Option<Named> {
        self.memory_of.get(&value).copied()
    }

    /// The output of bulk stores that an operation accesses.
    pub(in crate::verify) fn output(&self, kernel: &Kernel, op: &Op) -> Option<usize> {
        let touches = || traffic(&op.kind).accesses.into_iter().flatten().any(|a| a.on == On::Tensor);
        if self.outputs.is_empty() || !touches() {
            return None;
        }
        self.outputs.get(&root(kernel, *op.args.first()?)?).copied()
    }

    /// The barriers of an `alloc`.
    pub(in crate::verify) fn of_alloc(&self, value: Value) -> &[usize] {
        self.of_alloc.get(&value).map_or(&[], Vec::as_slice)
    }

    /// The barrier without an mbarrier word at which an operation arrives.
    pub(in crate::verify) fn wordless(&self, kind: &OpKind) -> Option<usize> {
        if let Stated::Named { id, .. } = kind.stated() {
            return self.named.get(&id).copied();
        }
        let cluster = matches!(kind, OpKind::Nv(NvOp::ClusterArrive | NvOp::ClusterWait));
        let waves = matches!(kind, OpKind::Amd(AmdOp::Barrier));
        self.everybody.get(&cluster).copied().filter(|_| cluster || waves)
    }

    /// Whether an operation in a block arrives at a barrier, or transfers bytes that it counts.
    pub(in crate::verify) fn serves(&self, kernel: &Kernel, block: Block, object: usize) -> bool {
        let mut found = false;
        kernel.walk_block(block, &mut |_, op| {
            let waits =
                matches!(op.kind, OpKind::Nv(NvOp::WaitParity | NvOp::MbarrierWait | NvOp::TryWait | NvOp::TestWait));
            found |= !waits && self.names(op).contains(&object);
        });
        found
    }

    /// The barriers to which an operation refers.
    pub(in crate::verify) fn names(&self, op: &Op) -> SortedSet<usize> {
        let picks = op.kind == OpKind::Nv(NvOp::MbarrierAt);
        // Selecting an element of an array is no use of it.
        let own = op.args.iter().filter(|_| !picks).filter_map(|v| self.barrier(*v)).map(|n| n.object);
        own.chain(self.wordless(&op.kind)).collect()
    }

    fn output_of(&mut self, kernel: &Kernel, op: &Op) {
        let Some(param) = op.args.first().and_then(|t| root(kernel, *t)) else { return };
        let name = format!("`{}`", kernel.display_name(kernel.param(param)));
        let memories = &mut self.memories;
        self.outputs.entry(param).or_insert_with(|| {
            memories.push(Memory { name, n: 1, all: 1, place: Place::Output });
            memories.len() - 1
        });
    }

    fn columns_of(&mut self, kernel: &Kernel, columns: Value) {
        let name = format!("`{}`", kernel.display_name(columns));
        self.memories.push(Memory { name, n: 1, all: 1, place: Place::Tensor });
        self.memory_of.insert(columns, Named::only(self.memories.len() - 1));
    }

    fn barriers_of(&mut self, kernel: &Kernel, (op, alloc): (OpId, Value), n: i64, count: u32) {
        let picks = picks(kernel, alloc, |kind| *kind == OpKind::Nv(NvOp::MbarrierAt));
        let name = format!("`{}`", kernel.display_name(alloc));
        let add = |all: &mut Objects, name: String, (used, n): (i64, i64)| {
            all.barriers.push(Barrier { name, kind: Kind::Mbarrier, op, n: used, all: n, count });
            all.of_alloc.entry(alloc).or_default().push(all.barriers.len() - 1);
            all.barriers.len() - 1
        };
        match by_constants(kernel, &picks) {
            // Barriers that only constants select never take turns: each is used by itself, with phases of its own.
            Some(apart) if n > 1 => {
                let mut own: SortedMap<i64, usize> = SortedMap::new();
                for (picked, index) in apart {
                    let object = *own
                        .entry(index)
                        .or_insert_with(|| add(self, format!("{}[{index}]`", name.trim_end_matches('`')), (1, 1)));
                    self.barrier_of.insert(picked, Named::only(object));
                }
            }
            Some(_) | None => {
                // One index that is no constant may be any element, so that all of them are one array, whose times are
                // those of its counter.
                let (used, backwards) = turning(kernel, &picks, n);
                let object = add(self, name, (used, n));
                if n == 1 {
                    self.barrier_of.insert(alloc, Named::only(object));
                }
                for (picked, index) in picks {
                    self.barrier_of.insert(picked, Named { object, index: Some(index), backwards });
                }
            }
        }
    }

    fn memories_of(&mut self, kernel: &Kernel, region: Value, (offset, bytes): (u64, u64), parts: i64) {
        let picks = picks(kernel, region, |kind| *kind == OpKind::Region(RegionOp::At));
        let name = format!("`{}`", kernel.display_name(region));
        let part = bytes / u64::try_from(parts).unwrap_or(1).max(1);
        let add = |all: &mut Objects, name: String, (first, n): (u64, i64), parts: i64| {
            let end = first.saturating_add(part.saturating_mul(u64::try_from(n).unwrap_or(0)));
            all.memories.push(Memory { name, n, all: parts, place: Place::Shared(first, end) });
            all.memories.len() - 1
        };
        let place = Place::Shared(offset, offset + bytes);
        self.memories.push(Memory { name: name.clone(), n: 1, all: 1, place });
        self.memory_of.insert(region, Named::only(self.memories.len() - 1));
        match by_constants(kernel, &picks) {
            Some(apart) => {
                let mut own: SortedMap<i64, usize> = SortedMap::new();
                for (picked, index) in apart {
                    let first = offset.saturating_add(part.saturating_mul(u64::try_from(index).unwrap_or(0)));
                    let object = *own.entry(index).or_insert_with(|| {
                        add(self, format!("{}[{index}]`", name.trim_end_matches('`')), (first, 1), 1)
                    });
                    self.memory_of.insert(picked, Named::only(object));
                }
            }
            None => {
                let (used, backwards) = turning(kernel, &picks, parts);
                // The used elements are the first ones; if the index counts down, all of them are used.
                let object = add(self, name, (offset, used), parts);
                for (picked, index) in picks {
                    self.memory_of.insert(picked, Named { object, index: Some(index), backwards });
                }
            }
        }
    }

    fn named_barrier(&mut self, op: OpId, number: u8, threads: u32) {
        if !self.named.contains_key(&number) {
            self.barriers.push(Barrier {
                name: format!("barrier {number}"),
                kind: Kind::Named,
                op,
                n: 1,
                all: 1,
                count: threads,
            });
            self.named.insert(number, self.barriers.len() - 1);
        }
    }

    fn everybody(&mut self, kernel: &Kernel, op: OpId, cluster: bool) {
        if !self.everybody.contains_key(&cluster) {
            let name = if cluster { "the barrier of the cluster" } else { "the barrier of all waves" };
            let count = u32::try_from(threads(kernel).len()).unwrap_or(u32::MAX);
            self.barriers.push(Barrier { name: name.to_owned(), kind: Kind::Everybody, op, n: 1, all: 1, count });
            self.everybody.insert(cluster, self.barriers.len() - 1);
        }
    }
}

/// The values that select an element of an object, each with its index.
fn picks(kernel: &Kernel, of: Value, at: impl Fn(&OpKind) -> bool) -> Vec<(Value, Value)> {
    let mut found = Vec::new();
    kernel.walk(&mut |_, op| {
        if let (true, [source, index], [result]) = (at(&op.kind), &op.args[..], &op.results[..])
            && *source == of
        {
            found.push((*result, *index));
        }
    });
    found
}

/// The indices, if all of them are constants.
fn by_constants(kernel: &Kernel, picks: &[(Value, Value)]) -> Option<Vec<(Value, i64)>> {
    picks.iter().map(|(picked, index)| Some((*picked, kernel.int_constant(*index)?))).collect()
}

/// The number of elements of an array of `n` that the indices can select as written, and whether they count down.
fn turning(kernel: &Kernel, picks: &[(Value, Value)], n: i64) -> (i64, bool) {
    let counts_down = |index: Value| {
        let sub = kernel.def_op(index).filter(|op| op.kind == OpKind::Binary(BinOp::Sub));
        sub.is_some_and(|op| {
            kernel.int_constant(op.args[0]) == Some(n - 1) && kernel.int_constant(op.args[1]).is_none()
        })
    };
    // With the last element first, all of them are used, whatever the remainder is taken by.
    if picks.iter().any(|(_, index)| counts_down(*index)) {
        return (n, true);
    }
    // `t % 2` of four elements is a ring of two: time t + 2, and not t + 4, uses the slot of time t.
    let reach = picks.iter().map(|(_, index)| end_of(kernel, *index).unwrap_or(n)).max();
    (reach.unwrap_or(n).clamp(1, n), false)
}

/// A constant upper bound (exclusive) of a non-negative index as written: a remainder, a mask, or the counter of a loop with a
/// constant end.
fn end_of(kernel: &Kernel, index: Value) -> Option<i64> {
    let constant = |v: Value| kernel.int_constant(v).filter(|c| *c >= 0);
    if let Some(c) = constant(index) {
        return c.checked_add(1);
    }
    if let Def::BlockArg(block, 0) = kernel.value(index).def {
        let mut end = None;
        kernel.walk(&mut |_, op| {
            if matches!(op.kind, OpKind::For(_)) && op.regions.first() == Some(&block) {
                end = op.args.get(1).and_then(|hi| constant(*hi));
            }
        });
        return end.filter(|hi| *hi > 0);
    }
    let op = kernel.def_op(index)?;
    match (&op.kind, &op.args[..]) {
        (OpKind::Binary(BinOp::Rem), [_, by]) => constant(*by).filter(|by| *by > 0),
        (OpKind::Binary(BinOp::And), [a, b]) => constant(*b).or_else(|| constant(*a))?.checked_add(1),
        (_, _) => None,
    }
}

/// Whether a kernel has operations of these dialects.
pub(in crate::verify) fn any(kernel: &Kernel) -> bool {
    kernel.values.iter().any(|v| matches!(v.ty, Ty::Barrier(BarrierTy::Region | BarrierTy::Mbarrier)))
        || kernel.ops.iter().any(|op| matches!(op.kind, OpKind::Nv(_) | OpKind::Amd(_) | OpKind::Region(_)))
}
