//! A proof that a barrier between the warps of a program orders nothing: the threads access other slots of a ring after it than before it.
//!
//! Without the barrier, accesses since the one before it and accesses up to the one after it are no longer ordered. So no two of them may
//! conflict. They are collected on every path, with those in both arms of a branch; where a path is not understood, there is no proof. They do
//! not conflict if they are to different tensors, or to a slot and to the one that follows it:
//!
//! ```text
//! %last = for .. carry(%slot = 0)
//!     ttg.nv.barrier.sync {id = 0, ..}
//!     .. ttg.local.store to the slot %slot
//!     continue %slot + 1 == 2 ? 0 : %slot + 1
//! ttg.nv.barrier.sync {id = 0, ..}              orders nothing: the store to the slot %slot is that of the last iteration
//! .. ttg.local.store to the slot %last
//! ```
//!
//! Deliberately absent: programs with roles, copies or mbarriers, in which a barrier is a part of longer orders.

use super::chosen::each_kernel;
use super::gpu::machine;
use titan_core::analysis::uses::Tree;
use titan_core::driver::barrier_program;
use titan_core::ir::{
    BinOp, Block, Def, Effect, Kernel, LocalOp, NvGroup, NvOp, Op, OpId, OpKind, Pred, RegionOp, TtgOp, Value,
};
use titan_core::plan::plan;

/// What threads access.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Tensor(Value),
    /// A slot of a ring, by its region and its index.
    Slot(Value, Value),
}

/// Whether no access on one side of a barrier conflicts with one on the other side.
pub(super) fn orders_nothing(program: &Kernel, id: OpId) -> bool {
    let paths = Paths { program, tree: Tree::new(program) };
    let sides = paths.before(id).zip(paths.after(id));
    paths.is_simple()
        && sides.is_some_and(|(before, after)| before.iter().all(|b| after.iter().all(|a| paths.apart(*b, *a))))
}

struct Paths<'k> {
    program: &'k Kernel,
    tree: Tree,
}

fn is_barrier(op: &Op) -> bool {
    matches!(op.kind, OpKind::Nv(NvOp::BarrierSync { .. }))
}

