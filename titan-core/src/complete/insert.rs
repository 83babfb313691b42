//! Inserts commits and waits into a kernel.

use super::walk::{Before, Found, Wait};
use crate::collections::SortedMap;
use crate::ir::{BarrierTy, Def, Kernel, Loc, LocalOp, NvGroup, NvOp, Op, OpId, OpKind, Place, Ty, Value, ValueData};

/// The kernel with these commits and waits. What it waited for by other names is gone.
pub(super) fn insert(kernel: &Kernel, found: &Found) -> Kernel {
    let mut insert = Insert { made: kernel.clone(), numbers: SortedMap::new() };
    // The groups of a class are numbered in program order.
    let mut order = Vec::new();
    kernel.walk(&mut |id, _| order.push(id));
    let mut before = SortedMap::new();
    let mut after = SortedMap::new();
    for id in &order {
        let loc = kernel.op(*id).loc;
        if let Some(Before { commit, waits }) = found.before.get(id) {
            let mut ops = Vec::new();
            if *commit {
                ops.push(insert.commit(NvGroup::CpAsync, loc));
            }
            for (group, Wait { n, read }) in waits {
                let read = *read && *group == NvGroup::BulkStore;
                ops.push(insert.op(NvOp::WaitGroup { group: *group, n: *n, read }, None, loc));
            }
            before.insert(*id, ops);
        }
        if let Some(group) = found.commits.get(id) {
            after.insert(*id, insert.commit(*group, loc));
        }
        if let (Some(n), Some(op)) = (found.products.get(id), insert.made.ops.get_mut(id.index())) {
            op.kind = OpKind::Nv(NvOp::WaitGroup { group: NvGroup::Wgmma, n: *n, read: false });
        }
    }
    let settles = |id: &OpId| matches!(kernel.op(*id).kind, OpKind::Local(LocalOp::Settle { .. }));
    for block in &mut insert.made.blocks {
        let mut ops = Vec::with_capacity(block.ops.len());
        for id in &block.ops {
            ops.extend(before.get(id).into_iter().flatten());
            if !settles(id) {
                ops.push(*id);
            }
            ops.extend(after.get(id));
        }
        block.ops = ops;
    }
    insert.made.canonical()
}

struct Insert {
    made: Kernel,
    /// For each class, the number of groups so far.
    numbers: SortedMap<NvGroup, u32>,
}

impl Insert {
    fn op(&mut self, kind: NvOp, result: Option<Ty>, loc: Loc) -> OpId {
        let id = OpId::new(self.made.ops.len());
        let results = result.into_iter().map(|ty| {
            self.made.values.push(ValueData { ty, name: None, def: Def::Result(id, 0), place: Place::None });
            Value::new(self.made.values.len() - 1)
        });
        let results = results.collect();
        self.made.ops.push(Op { kind: OpKind::Nv(kind), args: Vec::new(), results, regions: Vec::new(), loc });
        id
    }

    fn commit(&mut self, group: NvGroup, loc: Loc) -> OpId {
        let number = self.numbers.entry(group).or_insert(0);
        let n = *number;
        *number += 1;
        self.op(NvOp::Commit { group, n }, Some(Ty::Barrier(BarrierTy::Vtok(group.class(), n))), loc)
    }
}
