//! Shifts the second MMA of a loop by one iteration, so that it overlaps with the use of the first MMA's result.
//!
//! An iteration of attention has an MMA (the scores), work in registers on its result (softmax), and an MMA that has this as operand A and
//! adds to an accumulator. Each waits for the one before, so that the matrix units idle during the softmax. Here the second MMA of an
//! iteration is issued in the next iteration, after the first MMA of that, and waited for after its softmax:
//!
//! ```text
//! %z = for t = lo to hi carry(%x = %init) {      %z = if lo < hi {
//!     wait k; %s = mma %q, k, 0; release k           wait k; %s = mma %q, k, 0; release k
//!     %p, %f = softmax of %s                         %p0, %f = softmax of %s; %x0 = %init * %f
//!     wait v; %y = mma %p, v, %x * %f                %x, %p = for t = lo + 1 to hi carry(%x = %x0, %p = %p0) {
//!     release v; continue %y                             wait k; %1 = compute.issue %q, k, 0
//! }                                          becomes     wait v; %2 = compute.issue %p, v, %x
//!                                                        %s = compute.wait %1; release k
//!                                                        %f, %r = softmax of %s
//!                                                        %y = compute.wait %2; release v
//!                                                        continue %y * %f, cast %r
//!                                                    }
//!                                                    wait v; %y = mma %p, v, %x; release v
//!                                                    yield %y
//!                                                } else { yield %init }
//! ```
//!
//! Operations that scale the accumulator, or only convert operand A, come after the wait for the second MMA: until then, that uses the
//! registers of the accumulator and of the operand.
//!
//! This needs a ring for each of the two stages, and no operations with effects may be in between. The caller verifies the result.
//!
//! Deliberately absent: loops with other numbers of MMAs, early exits, steps other than 1, and a shift of more than one iteration.

mod find;

pub use find::loads_apart;

use super::edit::Edit;
use crate::collections::SortedMap;
use crate::ir::{BinOp, Block, Kernel, Op, OpId, OpKind, Pred, TtgOp, Ty, Value};
use find::{Chain, Parts, depends, parts};

/// The kernel with all such loops shifted; `None` if there are none.
#[must_use]
pub fn shift(kernel: &Kernel) -> Option<Kernel> {
    let mut edit = Edit::new(kernel.clone());
    let mut any = false;
    for around in (0..kernel.blocks.len()).map(Block::new) {
        for looped in kernel.block(around).ops.clone() {
            if let Some(parts) = parts(kernel, looped) {
                one(&mut edit, around, looped, &parts)?;
                any = true;
            }
        }
    }
    any.then(|| edit.kernel.canonical())
}

type Names = SortedMap<Value, Value>;

fn named(names: &Names, value: Value) -> Value {
    names.get(&value).copied().unwrap_or(value)
}

/// The operations of `rest` on which the first MMA depends, and the others.
fn halves(kernel: &Kernel, parts: &Parts) -> [Vec<OpId>; 2] {
    let body = parts.body;
    let before = |id: &OpId| {
        let results = &kernel.op(*id).results;
        results.iter().any(|v| kernel.op(parts.chain.first).args.iter().any(|arg| depends(kernel, body, *arg, *v)))
    };
    let (before, behind) = parts.rest.iter().copied().partition(before);
    [before, behind]
}

fn one(edit: &mut Edit, around: Block, looped: OpId, parts: &Parts) -> Option<()> {
    let Op { kind, args, results, loc, .. } = edit.kernel.op(looped).clone();
    let (bounds, init) = args.split_at(3);
    let ([lo, hi, step], init) = (<[Value; 3]>::try_from(bounds).ok()?, init.to_vec());
    let types: Vec<Ty> = results.iter().map(|v| edit.kernel.ty(*v)).collect();
    edit.loc = loc;
    let some = edit.one(OpKind::Cmp(Pred::Lt), &[lo, hi])?;
    let then = edit.block(&[], |edit, _| {
        let first = peeled(edit, parts, lo, &init)?;
        edit.loc = loc;
        let second = edit.one(OpKind::Binary(BinOp::Add), &[lo, step])?;
        let types: Vec<Ty> = [vec![Ty::I32], first.iter().map(|v| edit.kernel.ty(*v)).collect()].concat();
        let body = edit.block(&types, |edit, args| shifted(edit, parts, args))?;
        edit.loc = loc;
        let mut out = edit.raw(kind, &[&[second, hi, step][..], &first].concat(), &types[1..], vec![body]);
        let place = parts.chain.place;
        let operand = out.pop()?;
        out[place] = last_mma(edit, parts, operand, out[place])?;
        edit.loc = loc;
        edit.raw(OpKind::Yield, &out, &[], Vec::new());
        Some(())
    })?;
    let otherwise = edit.block(&[], |edit, _| {
        edit.raw(OpKind::Yield, &init, &[], Vec::new());
        Some(())
    })?;
    let given = edit.raw(OpKind::If, &[some], &types, vec![then, otherwise]);
    edit.put_before(around, looped);
    edit.take_out(around, looped);
    for (old, new) in results.iter().zip(&given) {
        edit.kernel.values[new.index()].name = edit.kernel.value(*old).name.clone();
        edit.replace(*old, *new);
    }
    Some(())
}

