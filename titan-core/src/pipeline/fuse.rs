//! Fusion of a role that only copies and a role that computes, into a loop in which all warps do both.
//!
//! On machines whose threads issue copies (`cp.async`), separate copying warps have no benefit. The loops of the two roles, which the
//! verifier has matched, are fused: each iteration begins with its copies. How many iterations ahead these are issued, the schedule of the
//! loop says ([`super::modulo`]). Enclosing loops, as in a persistent kernel, are matched from the outside in.
//!
//! The correctness of the result is not decided here: the caller verifies it.
//!
//! Deliberately absent: more than two roles, waits for stages before the loop, filling roles that compute, loops with early exits. Such
//! kernels keep their roles.

use super::edit::Edit;
use super::implicit;
use crate::collections::SortedMap;
use crate::ir::{Block, ForKind, Kernel, OpId, OpKind, TtgOp, Ty, Value};

/// The kernel with fused roles; `None` if its roles cannot be fused. The result is not verified.
///
/// On such machines, a complete MMA has read its operands before the next instruction, so that accumulators keep no stages.
#[must_use]
pub fn fuse(kernel: &Kernel) -> Option<Kernel> {
    let top = &kernel.block(kernel.body).ops;
    let specialized = *top.iter().find(|id| kernel.op(**id).kind == OpKind::Ttg(TtgOp::Roles))?;
    let [a, b] = kernel.op(specialized).regions[..] else { return None };
    // Fused loops are executed together: a role that leaves its loop would take the other one with it.
    if leaves_a_loop(kernel, a) || leaves_a_loop(kernel, b) {
        return None;
    }
    let (fill, read) = match [a, b].map(|block| (fills(kernel, block), reads(kernel, block))) {
        // One role only fills and the other one only reads. A role that does both has an order of its own between them,
        // which fusion could violate.
        [(true, false), (false, true)] => (a, b),
        [(false, true), (true, false)] => (b, a),
        _ => return None,
    };
    let mut edit = Edit::new(kernel.clone());
    edit.loc = kernel.op(specialized).loc;
    let body = edit.kernel.body;
    let mut fuse = Fuse { names: SortedMap::new() };
    let (fill, read) = (kernel.block(fill).ops.clone(), kernel.block(read).ops.clone());
    fuse.sequence(&mut edit, &fill, &read)?;
    edit.raw(OpKind::Ttg(TtgOp::Finalize), &[], &[], Vec::new());
    edit.put_before(body, specialized);
    edit.take_out(body, specialized);
    edit.kernel.roles.clear();
    for op in &mut edit.kernel.ops {
        if let OpKind::Ttg(TtgOp::AccStart(keep)) = &mut op.kind {
            *keep = 0;
        }
    }
    for value in &mut edit.kernel.values {
        if let Ty::Acc(_, _, keep) = &mut value.ty {
            *keep = 0;
        }
    }
    Some(edit.kernel.canonical())
}

/// The maximum distance of copies: one less than the slots of the shallowest ring.
#[must_use]
pub fn greatest_distance(kernel: &Kernel) -> u32 {
    kernel.pipes.iter().map(|p| p.slots.saturating_sub(1)).min().unwrap_or(0)
}

/// Whether a block has early exits or `continue`s inside loops.
fn leaves_a_loop(kernel: &Kernel, block: Block) -> bool {
    kernel.block(block).ops.iter().any(|id| {
        let op = kernel.op(*id);
        op.regions.iter().any(|region| {
            let last = kernel.block(*region).ops.last().map(|last| &kernel.op(*last).kind);
            let own = if op.kind.is_loop() { last == Some(&OpKind::Continue(0)) } else { last == Some(&OpKind::Yield) };
            !own || leaves_a_loop(kernel, *region)
        })
    })
}

fn any(kernel: &Kernel, block: Block, wanted: impl Fn(&OpKind) -> bool) -> bool {
    let mut found = false;
    kernel.walk_block(block, &mut |_, op| found |= wanted(&op.kind));
    found
}

