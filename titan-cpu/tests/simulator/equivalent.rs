//! Proofs that a change of a barrier program is no mistake: the program with it does the same. One proof a kind, each of which looks at
//! the program.
//!
//! Deliberately absent: proofs for kinds whose mutants some layer always finds. A mutant that no layer finds and that has no proof here fails
//! the test.

use super::barriers_for_nothing::orders_nothing;
use std::collections::BTreeSet;
use titan_core::analysis::uses::Tree;
use titan_core::ir::{Claim, Kernel, LocalOp, NvGroup, NvOp, Op, OpId, OpKind, TtgOp, Ty, Value};

/// Whether it is proved that a change at this operation changes nothing.
pub(super) fn is_equivalent(kind: &str, program: &Kernel, id: OpId) -> bool {
    let op = program.op(id);
    match kind {
        // Code was generated for the mutant, and the checks of lane IR, which share no code with the verifier, found a barrier on every path
        // between conflicting accesses.
        "a barrier between warps, one later" => matches!(op.kind, OpKind::Nv(NvOp::BarrierSync { .. })),
        "a group is not committed" | "a wait for groups is gone" | "a wait that leaves one more group" => {
            !copies_in_role(program, id)
        }
        "a number compared with another constant" | "a slot that does not wrap" => {
            op.results.iter().all(|value| !is_read(program, *value))
        }
        // The round after the last one: no wait is for it.
        "a round that counts, and not its parity" => !is_read(program, op.results[0]),
        "a barrier between warps is gone" => orders_nothing(program, id),
        "a barrier within a warp is gone" => is_ordered_by_the_role(program, id),
        "a group of bulk stores is not committed" => joins_the_next_group(program, id),
        "a fence of initialised barriers is gone" => is_fenced_again(program, id),
        "a fence of registers is gone" => accumulates_in_flight(program, id),
        "a wait for what bulk stores read, not for what they write" => stores_are_not_read(program),
        "the number of registers is not set" => raises_registers(program, id),
        _ => false,
    }
}

/// Whether the threads that execute an operation start copies by `cp.async`: in its role, or outside all roles.
fn copies_in_role(program: &Kernel, id: OpId) -> bool {
    let tree = Tree::new(program);
    let role = |id: OpId| {
        let mut inside = id;
        for around in tree.around(id) {
            if program.op(around).kind == OpKind::Ttg(TtgOp::Roles) {
                return tree.block_of(inside);
            }
            inside = around;
        }
        None
    };
    let own = role(id);
    let mut found = false;
    program.walk(&mut |other, op| {
        let copies =
            matches!(op.kind, OpKind::Local(LocalOp::Copy { asynchronous: true }) | OpKind::Nv(NvOp::CpAsync { .. }));
        found |= copies && role(other).is_none_or(|block| Some(block) == own);
    });
    found
}

/// Whether an operation with an effect, a condition or a bound depends on a value, also through the values that loops carry.
fn is_read(program: &Kernel, value: Value) -> bool {
    let tree = Tree::new(program);
    let (mut open, mut seen) = (vec![value], BTreeSet::new());
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        for user in tree.users(value) {
            let op = program.op(*user);
            let places = op.args.iter().enumerate().filter(|(_, arg)| **arg == value).map(|(at, _)| at);
            for at in places {
                match passed_on(program, &tree, *user, at) {
                    Some(values) => open.extend(values),
                    None => return true,
                }
            }
        }
    }
    false
}

/// The values that are an operand of an operation, or that pure operations compute of it; `None` if it has another use.
fn passed_on(program: &Kernel, tree: &Tree, user: OpId, at: usize) -> Option<Vec<Value>> {
    let op = program.op(user);
    let carried = |of: OpId, n: usize| -> Option<Vec<Value>> {
        let looping = program.op(of);
        Some(vec![*looping.results.get(n)?, *program.block(*looping.regions.first()?).args.get(n + 1)?])
    };
    match op.kind {
        OpKind::For(_) => carried(user, at.checked_sub(3)?),
        OpKind::Continue(0) => {
            let of = tree.parent(user).filter(|of| matches!(program.op(*of).kind, OpKind::For(_)))?;
            if runs_at_most_once(program, of) { Some(vec![*program.op(of).results.get(at)?]) } else { carried(of, at) }
        }
        OpKind::Yield => {
            let of = program.op(tree.parent(user)?);
            if of.kind == OpKind::If { Some(vec![*of.results.get(at)?]) } else { None }
        }
        OpKind::Binary(_) | OpKind::Cmp(_) | OpKind::Select | OpKind::Nv(NvOp::MbarrierAt) => Some(op.results.clone()),
        _ => None,
    }
}

/// Whether no iteration of a loop comes after another one: its bounds and its step are constants.
fn runs_at_most_once(program: &Kernel, looped: OpId) -> bool {
    let number = |at: usize| program.op(looped).args.get(at).and_then(|value| program.int_constant(*value));
    let (Some(first), Some(end), Some(step)) = (number(0), number(1), number(2)) else { return false };
    step > 0 && end.saturating_sub(first) <= step
}

