//! Loop rotation: the first loads of a loop's body, from a carried stage, are moved to the end of the previous iteration, and before the
//! loop for the first iteration.
//!
//! ```text
//! for .. carry(stage = s) {                    f0 = load s[0]
//!     f = load stage[0]                        for .. carry(stage = s, f = f0) {
//!     MMA of f                                     MMA of f
//!     ..                             becomes       ..
//!     next = wait for the next stage               next = wait for the next stage
//!     continue next                                g = load next[0]
//! }                                                continue next, g
//!                                              }
//! ```
//!
//! The last iteration loads from the stage that the loop returns, which was waited for like every other; its fragments are not used.
//!
//! Deliberately absent: loads that depend on the loop's counter, and operations with effects.

use crate::collections::{SortedMap, SortedSet};
use crate::ir::Block;
use crate::ir::{BlockData, Def, Effect, ForKind, Kernel, LocalOp, Op, OpId, OpKind, Value, ValueData};

/// Whether an operation is a pure computation or a load of a tile.
pub(super) fn is_light(op: &Op) -> bool {
    let pure = op.kind.effect() == Effect::Pure && op.kind != OpKind::Local(LocalOp::Mma);
    op.regions.is_empty() && (pure || op.kind == OpKind::Local(LocalOp::Load))
}

/// The loop with this body: a `for`, whose body has the induction variable as its first argument.
fn loop_of(kernel: &Kernel, body: Block) -> Option<OpId> {
    let is = |op: &Op| matches!(op.kind, OpKind::For(kind) if kind != ForKind::Distributed) && op.regions == [body];
    (0..kernel.ops.len()).map(OpId::new).find(|id| is(kernel.op(*id)))
}

/// The operations of a body that the loads depend on, in order and including the loads; `None` if one of them cannot be executed one
/// iteration earlier.
pub(super) fn needed(kernel: &Kernel, body: Block, loads: &SortedSet<OpId>) -> Option<Vec<OpId>> {
    let BlockData { args, ops } = kernel.block(body);
    let counter = args.first()?;
    let (mut wanted, mut found) = (loads.clone(), Vec::new());
    for id in ops.iter().rev() {
        if !wanted.contains(id) {
            continue;
        }
        let op = kernel.op(*id);
        if !is_light(op) || op.args.contains(counter) {
            return None;
        }
        wanted.extend(op.args.iter().filter_map(|arg| match kernel.value(*arg).def {
            Def::Result(from, _) if ops.contains(&from) => Some(from),
            Def::Result(..) | Def::Param(_) | Def::BlockArg(..) => None,
        }));
        found.push(*id);
    }
    found.reverse();
    (found.len() == wanted.len()).then_some(found)
}

/// The kernel with loads of a loop's body moved one iteration earlier; `None` if that is impossible.
pub(super) fn rotate(kernel: &Kernel, body: Block, loads: &SortedSet<OpId>) -> Option<Kernel> {
    let looped = loop_of(kernel, body)?;
    let needed = needed(kernel, body, loads)?;
    let around = (0..kernel.blocks.len()).map(Block::new).find(|b| kernel.block(*b).ops.contains(&looped))?;
    let carried = kernel.block(body).args.get(1..)?.to_vec();
    let last = *kernel.block(body).ops.last()?;
    if kernel.op(last).kind != OpKind::Continue(0) || carried.len() != kernel.op(last).args.len() {
        return None;
    }
    let initial = kernel.op(looped).args.get(3..)?.to_vec();
    let next = kernel.op(last).args.clone();
    let mut made = kernel.clone();
    // `first` loads before the loop for its first iteration, `later` at the end of the body for the next iteration. Each loaded value
    // becomes a carried one, which replaces it in the body.
    let (first, first_names) = copied(&mut made, &needed, carried.iter().copied().zip(initial).collect());
    let (later, later_names) = copied(&mut made, &needed, carried.iter().copied().zip(next).collect());
    for load in loads {
        let [old] = kernel.op(*load).results[..] else { return None };
        let data = kernel.value(old).clone();
        let place = made.block(body).args.len();
        let inside = value(&mut made, ValueData { def: Def::BlockArg(body, place), ..data.clone() });
        replace(&mut made, old, inside);
        made.blocks.get_mut(body.index())?.args.push(inside);
        let behind = Def::Result(looped, made.op(looped).results.len());
        let after = value(&mut made, ValueData { def: behind, name: None, ..data });
        let op = made.ops.get_mut(looped.index())?;
        op.results.push(after);
        op.args.push(*first_names.get(&old)?);
        made.ops.get_mut(last.index())?.args.push(*later_names.get(&old)?);
    }
    let ops = &mut made.blocks.get_mut(body.index())?.ops;
    ops.retain(|id| !loads.contains(id));
    let end = ops.len().checked_sub(1)?;
    ops.splice(end..end, later);
    let ops = &mut made.blocks.get_mut(around.index())?.ops;
    let at = ops.iter().position(|id| *id == looped)?;
    ops.splice(at..at, first);
    Some(made)
}

fn value(kernel: &mut Kernel, data: ValueData) -> Value {
    kernel.values.push(data);
    Value::new(kernel.values.len() - 1)
}

/// Copies operations with renamed operands. Returns the copies, and the renaming of their results.
fn copied(
    kernel: &mut Kernel,
    ops: &[OpId],
    mut names: SortedMap<Value, Value>,
) -> (Vec<OpId>, SortedMap<Value, Value>) {
    let mut made = Vec::new();
    for id in ops {
        let op = kernel.op(*id).clone();
        let new = OpId::new(kernel.ops.len());
        let mut results = Vec::new();
        for (place, old) in op.results.iter().enumerate() {
            let data = ValueData { def: Def::Result(new, place), ..kernel.value(*old).clone() };
            let result = value(kernel, data);
            names.insert(*old, result);
            results.push(result);
        }
        let args = op.args.iter().map(|arg| names.get(arg).copied().unwrap_or(*arg)).collect();
        kernel.ops.push(Op { args, results, ..op });
        made.push(new);
    }
    (made, names)
}

fn replace(kernel: &mut Kernel, old: Value, new: Value) {
    for op in &mut kernel.ops {
        op.args.iter_mut().filter(|arg| **arg == old).for_each(|arg| *arg = new);
    }
}