fn fills(kernel: &Kernel, block: Block) -> bool {
    any(kernel, block, |k| matches!(k, OpKind::Ttg(TtgOp::Acquire(_))))
}

fn reads(kernel: &Kernel, block: Block) -> bool {
    any(kernel, block, |k| matches!(k, OpKind::Ttg(TtgOp::Ready(_))))
}

/// Whether an operation, or one nested in it, uses a ring.
fn is_event(kernel: &Kernel, id: OpId) -> bool {
    let op = kernel.op(id);
    let own = matches!(op.kind, OpKind::Ttg(TtgOp::Acquire(_) | TtgOp::Ready(_)));
    own || op.regions.iter().any(|r| fills(kernel, *r) || reads(kernel, *r))
}

/// Whether a loop uses rings directly, not only in nested loops.
fn is_inner(kernel: &Kernel, body: Block) -> bool {
    let direct = |id: &OpId| matches!(kernel.op(*id).kind, OpKind::Ttg(TtgOp::Acquire(_) | TtgOp::Ready(_)));
    kernel.block(body).ops.iter().any(direct)
}

fn same_constant(kernel: &Kernel, a: Value, b: Value) -> bool {
    kernel.int_constant(a).is_some_and(|c| kernel.int_constant(b) == Some(c))
}

struct Fuse {
    /// The new values for those of the filling role.
    names: SortedMap<Value, Value>,
}

impl Fuse {
    /// Merges the operations of both roles, loop by loop.
    fn sequence(&mut self, edit: &mut Edit, fill: &[OpId], read: &[OpId]) -> Option<()> {
        let (mut fill, mut read) = (fill.iter(), read.iter());
        loop {
            // Each round takes one loop of each role, so this ends with the shorter list; both must end together, as
            // each fill belongs to one read.
            let (copies, computes) =
                (self.up_to_loop(edit, &mut fill, true)?, self.up_to_loop(edit, &mut read, false)?);
            match (copies, computes) {
                (None, None) => return Some(()),
                (Some(copies), Some(computes)) => self.looped(edit, copies, computes)?,
                (_, _) => return None,
            }
        }
    }

    /// Copies operations up to the next loop that uses rings.
    fn up_to_loop(
        &mut self,
        edit: &mut Edit,
        ops: &mut std::slice::Iter<'_, OpId>,
        fills: bool,
    ) -> Option<Option<OpId>> {
        for id in ops {
            if edit.kernel.op(*id).kind.is_terminator() || edit.kernel.op(*id).kind == OpKind::Ttg(TtgOp::Finalize) {
                continue;
            }
            if is_event(&edit.kernel, *id) {
                let counted = matches!(edit.kernel.op(*id).kind, OpKind::For(_));
                return if counted { Some(Some(*id)) } else { None };
            }
            if fills {
                self.copy(edit, *id)?;
            } else {
                edit.pending.push(*id);
            }
        }
        Some(None)
    }

    /// Fuses two loops.
    fn looped(&mut self, edit: &mut Edit, copies: OpId, computes: OpId) -> Option<()> {
        let (fill, read) = (edit.kernel.op(copies).clone(), edit.kernel.op(computes).clone());
        let (OpKind::For(a), OpKind::For(b)) = (&fill.kind, &read.kind) else { return None };
        let ([from], [to]) = (&fill.regions[..], &read.regions[..]) else { return None };
        // A filling role with carried values computes something, and is not fused.
        let bounds: Vec<Value> = fill.args.iter().map(|v| self.name(*v)).collect();
        // Iterations that are dealt to programs are others than those from lo to hi.
        if bounds.len() != 3 || (*a == ForKind::Distributed) != (*b == ForKind::Distributed) {
            return None;
        }
        if is_inner(&edit.kernel, *from) && is_inner(&edit.kernel, *to) {
            return self.inner(edit, (*from, &bounds), (computes, *to));
        }
        // For outer loops, one counter serves both if start and step are equal. The verifier has proved that the ends are equal.
        let alike = |i: usize| bounds[i] == read.args[i] || same_constant(&edit.kernel, bounds[i], read.args[i]);
        if !alike(0) || !alike(2) {
            return None;
        }
        let counter = *edit.kernel.block(*to).args.first()?;
        self.names.insert(*edit.kernel.block(*from).args.first()?, counter);
        let (fill_ops, read_ops) = (edit.kernel.block(*from).ops.clone(), edit.kernel.block(*to).ops.clone());
        let last = *read_ops.last()?;
        let outer = std::mem::take(&mut edit.pending);
        let done = self.sequence(edit, &fill_ops, &read_ops);
        let mut inside = std::mem::replace(&mut edit.pending, outer);
        inside.push(last);
        edit.kernel.blocks[to.index()].ops = inside;
        edit.pending.push(computes);
        done
    }

