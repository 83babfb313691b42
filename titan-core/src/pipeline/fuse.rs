//! Fusion of a role that only copies and a role that computes, into a loop in which all warps do both.
//!
//! On machines whose threads issue copies (`cp.async`), separate copying warps have no benefit. The loops of the two roles, which the
//! verifier has matched, are fused: each iteration begins with its copies. How many iterations ahead these are issued, the schedule of the
//! loop says ([`super::modulo`]). Enclosing loops, as in a persistent kernel, are matched from the outside in.
//!
//! The correctness of the result is not decided here: the caller verifies it.
//!
//! Deliberately absent: more than two roles, waits for stages before the loop, filling roles that compute, loops with early exits. Such
//! kernels keep their roles, or are refused on a machine where all warps of a program must do the same.

use super::edit::Edit;
use super::implicit;
use crate::analysis::sides;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Block, ForKind, Kernel, OpId, OpKind, Pipe, TtgOp, Ty, Value};
use std::fmt;

/// Why roles cannot be fused; displayed as the end of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFused {
    /// The operation that is in the way.
    pub op: OpId,
    /// What is in the way.
    pub obstacle: Obstacle,
}

/// What is in the way of fusing roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// There are so many roles, and not two.
    Roles(usize),
    /// A loop of a role is left early, or goes on to its next iteration from the middle of its body.
    Left,
    /// No role only copies for another one that only reads.
    Sides,
    /// The roles do not pass tiles to each other by rings.
    NoRings,
    /// A ring is used outside of a loop over numbers.
    Outside,
    /// One role has a loop over stages for which the other one has none.
    Unmatched,
    /// The loops of the roles do not count alike.
    Counters,
    /// The role that copies computes something from iteration to iteration.
    Carries,
    /// The iterations of the innermost loop are dealt to programs.
    Distributed,
    /// An operation of the role that copies cannot be repeated in the other one.
    Repeated,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Obstacle::Roles(n) => {
                return write!(f, "there are {n} roles, and a role that copies and one that computes can be fused");
            }
            Obstacle::Left => "a loop is left early here, or goes on to its next iteration from the middle of its body",
            Obstacle::Sides => "no role only fills the rings that the other one only reads",
            Obstacle::NoRings => "no ring is between them, in which one waits for the other",
            Obstacle::Outside => "this uses a ring outside of a loop over a range of numbers",
            Obstacle::Unmatched => "the other role has no loop that goes with this one",
            Obstacle::Counters => "the loops of the roles begin at other numbers, or have other steps",
            Obstacle::Carries => "the role that copies passes values from iteration to iteration",
            Obstacle::Distributed => "the innermost loop takes its iterations in turn with other programs",
            Obstacle::Repeated => "the role that copies does this, which cannot be done by the other one",
        })
    }
}

/// Fused, or why not.
type Fused<T> = Result<T, NotFused>;

fn not<T>(op: OpId, obstacle: Obstacle) -> Fused<T> {
    Err(NotFused { op, obstacle })
}

/// The kernel with fused roles. The result is not verified.
///
/// On such machines, a complete MMA has read its operands before the next instruction, so that accumulators keep no stages.
///
/// With `all`, roles are fused that gain nothing from it: a role may also have rings of its own, which it both fills and reads, such as those
/// through which it stores; stages are filled and read outside of loops too; and loops over stages may take their iterations in turn with other
/// programs.
///
/// # Errors
/// Why its roles cannot be fused.
pub fn fuse(kernel: &Kernel, all: bool) -> Fused<Kernel> {
    let top = &kernel.block(kernel.body).ops;
    let roles = top.iter().find(|id| kernel.op(**id).kind == OpKind::Ttg(TtgOp::Roles));
    let Some(specialized) = roles.copied() else { return not(OpId::new(0), Obstacle::Roles(0)) };
    let regions = &kernel.op(specialized).regions;
    let [a, b] = regions[..] else { return not(specialized, Obstacle::Roles(regions.len())) };
    // Fused loops are executed together: a role that leaves its loop would take the other one with it.
    if let Some(op) = leaves_a_loop(kernel, a).or_else(|| leaves_a_loop(kernel, b)) {
        return not(op, Obstacle::Left);
    }
    let between = |pipe: Pipe| !all || sides::joins_roles(kernel, pipe);
    let between = (0..kernel.pipes.len()).map(Pipe::new).filter(|pipe| between(*pipe)).collect();
    if kernel.pipes.is_empty() {
        return not(specialized, Obstacle::NoRings);
    }
    let mut fuse = Fuse { names: SortedMap::new(), between, all };
    let (fill, read) = match [a, b].map(|block| (fuse.fills(kernel, block), fuse.reads(kernel, block))) {
        // One role only fills and the other one only reads. A role that does both has an order of its own between them,
        // which fusion could violate.
        [(true, false), (false, true)] => (a, b),
        [(false, true), (true, false)] => (b, a),
        _ => return not(specialized, Obstacle::Sides),
    };
    let mut edit = Edit::new(kernel.clone());
    edit.loc = kernel.op(specialized).loc;
    let body = edit.kernel.body;
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
    Ok(edit.kernel.canonical())
}