/// Whether the loads of the other lanes of a warp are complete at an operation: a barrier of all warps of the role comes after the last load
/// of its block, or the block waits for the stage and has no loads, since MMAs alone read it.
fn is_ordered_by_the_role(program: &Kernel, id: OpId) -> bool {
    let Some(block) = Tree::new(program).block_of(id) else { return false };
    let before = program.block(block).ops.iter().take_while(|op| **op != id).map(|op| program.op(*op));
    let before: Vec<&Op> = before.collect();
    let last = before.iter().rev().find(|op| {
        !op.regions.is_empty()
            || matches!(
                op.kind,
                OpKind::Local(LocalOp::Load)
                    | OpKind::Nv(NvOp::BarrierSync { .. })
                    | OpKind::Ttg(TtgOp::Claim(Claim::Ready, _))
            )
    });
    last.is_some_and(|op| matches!(op.kind, OpKind::Nv(NvOp::BarrierSync { .. }) | OpKind::Ttg(TtgOp::Claim(..))))
}

/// Whether bulk stores that are not committed at an operation are committed by a later one of its block, before anything waits for them.
fn joins_the_next_group(program: &Kernel, id: OpId) -> bool {
    let Some(block) = Tree::new(program).block_of(id) else { return false };
    let after = program.block(block).ops.iter().skip_while(|op| **op != id).skip(1).map(|op| program.op(*op));
    let group = after.into_iter().find(|op| {
        !op.regions.is_empty()
            || matches!(
                op.kind,
                OpKind::Nv(
                    NvOp::Commit { group: NvGroup::BulkStore, .. } | NvOp::WaitGroup { group: NvGroup::BulkStore, .. }
                )
            )
    });
    group.is_some_and(|op| matches!(op.kind, OpKind::Nv(NvOp::Commit { .. })))
}

/// Whether another fence for initialised barriers follows before anything uses them.
fn is_fenced_again(program: &Kernel, id: OpId) -> bool {
    let tree = Tree::new(program);
    let Some(block) = tree.block_of(id) else { return false };
    let after = program.block(block).ops.iter().skip_while(|op| **op != id).skip(1);
    for op in after.map(|op| &program.op(*op).kind) {
        match op {
            OpKind::Nv(NvOp::FenceMbarrierInit) => return true,
            OpKind::Nv(NvOp::MbarrierAlloc { .. } | NvOp::MbarrierInit { .. } | NvOp::BarrierSync { .. })
            | OpKind::Region(_)
            | OpKind::Const(_) => {}
            _ => return false,
        }
    }
    false
}

/// Whether the MMA that follows a fence of registers accumulates to a result in flight: since the fence before that MMA, threads have not
/// accessed these registers. (PTX ISA, `wgmma.fence`: none is needed between MMAs with the same accumulator.)
fn accumulates_in_flight(program: &Kernel, id: OpId) -> bool {
    let Some(block) = Tree::new(program).block_of(id) else { return false };
    let mut after = program.block(block).ops.iter().skip_while(|op| **op != id).map(|op| program.op(*op));
    let mma = after.find(|op| op.kind == OpKind::Nv(NvOp::Wgmma));
    mma.is_some_and(|mma| {
        let in_registers = matches!(program.value(mma.args[0]).ty, Ty::Tile(..));
        !in_registers && matches!(program.value(mma.args[2]).ty, Ty::Compute(..))
    })
}

/// Whether nothing of the program reads the tensors to which it stores in bulk; such stores are complete when the launch is.
fn stores_are_not_read(program: &Kernel) -> bool {
    let tree = Tree::new(program);
    let stored = program.ops.iter().filter(|op| matches!(op.kind, OpKind::Nv(NvOp::BulkStore { .. })));
    let tensors: BTreeSet<Value> =
        stored.filter_map(|op| program.def_op(op.args[0])).filter_map(|source| source.args.first().copied()).collect();
    let only_stored = |user: &OpId| {
        let op = program.op(*user);
        let mut users = op.results.iter().flat_map(|result| tree.users(*result));
        matches!(op.kind, OpKind::Dim(_))
            || users.all(|user| matches!(program.op(*user).kind, OpKind::Nv(NvOp::BulkStore { .. })))
    };
    !tensors.is_empty() && tensors.iter().all(|tensor| tree.users(*tensor).iter().all(only_stored))
}

/// Whether the role gets more registers, and not fewer, so that others need not have released them. PTX has as many registers as it names
/// with any number of physical ones.
fn raises_registers(program: &Kernel, id: OpId) -> bool {
    let number = |op: &Op| {
        if let OpKind::Nv(NvOp::SetMaxNReg { registers }) = op.kind { Some(registers) } else { None }
    };
    let least = program.ops.iter().filter_map(number).min();
    number(program.op(id)) > least
}
