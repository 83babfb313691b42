//! What barrier-level operations name: which barrier, which bytes.
//!
//! A value that names a barrier or region is one by its definition, so what it stands for is known without running anything,
//! but for the index. Barriers of one `alloc` that are picked by constants alone are barriers of their own; if one is picked
//! by anything else, all of them turn together, like the stages of a ring. Regions likewise.

#![expect(clippy::wildcard_enum_match_arm, reason = "only these dialects are named")]

use crate::ir::{AmdOp, Block, Kernel, NvOp, Op, OpId, OpKind, Raw, RegionOp, Ty, Value};
use crate::verify::pipes::threads;
use std::collections::{BTreeMap, BTreeSet};

/// What kind of barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::verify) enum Kind {
    /// In shared memory.
    Mbarrier,
    /// `bar.sync`.
    Named,
    /// That of the cluster, or that of all waves.
    Everybody,
}

/// A barrier, or several that turn together.
#[derive(Clone, Debug)]
pub(in crate::verify) struct Barrier {
    /// In words: the user's name is quoted.
    pub(in crate::verify) name: String,
    pub(in crate::verify) kind: Kind,
    /// Where it is made, or named first.
    pub(in crate::verify) op: OpId,
    /// How many turn together.
    pub(in crate::verify) n: i64,
    /// Arrivals of a phase.
    pub(in crate::verify) count: u32,
}

/// Bytes of shared memory, or equal parts of them that turn together.
#[derive(Clone, Debug)]
pub(in crate::verify) struct Memory {
    pub(in crate::verify) name: String,
    pub(in crate::verify) n: i64,
    /// The first byte and the one after the last.
    pub(in crate::verify) span: (u64, u64),
}

impl Memory {
    /// The bytes of one of the parts that turn together.
    pub(in crate::verify) fn part(&self) -> u64 {
        (self.span.1 - self.span.0) / u64::try_from(self.n).unwrap_or(1).max(1)
    }

    pub(in crate::verify) fn overlaps(&self, other: &Memory) -> bool {
        self.span.0 < other.span.1 && other.span.0 < self.span.1
    }
}

/// An object and which of those that turn together.
#[derive(Clone, Copy, Debug)]
pub(in crate::verify) struct Named {
    pub(in crate::verify) object: usize,
    pub(in crate::verify) index: Option<Value>,
}

/// Everything that a kernel names.
#[derive(Clone, Debug, Default)]
pub(in crate::verify) struct Objects {
    pub(in crate::verify) barriers: Vec<Barrier>,
    pub(in crate::verify) memories: Vec<Memory>,
    barrier_of: BTreeMap<Value, Named>,
    memory_of: BTreeMap<Value, Named>,
    named: BTreeMap<u8, usize>,
    everybody: BTreeMap<bool, usize>,
    /// The barriers of an `alloc`.
    of_alloc: BTreeMap<Value, Vec<usize>>,
    /// Barriers that some operation invalidates.
    pub(in crate::verify) mortal: BTreeSet<usize>,
}

