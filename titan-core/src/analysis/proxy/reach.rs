//! What may come after what: positions in the text of the roles, and how arrivals lead from one role to another.

#![expect(clippy::wildcard_enum_match_arm, reason = "only operations that meet others are named")]

use crate::ir::traffic::{Order, traffic};
use crate::ir::{AmdOp, Block, Def, Kernel, NvOp, OpId, OpKind, TtgOp, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The blocks that run at once, the part before the roles last if there are roles.
pub(super) fn threads(kernel: &Kernel) -> Vec<Block> {
    let top = &kernel.block(kernel.body).ops;
    let roles = top.iter().find(|id| kernel.op(**id).kind == OpKind::Ttg(TtgOp::Roles));
    match roles {
        Some(op) => kernel.op(*op).regions.iter().copied().chain([kernel.body]).collect(),
        None => vec![kernel.body],
    }
}

/// Where roles meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meet {
    /// An mbarrier of an `alloc`; `None` if it is not known which.
    Word(Option<Value>, Option<i64>),
    Named(u8),
    Cluster,
    Waves,
}

impl Meet {
    pub(super) fn is(self, other: Meet) -> bool {
        match (self, other) {
            (Meet::Word(a, i), Meet::Word(b, j)) => {
                a.zip(b).is_none_or(|(a, b)| a == b && i.zip(j).is_none_or(|(i, j)| i == j))
            }
            _ => self == other,
        }
    }
}

/// Where an operation arrives or waits.
pub(super) fn meet(kernel: &Kernel, id: OpId) -> Option<Meet> {
    let op = kernel.op(id);
    if !matches!(traffic(&op.kind).order, Order::Tells | Order::Learns | Order::Polls | Order::Meets | Order::TellsCopies) {
        return None;
    }
    Some(match &op.kind {
        OpKind::Nv(NvOp::BarrierSync { id, .. } | NvOp::BarrierArrive { id, .. }) => Meet::Named(*id),
        OpKind::Nv(NvOp::ClusterArrive | NvOp::ClusterWait) => Meet::Cluster,
        OpKind::Amd(AmdOp::Barrier) => Meet::Waves,
        _ => {
            let barrier = *op.args.first()?;
            match kernel.def_op(barrier).map(|o| (&o.kind, &o.args[..])) {
                Some((OpKind::Nv(NvOp::MbarrierAlloc { .. }), _)) => Meet::Word(Some(barrier), None),
                Some((OpKind::Nv(NvOp::MbarrierAt), [alloc, index])) => Meet::Word(Some(*alloc), kernel.int_constant(*index)),
                Some(_) | None => Meet::Word(None, None),
            }
        }
    })
}

/// The place of an operation: its role, its number there, and the arms around it, outermost first.
#[derive(Clone, Debug)]
pub(super) struct At {
    pub(super) role: usize,
    number: usize,
    around: Vec<(OpId, usize)>,
}

/// Places of all operations.
pub(super) struct Reach<'k> {
    kernel: &'k Kernel,
    pub(super) at: BTreeMap<OpId, At>,
    owner: BTreeMap<Block, OpId>,
    /// Operations that arrive or wait, and where.
    meets: Vec<(OpId, Meet)>,
    after: BTreeMap<OpId, BTreeSet<(OpId, bool)>>,
}