    /// The loops over stages.
    fn inner(
        &mut self,
        edit: &mut Edit,
        (from, bounds): (Block, &[Value]),
        (computes, to): (OpId, Block),
    ) -> Option<()> {
        let [lo, _, step] = bounds[..] else { return None };
        if edit.kernel.int_constant(step) != Some(1) {
            return None;
        }
        let counter = *edit.kernel.block(to).args.first()?;
        let first = *edit.kernel.op(computes).args.first()?;
        if first != lo && !same_constant(&edit.kernel, first, lo) {
            return None;
        }
        // No iteration of a distributed loop can be ahead, and roles overlap copies with computation.
        if edit.kernel.op(computes).kind == OpKind::For(ForKind::Distributed) {
            return None;
        }
        implicit::from_zero(edit, computes)?;
        edit.pending.push(computes);
        // No copy is in flight after the loop, so its shared memory may be reused.
        edit.raw(OpKind::Ttg(TtgOp::Finalize), &[], &[], Vec::new());
        let outer = std::mem::take(&mut edit.pending);
        // Both loops have the same bounds and steps, so that iteration i of one is iteration i of the other.
        self.names.insert(*edit.kernel.block(from).args.first()?, counter);
        for id in edit.kernel.block(from).ops.clone() {
            if !edit.kernel.op(id).kind.is_terminator() {
                self.copy(edit, id)?;
            }
        }
        let claims = |id: &&OpId| matches!(edit.kernel.op(**id).kind, OpKind::Ttg(TtgOp::Ready(_)));
        let claim = *edit.kernel.block(to).ops.iter().find(claims)?;
        // The copies of an iteration come before its wait: a ring with a free slot never makes the fused loop wait for
        // itself.
        edit.put_before(to, claim);
        edit.pending = outer;
        Some(())
    }

    fn name(&self, value: Value) -> Value {
        self.names.get(&value).copied().unwrap_or(value)
    }

    /// Copies an operation of the filling role, with its regions.
    fn copy(&mut self, edit: &mut Edit, id: OpId) -> Option<()> {
        let op = edit.kernel.op(id).clone();
        let args: Vec<Value> = op.args.iter().map(|v| self.name(*v)).collect();
        let types: Vec<Ty> = op.results.iter().map(|v| edit.kernel.ty(*v)).collect();
        let mut regions = Vec::new();
        for region in &op.regions {
            let data = edit.kernel.block(*region).clone();
            let tys: Vec<Ty> = data.args.iter().map(|v| edit.kernel.ty(*v)).collect();
            regions.push(edit.block(&tys, |edit, inside| {
                self.names.extend(data.args.iter().copied().zip(inside.iter().copied()));
                data.ops.iter().try_for_each(|inner| self.copy(edit, *inner))
            })?);
        }
        let loc = std::mem::replace(&mut edit.loc, op.loc);
        let results = edit.raw(op.kind, &args, &types, regions);
        edit.loc = loc;
        for (old, new) in op.results.iter().zip(&results) {
            let name = edit.kernel.value(*old).name.clone();
            edit.kernel.values[new.index()].name = name;
            self.names.insert(*old, *new);
        }
        Some(())
    }
}