impl Objects {
    pub(in crate::verify) fn new(kernel: &Kernel) -> Objects {
        let mut all = Objects::default();
        let mut counts: BTreeMap<Value, u32> = BTreeMap::new();
        kernel.walk(&mut |_, op| {
            if let (OpKind::Nv(NvOp::MbarrierInit { count }), [alloc]) = (&op.kind, &op.args[..]) {
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

    /// The barrier that a value names; `None` for several at once.
    pub(in crate::verify) fn barrier(&self, value: Value) -> Option<Named> {
        self.barrier_of.get(&value).copied()
    }

    pub(in crate::verify) fn memory(&self, value: Value) -> Option<Named> {
        self.memory_of.get(&value).copied()
    }

    /// The barriers of an `alloc`.
    pub(in crate::verify) fn of_alloc(&self, value: Value) -> &[usize] {
        self.of_alloc.get(&value).map_or(&[], Vec::as_slice)
    }

    /// The barrier to which an operation comes without naming a word of memory.
    pub(in crate::verify) fn meeting(&self, kind: &OpKind) -> Option<usize> {
        match kind {
            OpKind::Nv(NvOp::BarrierSync { id, .. } | NvOp::BarrierArrive { id, .. }) => self.named.get(id).copied(),
            OpKind::Nv(NvOp::ClusterArrive | NvOp::ClusterWait) => self.everybody.get(&true).copied(),
            OpKind::Amd(AmdOp::Barrier) => self.everybody.get(&false).copied(),
            _ => None,
        }
    }

    /// Whether an operation in a block arrives at a barrier, brings bytes to it, or frees a thread that waits there.
    pub(in crate::verify) fn serves(&self, kernel: &Kernel, block: Block, object: usize) -> bool {
        let mut found = false;
        kernel.walk_block(block, &mut |_, op| {
            let waits =
                matches!(op.kind, OpKind::Nv(NvOp::WaitParity | NvOp::MbarrierWait | NvOp::TryWait | NvOp::TestWait));
            found |= !waits && self.names(op).contains(&object);
        });
        found
    }

    /// The barriers that an operation names.
    pub(in crate::verify) fn names(&self, op: &Op) -> BTreeSet<usize> {
        let own = op.args.iter().filter_map(|v| self.barrier(*v)).map(|n| n.object);
        own.chain(self.meeting(&op.kind)).collect()
    }

    fn barriers_of(&mut self, kernel: &Kernel, (op, alloc): (OpId, Value), n: i64, count: u32) {
        let picks = picks(kernel, alloc, |kind| *kind == OpKind::Nv(NvOp::MbarrierAt));
        let name = format!("`{}`", kernel.display_name(alloc));
        let add = |all: &mut Objects, name: String, n: i64| {
            all.barriers.push(Barrier { name, kind: Kind::Mbarrier, op, n, count });
            all.of_alloc.entry(alloc).or_default().push(all.barriers.len() - 1);
            all.barriers.len() - 1
        };
        let apart: Option<Vec<(Value, i64)>> =
            picks.iter().map(|(picked, index)| Some((*picked, kernel.int_constant(*index)?))).collect();
        match apart {
            Some(apart) if n > 1 => {
                let mut own: BTreeMap<i64, usize> = BTreeMap::new();
                for (picked, index) in apart {
                    let object = *own
                        .entry(index)
                        .or_insert_with(|| add(self, format!("{}[{index}]`", name.trim_end_matches('`')), 1));
                    self.barrier_of.insert(picked, Named { object, index: None });
                }
            }
            Some(_) | None => {
                let object = add(self, name, n);
                if n == 1 {
                    self.barrier_of.insert(alloc, Named { object, index: None });
                }
                for (picked, index) in picks {
                    self.barrier_of.insert(picked, Named { object, index: Some(index).filter(|_| n > 1) });
                }
            }
        }
    }

    fn memories_of(&mut self, kernel: &Kernel, region: Value, (offset, bytes): (u64, u64), parts: i64) {
        let picks = picks(kernel, region, |kind| *kind == OpKind::Region(RegionOp::At));
        let name = format!("`{}`", kernel.display_name(region));
        let add = |all: &mut Objects, name: String, n: i64, span: (u64, u64)| {
            all.memories.push(Memory { name, n, span });
            all.memories.len() - 1
        };
        let whole = add(self, name.clone(), 1, (offset, offset + bytes));
        self.memory_of.insert(region, Named { object: whole, index: None });
        let apart: Option<Vec<(Value, i64)>> =
            picks.iter().map(|(picked, index)| Some((*picked, kernel.int_constant(*index)?))).collect();
        match apart {
            Some(apart) => {
                let part = bytes / u64::try_from(parts).unwrap_or(1).max(1);
                let mut own: BTreeMap<i64, usize> = BTreeMap::new();
                for (picked, index) in apart {
                    let first = offset.saturating_add(part.saturating_mul(u64::try_from(index).unwrap_or(0)));
                    let span = (first, first.saturating_add(part));
                    let object = *own
                        .entry(index)
                        .or_insert_with(|| add(self, format!("{}[{index}]`", name.trim_end_matches('`')), 1, span));
                    self.memory_of.insert(picked, Named { object, index: None });
                }
            }
            None => {
                let object = add(self, name, parts, (offset, offset + bytes));
                for (picked, index) in picks {
                    self.memory_of.insert(picked, Named { object, index: Some(index).filter(|_| parts > 1) });
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
                count: threads,
            });
            self.named.insert(number, self.barriers.len() - 1);
        }
    }

    fn everybody(&mut self, kernel: &Kernel, op: OpId, cluster: bool) {
        if !self.everybody.contains_key(&cluster) {
            let name = if cluster { "the barrier of the cluster" } else { "the barrier of all waves" };
            let count = u32::try_from(threads(kernel).len()).unwrap_or(u32::MAX);
            self.barriers.push(Barrier { name: name.to_owned(), kind: Kind::Everybody, op, n: 1, count });
            self.everybody.insert(cluster, self.barriers.len() - 1);
        }
    }
}

/// The values that pick one of what a value names, and their indices.
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

/// Whether a kernel has anything of these dialects.
pub(in crate::verify) fn any(kernel: &Kernel) -> bool {
    kernel.values.iter().any(|v| matches!(v.ty, Ty::Raw(Raw::Region | Raw::Mbarrier)))
        || kernel.ops.iter().any(|op| matches!(op.kind, OpKind::Nv(_) | OpKind::Amd(_) | OpKind::Region(_)))
}