impl<'k> Reach<'k> {
    pub(super) fn new(kernel: &'k Kernel) -> Reach<'k> {
        let mut reach = Reach { kernel, at: BTreeMap::new(), owner: BTreeMap::new(), meets: Vec::new(), after: BTreeMap::new() };
        for (role, block) in threads(kernel).into_iter().enumerate() {
            let mut number = 0;
            reach.place(block, role, &mut number, &mut Vec::new());
        }
        let order = |r: &Reach<'_>, id: OpId| r.at.get(&id).map(|a| (a.role, a.number));
        let mut meets: Vec<(OpId, Meet)> = reach.at.keys().filter_map(|id| Some((*id, meet(kernel, *id)?))).collect();
        meets.sort_by_key(|(id, _)| order(&reach, *id));
        reach.meets = meets;
        reach
    }

    fn place(&mut self, block: Block, role: usize, number: &mut usize, around: &mut Vec<(OpId, usize)>) {
        for id in &self.kernel.block(block).ops {
            *number += 1;
            self.at.insert(*id, At { role, number: *number, around: around.clone() });
            let op = self.kernel.op(*id);
            if op.kind == OpKind::Ttg(TtgOp::Roles) {
                continue;
            }
            for (arm, region) in op.regions.iter().enumerate() {
                self.owner.insert(*region, *id);
                around.push((*id, arm));
                self.place(*region, role, number, around);
                around.pop();
            }
        }
    }

    /// The order of the text, role by role.
    pub(super) fn position(&self, id: OpId) -> (usize, usize) {
        self.at.get(&id).map_or((usize::MAX, 0), |a| (a.role, a.number))
    }

    /// Whether a value is made anew in each iteration of a loop.
    pub(super) fn made_in(&self, value: Value, looped: OpId) -> bool {
        let around = |id: OpId| self.at.get(&id).is_some_and(|a| a.around.iter().any(|(o, _)| *o == looped));
        match self.kernel.value(value).def {
            Def::Param(_) => false,
            Def::Result(op, _) => around(op),
            Def::BlockArg(block, _) => {
                self.owner.get(&block).is_some_and(|owner| *owner == looped || around(*owner))
            }
        }
    }

    /// Whether `b` may run after `a`, both of one role.
    fn follows(&self, a: OpId, b: OpId) -> bool {
        let (Some(x), Some(y)) = (self.at.get(&a), self.at.get(&b)) else { return true };
        if x.role != y.role {
            return false;
        }
        let shared = x.around.iter().zip(&y.around).take_while(|(p, q)| p == q).count();
        let looped = x.around[..shared].iter().any(|(op, _)| self.kernel.op(*op).kind.is_loop());
        let other_arm = x.around.get(shared).zip(y.around.get(shared)).is_some_and(|((p, _), (q, _))| p == q);
        looped || y.number > x.number && !other_arm
    }

    /// What may touch memory after somebody has learnt of an arrival; `true` for what another program of the cluster does.
    /// Of the arriving role itself only the latter.
    pub(super) fn after(&mut self, arrival: OpId) -> BTreeSet<(OpId, bool)> {
        if let Some(known) = self.after.get(&arrival) {
            return known.clone();
        }
        let found = self.search(arrival);
        self.after.insert(arrival, found.clone());
        found
    }

    fn search(&self, arrival: OpId) -> BTreeSet<(OpId, bool)> {
        let own = self.at.get(&arrival).map(|a| a.role);
        let mut seen: BTreeSet<(OpId, bool)> = BTreeSet::new();
        let mut found: BTreeSet<(OpId, bool)> = BTreeSet::new();
        let mut open = vec![(arrival, false)];
        while let Some((tells, peer)) = open.pop() {
            let Some(word) = meet(self.kernel, tells) else { continue };
            for (wait, at) in &self.meets {
                let learns = matches!(traffic(&self.kernel.op(*wait).kind).order, Order::Learns | Order::Polls | Order::Meets);
                if !learns || !word.is(*at) {
                    continue;
                }
                let role = self.at.get(wait).map(|a| a.role);
                let peers: &[bool] = if word == Meet::Cluster { &[false, true] } else { &[false] };
                for more in peers {
                    let peer = peer || *more;
                    // What comes back to the same role has passed its own fences.
                    if (role != own || peer) && seen.insert((*wait, peer)) {
                        self.spread(*wait, peer, &mut found, &mut open);
                    }
                }
            }
        }
        found
    }

    /// What follows a wait in its role.
    fn spread(&self, wait: OpId, peer: bool, found: &mut BTreeSet<(OpId, bool)>, open: &mut Vec<(OpId, bool)>) {
        for id in self.at.keys().filter(|id| self.follows(wait, **id)) {
            let row = traffic(&self.kernel.op(*id).kind);
            if row.accesses.iter().any(Option::is_some) {
                found.insert((*id, peer));
            }
            if matches!(row.order, Order::Tells | Order::Meets) {
                open.push((*id, peer));
            }
        }
    }
}