/// The maximum distance of copies: one less than the slots of the shallowest ring.
#[must_use]
pub fn greatest_distance(kernel: &Kernel) -> u32 {
    kernel.pipes.iter().map(|p| p.slots.saturating_sub(1)).min().unwrap_or(0)
}

/// An early exit or `continue` inside of a loop of a block.
fn leaves_a_loop(kernel: &Kernel, block: Block) -> Option<OpId> {
    kernel.block(block).ops.iter().find_map(|id| {
        let op = kernel.op(*id);
        op.regions.iter().find_map(|region| {
            let last = kernel.block(*region).ops.last().copied();
            let kind = last.map(|last| &kernel.op(last).kind);
            let own = if op.kind.is_loop() { kind == Some(&OpKind::Continue(0)) } else { kind == Some(&OpKind::Yield) };
            if own { leaves_a_loop(kernel, *region) } else { last.or(Some(*id)) }
        })
    })
}

fn any(kernel: &Kernel, block: Block, wanted: impl Fn(&OpKind) -> bool) -> bool {
    let mut found = false;
    kernel.walk_block(block, &mut |_, op| found |= wanted(&op.kind));
    found
}

fn same_constant(kernel: &Kernel, a: Value, b: Value) -> bool {
    kernel.int_constant(a).is_some_and(|c| kernel.int_constant(b) == Some(c))
}

struct Fuse {
    /// The new values for those of the filling role.
    names: SortedMap<Value, Value>,
    /// The rings between the roles.
    between: SortedSet<Pipe>,
    /// Whether roles are fused that gain nothing from it.
    all: bool,
}

impl Fuse {
    fn fills(&self, kernel: &Kernel, block: Block) -> bool {
        any(kernel, block, |k| matches!(k, OpKind::Ttg(TtgOp::Acquire(pipe)) if self.between.contains(pipe)))
    }

    fn reads(&self, kernel: &Kernel, block: Block) -> bool {
        any(kernel, block, |k| matches!(k, OpKind::Ttg(TtgOp::Ready(pipe)) if self.between.contains(pipe)))
    }

    /// Whether an operation itself takes the next slot or stage of a ring between the roles.
    fn takes(&self, kernel: &Kernel, id: OpId) -> bool {
        matches!(&kernel.op(id).kind, OpKind::Ttg(TtgOp::Acquire(pipe) | TtgOp::Ready(pipe)) if self.between.contains(pipe))
    }

    /// Whether an operation, or one nested in it, uses a ring.
    fn is_event(&self, kernel: &Kernel, id: OpId) -> bool {
        let nested = |r: &Block| self.fills(kernel, *r) || self.reads(kernel, *r);
        self.takes(kernel, id) || kernel.op(id).regions.iter().any(nested)
    }

    /// Whether a loop uses rings directly, not only in nested loops.
    fn is_inner(&self, kernel: &Kernel, body: Block) -> bool {
        kernel.block(body).ops.iter().any(|id| self.takes(kernel, *id))
    }

    /// Merges the operations of both roles, loop by loop.
    fn sequence(&mut self, edit: &mut Edit, fill: &[OpId], read: &[OpId]) -> Fused<()> {
        let (mut fill, mut read) = (fill.iter(), read.iter());
        loop {
            // Each round takes one loop of each role, so this ends with the shorter list; both must end together, as
            // each fill belongs to one read.
            let (copies, computes) =
                (self.up_to_loop(edit, &mut fill, true)?, self.up_to_loop(edit, &mut read, false)?);
            match (copies, computes) {
                (None, None) => return Ok(()),
                (Some(copies), Some(computes)) => self.looped(edit, copies, computes)?,
                (Some(alone), None) | (None, Some(alone)) => return not(alone, Obstacle::Unmatched),
            }
        }
    }

    /// Copies operations up to the next loop that uses rings.
    fn up_to_loop(
        &mut self,
        edit: &mut Edit,
        ops: &mut std::slice::Iter<'_, OpId>,
        fills: bool,
    ) -> Fused<Option<OpId>> {
        for id in ops {
            if edit.kernel.op(*id).kind.is_terminator() || edit.kernel.op(*id).kind == OpKind::Ttg(TtgOp::Finalize) {
                continue;
            }
            if self.is_event(&edit.kernel, *id) {
                if matches!(edit.kernel.op(*id).kind, OpKind::For(_)) {
                    return Ok(Some(*id));
                }
                // Between loops, all that one role fills is filled before the other one reads: the verifier says whether the slots suffice.
                if !self.all || edit.kernel.op(*id).kind == OpKind::Loop {
                    return not(*id, Obstacle::Outside);
                }
            }
            if fills {
                self.copied(edit, *id)?;
            } else {
                edit.pending.push(*id);
            }
        }
        Ok(None)
    }