impl Paths<'_> {
    /// Whether the threads of one program are ordered by barriers alone, and no loop or program ends in its middle.
    fn is_simple(&self) -> bool {
        let known = |kind: &OpKind| match kind {
            OpKind::Nv(nv) => {
                matches!(nv, NvOp::BarrierSync { .. })
                    || matches!(nv, NvOp::Commit { group, .. } | NvOp::WaitGroup { group, .. } if *group == NvGroup::CpAsync)
            }
            OpKind::Local(local) => !matches!(local, LocalOp::Copy { .. }),
            OpKind::Break(_) | OpKind::Loop => false,
            OpKind::Continue(depth) => *depth == 0,
            _ => true,
        };
        let mut simple = self.program.roles.is_empty();
        self.program.walk(&mut |id, op| {
            let ends_loop = self.tree.parent(id).is_some_and(|of| matches!(self.program.op(of).kind, OpKind::For(_)));
            let ends_program = self.tree.parent(id).is_none();
            simple &= known(&op.kind)
                && (ends_loop || !matches!(op.kind, OpKind::Continue(_)))
                && (ends_program || op.kind != OpKind::Return);
        });
        simple
    }

    /// What is accessed between the barrier before this one, or the beginning of the program, and this one.
    fn before(&self, id: OpId) -> Option<Vec<Access>> {
        let (mut at, mut found) = (id, Vec::new());
        loop {
            let ops = &self.program.block(self.tree.block_of(at)?).ops;
            for other in ops.iter().take_while(|op| **op != at).copied().collect::<Vec<_>>().into_iter().rev() {
                let op = self.program.op(other);
                if is_barrier(op) {
                    return Some(found);
                }
                found.extend(if op.kind.is_loop() { self.of_last_iteration(op)? } else { self.all_of(other)? });
            }
            match self.tree.parent(at) {
                None => return Some(found),
                Some(around) if self.program.op(around).kind == OpKind::If => at = around,
                Some(_) => return None,
            }
        }
    }

    /// What is accessed between this barrier and the one after it, or the end of the program.
    fn after(&self, id: OpId) -> Option<Vec<Access>> {
        let (mut at, mut found) = (id, Vec::new());
        loop {
            let ops = &self.program.block(self.tree.block_of(at)?).ops;
            for other in ops.iter().skip_while(|op| **op != at).skip(1) {
                let op = self.program.op(*other);
                if is_barrier(op) {
                    return Some(found);
                }
                found.extend(if op.kind.is_loop() { None } else { self.all_of(*other) }?);
            }
            match self.tree.parent(at) {
                None => return Some(found),
                Some(around) if self.program.op(around).kind == OpKind::If => at = around,
                Some(_) => return None,
            }
        }
    }

    /// What the last iteration of a loop accesses after the last barrier of its body.
    fn of_last_iteration(&self, looped: &Op) -> Option<Vec<Access>> {
        let ops = &self.program.block(*looped.regions.first()?).ops;
        let barrier = ops.iter().rposition(|op| is_barrier(self.program.op(*op)))?;
        let mut found = Vec::new();
        for op in &ops[barrier + 1..] {
            found.extend(if self.program.op(*op).kind.is_loop() { None } else { self.all_of(*op) }?);
        }
        Some(found)
    }

    /// What an operation accesses, in both arms if it is a branch; `None` if that is not known.
    fn all_of(&self, id: OpId) -> Option<Vec<Access>> {
        let op = self.program.op(id);
        if op.kind == OpKind::If {
            let ops = op.regions.iter().flat_map(|arm| &self.program.block(*arm).ops);
            let each = ops.map(|op| if self.program.op(*op).kind.is_loop() { None } else { self.all_of(*op) });
            return Some(each.collect::<Option<Vec<_>>>()?.concat());
        }
        let slot = |tile: usize| {
            let part = self
                .program
                .def_op(*op.args.get(tile)?)
                .filter(|op| matches!(op.kind, OpKind::Region(RegionOp::Tile { .. })))?;
            let slot = self.program.def_op(part.args[0]).filter(|op| op.kind == OpKind::Region(RegionOp::At))?;
            Some(vec![Access::Slot(slot.args[0], slot.args[1])])
        };
        match op.kind {
            OpKind::Get | OpKind::Set => {
                let tensor = op.args[0];
                matches!(self.program.value(tensor).def, Def::Param(_)).then(|| vec![Access::Tensor(tensor)])
            }
            OpKind::Local(LocalOp::Load) => slot(0),
            OpKind::Local(LocalOp::Store) => slot(1),
            OpKind::Ttg(TtgOp::Claim(..)) | OpKind::Nv(_) => Some(Vec::new()),
            _ if op.regions.is_empty() && matches!(op.kind.effect(), Effect::Pure | Effect::Control) => {
                Some(Vec::new())
            }
            _ => None,
        }
    }

    /// Whether an access and a later one certainly are to different memory.
    fn apart(&self, before: Access, after: Access) -> bool {
        match (before, after) {
            (Access::Tensor(before), Access::Tensor(after)) => before != after,
            (Access::Slot(ring, before), Access::Slot(other, after)) => ring == other && self.follows(before, after),
            (Access::Tensor(_), Access::Slot(..)) | (Access::Slot(..), Access::Tensor(_)) => true,
        }
    }

    /// Whether `after` is the result of a loop that carries `slot`, and each iteration passes on the slot after it.
    fn follows(&self, slot: Value, after: Value) -> bool {
        let (Def::BlockArg(body, at), Def::Result(looped, n)) =
            (self.program.value(slot).def, self.program.value(after).def)
        else {
            return false;
        };
        let passed = |body: Block| {
            let end = self.program.op(*self.program.block(body).ops.last()?);
            end.args.get(n).copied().filter(|_| matches!(end.kind, OpKind::Continue(0)))
        };
        let is_carried = matches!(self.program.op(looped).kind, OpKind::For(_)) && at == n + 1;
        is_carried && self.tree.owner(body) == Some(looped) && passed(body).is_some_and(|next| self.is_next(slot, next))
    }

    /// Whether a value is the slot after this one, `slot + 1 == slots ? 0 : slot + 1` for at least two slots: by itself, or in each arm of the
    /// branch that yields it.
    fn is_next(&self, slot: Value, next: Value) -> bool {
        let number = |value: Value| self.program.int_constant(value);
        let Def::Result(id, n) = self.program.value(next).def else { return false };
        let op = self.program.op(id);
        if op.kind == OpKind::If {
            let yielded = |arm: &Block| {
                let end = self.program.op(*self.program.block(*arm).ops.last()?);
                end.args.get(n).copied().filter(|_| end.kind == OpKind::Yield)
            };
            return op.regions.iter().all(|arm| yielded(arm).is_some_and(|value| self.is_next(slot, value)));
        }
        let [wraps, first, sum] = op.args[..] else { return false };
        let (Some(compared), Some(added)) = (self.program.def_op(wraps), self.program.def_op(sum)) else {
            return false;
        };
        op.kind == OpKind::Select
            && number(first) == Some(0)
            && compared.kind == OpKind::Cmp(Pred::Eq)
            && compared.args[0] == sum
            && number(compared.args[1]).is_some_and(|slots| slots >= 2)
            && added.kind == OpKind::Binary(BinOp::Add)
            && added.args[0] == slot
            && number(added.args[1]) == Some(1)
    }
}

/// Of two barriers of a program, the one before the stores of an iteration orders them, and the one after the loop orders nothing.
#[test]
fn a_barrier_before_the_next_slot_alone_orders_nothing() {
    let mut found = Vec::new();
    each_kernel(&["verify"], &mut |name, kernel| {
        if name == "pipe_time_after_branches @passes" {
            let plan = plan(kernel, &titan_nv::target(machine()), true);
            let program = barrier_program(kernel, &plan).expect("a program");
            program.walk(&mut |id, op| found.extend(is_barrier(op).then(|| orders_nothing(&program, id))));
        }
    });
    assert_eq!(found, [false, true]);
}