/// The next carried values, with the accumulator of the second MMA, and its operand A as the last one.
fn next(edit: &Edit, parts: &Parts, names: &Names) -> Option<Vec<Value>> {
    let last = *edit.kernel.block(parts.body).ops.last()?;
    let [a, _, sum] = edit.kernel.op(parts.chain.second).args[..] else { return None };
    let mut values = edit.kernel.op(last).args.clone();
    values[parts.chain.place] = sum;
    values.push(a);
    Some(values.into_iter().map(|v| named(names, v)).collect())
}

/// The first iteration, without its second MMA.
fn peeled(edit: &mut Edit, parts: &Parts, lo: Value, init: &[Value]) -> Option<Vec<Value>> {
    let args = edit.kernel.block(parts.body).args.clone();
    let mut names: Names = args.into_iter().zip([&[lo][..], init].concat()).collect();
    let [before, behind] = halves(&edit.kernel, parts);
    let [wait, end] = &parts.stages[0];
    for ops in [&before, wait, &vec![parts.chain.first], end, &behind, &parts.chain.scaling, &parts.chain.converting] {
        edit.copies(ops, &mut names);
    }
    next(edit, parts, &names)
}

/// The body of the loop: an iteration with the second MMA of the previous iteration.
fn shifted(edit: &mut Edit, parts: &Parts, args: &[Value]) -> Option<()> {
    let Chain { first, second, place, scaling, converting } = &parts.chain;
    let inside = edit.kernel.block(parts.body).args.clone();
    let (operand, own) = args.split_last()?;
    let mut names: Names = inside.iter().copied().zip(own.iter().copied()).collect();
    // The first MMA of this iteration and the second one of the last are in flight together. The softmax of this
    // iteration comes between the waits for them; what it gives is operand A of the next iteration's second MMA.
    let [before, behind] = halves(&edit.kernel, parts);
    let [[wait_first, end_first], [wait_second, end_second]] = &parts.stages;
    edit.copies(&before, &mut names);
    edit.copies(wait_first, &mut names);
    let issued_first = issued(edit, *first, &names, None)?;
    edit.copies(wait_second, &mut names);
    let issued_second = issued(edit, *second, &names, Some([*operand, *own.get(1 + place)?]))?;
    waited(edit, *first, issued_first, &mut names)?;
    edit.copies(end_first, &mut names);
    edit.copies(&behind, &mut names);
    let sum = waited(edit, *second, issued_second, &mut names)?;
    edit.copies(end_second, &mut names);
    // From here on, the carried accumulator stands for the sum that includes the second MMA of the last iteration,
    // which the original body had at its beginning.
    names.insert(*inside.get(1 + place)?, sum);
    edit.copies(scaling, &mut names);
    edit.copies(converting, &mut names);
    let values = next(edit, parts, &names)?;
    edit.raw(OpKind::Continue(0), &values, &[], Vec::new());
    Some(())
}

/// Issues an MMA; `other` replaces its operand A and its accumulator.
fn issued(edit: &mut Edit, mma: OpId, names: &Names, other: Option<[Value; 2]>) -> Option<Value> {
    let Op { args, loc, .. } = edit.kernel.op(mma).clone();
    let [a, b, sum] = args[..] else { return None };
    let [a, sum] = other.unwrap_or([named(names, a), named(names, sum)]);
    edit.loc = loc;
    edit.one(OpKind::Ttg(TtgOp::ComputeIssue), &[a, named(names, b), sum])
}

fn waited(edit: &mut Edit, mma: OpId, issued: Value, names: &mut Names) -> Option<Value> {
    let Op { results, loc, .. } = edit.kernel.op(mma).clone();
    edit.loc = loc;
    let tile = edit.one(OpKind::Ttg(TtgOp::ComputeWait), &[issued])?;
    names.insert(*results.first()?, tile);
    Some(tile)
}

/// The second MMA of the last iteration.
fn last_mma(edit: &mut Edit, parts: &Parts, operand: Value, sum: Value) -> Option<Value> {
    let [wait, end] = &parts.stages[1];
    let mut names = Names::new();
    edit.copies(wait, &mut names);
    let Op { args, loc, .. } = edit.kernel.op(parts.chain.second).clone();
    edit.loc = loc;
    let tile = edit.one(OpKind::Mma, &[operand, named(&names, *args.get(1)?), sum])?;
    edit.copies(end, &mut names);
    Some(tile)
}