    /// Fuses two loops.
    fn looped(&mut self, edit: &mut Edit, copies: OpId, computes: OpId) -> Fused<()> {
        let (fill, read) = (edit.kernel.op(copies).clone(), edit.kernel.op(computes).clone());
        let (OpKind::For(a), OpKind::For(b)) = (&fill.kind, &read.kind) else { return not(copies, Obstacle::Outside) };
        let ([from], [to]) = (&fill.regions[..], &read.regions[..]) else { return not(copies, Obstacle::Unmatched) };
        // A filling role with carried values computes something, and is not fused.
        let bounds: Vec<Value> = fill.args.iter().map(|v| self.name(*v)).collect();
        if bounds.len() != 3 {
            return not(copies, Obstacle::Carries);
        }
        // Iterations that are dealt to programs are others than those from lo to hi.
        if (*a == ForKind::Distributed) != (*b == ForKind::Distributed) {
            return not(computes, Obstacle::Counters);
        }
        if self.is_inner(&edit.kernel, *from) && self.is_inner(&edit.kernel, *to) {
            return self.inner(edit, (*from, &bounds), (computes, *to));
        }
        // For outer loops, one counter serves both if start and step are equal. The verifier has proved that the ends are equal.
        let alike = |i: usize| bounds[i] == read.args[i] || same_constant(&edit.kernel, bounds[i], read.args[i]);
        if !alike(0) || !alike(2) {
            return not(computes, Obstacle::Counters);
        }
        let counters = |block: &Block| edit.kernel.block(*block).args.first().copied();
        let (Some(filling), Some(counter)) = (counters(from), counters(to)) else {
            return not(computes, Obstacle::Counters);
        };
        self.names.insert(filling, counter);
        let (fill_ops, read_ops) = (edit.kernel.block(*from).ops.clone(), edit.kernel.block(*to).ops.clone());
        let Some(last) = read_ops.last().copied() else { return not(computes, Obstacle::Unmatched) };
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
    ) -> Fused<()> {
        let counters = [from, to].map(|block| edit.kernel.block(block).args.first().copied());
        let first = edit.kernel.op(computes).args.first().copied();
        let ([lo, _, step], [Some(filling), Some(counter)], Some(first)) = (bounds, counters, first) else {
            return not(computes, Obstacle::Counters);
        };
        if edit.kernel.int_constant(*step) != Some(1) {
            return not(computes, Obstacle::Counters);
        }
        if first != *lo && !same_constant(&edit.kernel, first, *lo) {
            return not(computes, Obstacle::Counters);
        }
        // No iteration of a distributed loop can be ahead, and roles overlap copies with computation.
        let distributed = edit.kernel.op(computes).kind == OpKind::For(ForKind::Distributed);
        if distributed && !(self.all && edit.kernel.int_constant(first).is_some()) {
            return not(computes, Obstacle::Distributed);
        }
        if implicit::from_zero(edit, computes).is_none() {
            return not(computes, Obstacle::Counters);
        }
        edit.pending.push(computes);
        // No copy is in flight after the loop, so its shared memory may be reused.
        edit.raw(OpKind::Ttg(TtgOp::Finalize), &[], &[], Vec::new());
        let outer = std::mem::take(&mut edit.pending);
        // Both loops have the same bounds and steps, so that iteration i of one is iteration i of the other.
        self.names.insert(filling, counter);
        for id in edit.kernel.block(from).ops.clone() {
            if !edit.kernel.op(id).kind.is_terminator() {
                self.copied(edit, id)?;
            }
        }
        let claims = |id: &&OpId| matches!(&edit.kernel.op(**id).kind, OpKind::Ttg(TtgOp::Ready(pipe)) if self.between.contains(pipe));
        let Some(claim) = edit.kernel.block(to).ops.iter().find(claims).copied() else {
            return not(computes, Obstacle::Unmatched);
        };
        // The copies of an iteration come before its wait: a ring with a free slot never makes the fused loop wait for
        // itself.
        edit.put_before(to, claim);
        edit.pending = outer;
        Ok(())
    }

    fn name(&self, value: Value) -> Value {
        self.names.get(&value).copied().unwrap_or(value)
    }

    /// Copies an operation of the filling role, with its regions.
    fn copied(&mut self, edit: &mut Edit, id: OpId) -> Fused<()> {
        self.copy(edit, id).map_or_else(|| not(id, Obstacle::Repeated), Ok)
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
