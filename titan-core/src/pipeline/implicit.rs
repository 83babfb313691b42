//! Lowers loops over `pipelined(..)` to rings: the tiles of an iteration are copied while earlier iterations compute.
//!
//! The loads of a body that are read by MMAs only, or from which operands of MMAs are computed (`operands.rs`), and whose coordinates
//! are functions of the loop's counter, fill the stages of one ring. MMAs read a tile where it lies; threads read it to registers.
//!
//! ```text
//! for c in 0..N        { acquire; copy iteration c; wait for stage c; compute with it; release }
//! ```
//!
//! How many iterations ahead the copies are issued, the schedule of the loop says ([`super::modulo`]): nothing else in the kernel depends
//! on it.
//!
//! Rows that indices select (`gather_rows`) are copied the same way, if the indices do not change in the loop.
//!
//! Deliberately absent: the choice of the number of slots, which the caller makes; loads to registers; loads of indices ahead of the rows they select.

use super::edit::Edit;
use super::operands::{computed_from, only_multiplied};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{
    BinOp, Block, Def, Field, ForKind, Kernel, Loc, Op, OpId, OpKind, Pipe, PipeDecl, PipeSpace, Pred, Proxy, TtgOp,
    Ty, Value,
};

/// A loop that can be pipelined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The operation of the loop.
    pub op: OpId,
    /// The loads that become copies, in program order.
    pub loads: Vec<OpId>,
}

/// The pipelined loops of a kernel with loads that can be prefetched. `staged` selects, among the tiles that only MMAs read, those that these
/// read in shared memory.
#[must_use]
pub fn candidates(kernel: &Kernel, staged: &dyn Fn(Value) -> bool) -> Vec<Candidate> {
    let mut found = Vec::new();
    kernel.walk(&mut |id, op| {
        let (OpKind::For(ForKind::Pipelined), [body]) = (&op.kind, &op.regions[..]) else { return };
        // The schedule counts iterations by the counter, and one that runs ahead by c has the counter plus c.
        if op.args.get(2).and_then(|s| kernel.int_constant(*s)) != Some(1) {
            return;
        }
        let inside = inside(kernel, *body);
        let computed = computed_from(kernel, id);
        let ahead = |load: &OpId| {
            let op = kernel.op(*load);
            let zero = op.args.last().and_then(|pad| kernel.constant(*pad)).is_some_and(is_zero);
            let loads = matches!(op.kind, OpKind::Load(..) | OpKind::GatherRows { .. });
            let plain = loads && zero && (staged(op.results[0]) || computed.contains(&op.results[0]));
            // A copy that runs ahead reads the tensor earlier than the load did. Of an input that nothing writes, it
            // reads the same.
            let input = op.args.first().and_then(|t| crate::analysis::number::root(kernel, *t));
            let input = input.is_some_and(|p| crate::analysis::forms::is_input(kernel, p));
            plain && input && op.args.iter().all(|v| computed_ahead(kernel, *body, &inside, *v, 0))
        };
        let loads: Vec<OpId> =
            kernel.block(*body).ops.iter().copied().filter(ahead).take(PipeDecl::MAX_FIELDS).collect();
        if !loads.is_empty() {
            found.push(Candidate { op: id, loads });
        }
    });
    found
}

/// The gathers of rows of a loop whose indices change in the loop: their rows cannot be copied ahead.
#[must_use]
pub fn changing_rows(kernel: &Kernel, looped: OpId) -> Vec<OpId> {
    let Some(body) = kernel.op(looped).regions.first() else { return Vec::new() };
    let inside = inside(kernel, *body);
    let changes = |load: &OpId| {
        let op = kernel.op(*load);
        // The operands are the tensor, the indices, the first column, and the padding.
        let indices = op.args.get(1..op.args.len().saturating_sub(2)).unwrap_or_default();
        matches!(op.kind, OpKind::GatherRows { .. })
            && !indices.iter().all(|v| computed_ahead(kernel, *body, &inside, *v, 0))
    };
    kernel.block(*body).ops.iter().copied().filter(changes).collect()
}

fn is_zero(c: crate::ir::Const) -> bool {
    match c {
        crate::ir::Const::Int(_, v) => v == 0,
        crate::ir::Const::Float(_, v) => v.to_bits() == 0,
    }
}

/// Values that are defined in a block or in nested blocks.
pub(super) fn inside(kernel: &Kernel, block: Block) -> SortedSet<Value> {
    let mut found: SortedSet<Value> = kernel.block(block).args.iter().copied().collect();
    kernel.walk_block(block, &mut |_, op| {
        found.extend(&op.results);
        for region in &op.regions {
            found.extend(&kernel.block(*region).args);
        }
    });
    found
}

/// Whether a value of a loop's body can be computed for a later iteration, because it is a function of the counter.
fn computed_ahead(kernel: &Kernel, body: Block, inside: &SortedSet<Value>, value: Value, depth: usize) -> bool {
    if !inside.contains(&value) {
        return true;
    }
    if kernel.block(body).args.first() == Some(&value) {
        return true;
    }
    // Definitions come before uses, so that the recursion ends; the limit keeps it from becoming too deep.
    let Some(op) = kernel.def_op(value).filter(|_| depth < 64) else { return false };
    let pure = matches!(
        op.kind,
        OpKind::Const(_)
            | OpKind::Unary(_)
            | OpKind::Binary(_)
            | OpKind::Cmp(_)
            | OpKind::Select
            | OpKind::Cast(_)
            | OpKind::Bitcast(_)
            | OpKind::Dim(_)
            | OpKind::Unflatten
            | OpKind::UnflattenGrouped(_)
            | OpKind::Index(_)
            | OpKind::Slice(_)
            | OpKind::ProgramId(_)
            | OpKind::NumPrograms(_)
            | OpKind::Ttg(TtgOp::Rematerialize)
    );
    let scalar = op.results.iter().all(|v| matches!(kernel.ty(*v), Ty::Scalar(_) | Ty::Tensor(..)));
    pure && scalar && op.args.iter().all(|v| computed_ahead(kernel, body, inside, *v, depth + 1))
}

/// Lowers a loop to a ring with D slots. Operations keep their numbers; new ones are appended. The result is not verified.
///
/// `None` if the loop is not one that [`candidates`] found.
#[must_use]
pub fn pipeline(kernel: &Kernel, candidate: &Candidate, slots: u32) -> Option<Kernel> {
    let parent = parent_of(kernel, candidate.op)?;
    let decl = ring(kernel, candidate, slots, kernel.op(candidate.op).loc)?;
    let bytes = u32::try_from(decl.bytes()).ok()?;
    let mut edit = Edit::new(kernel.clone());
    edit.kernel.pipes.push(decl);
    edit.loc = kernel.op(candidate.op).loc;
    from_zero(&mut edit, candidate.op)?;
    edit.put_before(parent, candidate.op);
    let body = *edit.kernel.op(candidate.op).regions.first()?;
    // No copy is in flight after the loop, so its shared memory may be reused.
    edit.raw(OpKind::Ttg(TtgOp::Finalize), &[], &[], Vec::new());
    edit.put_after(parent, candidate.op);
    // In the loop: the copies, the wait for them, the permission to read the stage.
    let first = *candidate.loads.first()?;
    edit.loc = kernel.op(first).loc;
    let pipe = Pipe::new(edit.kernel.pipes.len() - 1);
    copy(&mut edit, body, candidate, (pipe, bytes))?;
    let ready = edit.one(OpKind::Ttg(TtgOp::Ready(pipe)), &[])?;
    let stage = edit.one(OpKind::Ttg(TtgOp::WaitReady), &[ready])?;
    let perm = edit.one(OpKind::Ttg(TtgOp::ReadPerm), &[stage])?;
    for (field, load) in (0u8..).zip(&candidate.loads) {
        view(&mut edit, kernel, body, perm, (field, *load))?;
    }
    edit.put_before(body, first);
    for load in &candidate.loads {
        edit.take_out(body, *load);
    }
    // After the last MMA: the release of the slot.
    let consumed = edit.one(OpKind::Ttg(TtgOp::Consumed), &[perm])?;
    edit.op(OpKind::Ttg(TtgOp::Release), &[consumed])?;
    // Behind the last read and not at the end of the body: the sooner a slot is released, the sooner it is filled
    // again.
    let behind = last_reader(&edit.kernel, body, perm)?;
    edit.put_after(body, behind);
    if let Some(op) = edit.kernel.ops.get_mut(candidate.op.index()) {
        op.kind = OpKind::For(ForKind::Sequential);
    }
    Some(edit.kernel)
}

/// Replaces a loaded tile by the tile of the stage: where it lies if only MMAs read it, and otherwise in registers.
fn view(edit: &mut Edit, kernel: &Kernel, body: Block, perm: Value, (field, load): (u8, OpId)) -> Option<()> {
    let (elem, shape) = tile_of(kernel, load)?;
    let loaded = kernel.op(load).results[0];
    let view = edit.one(OpKind::Ttg(TtgOp::View { field, elem, shape }), &[perm])?;
    let multiplied = only_multiplied(kernel, body, loaded);
    let tile = if multiplied { view } else { edit.one(OpKind::Ttg(TtgOp::Read), &[view])? };
    edit.kernel.values[tile.index()].name = kernel.value(loaded).name.clone();
    edit.replace(loaded, tile);
    if multiplied {
        retype(&mut edit.kernel, view);
    }
    Some(())
}

/// Changes a loop over `lo..hi` with a variable `lo` to `0..n`: near 2³¹, `lo + 1` could overflow, and copies would be issued wrongly. Such
/// a loop has at most 2³¹ − 1 iterations.
pub(super) fn from_zero(edit: &mut Edit, looped: OpId) -> Option<()> {
    let op = edit.kernel.op(looped).clone();
    let ([lo, hi, ..], [body]) = (&op.args[..], &op.regions[..]) else { return None };
    // The checker of expanded loops wants a constant first counter, of which it shows that `lo - m` does not wrap
    // (theorem 15).
    if edit.kernel.int_constant(*lo).is_some() {
        return Some(());
    }
    // hi - lo wraps if it exceeds 2³¹ - 1: then it is negative although lo < hi, which the assertion finds. If hi ≤ lo,
    // there is no iteration, and n is 0.
    let some = edit.one(OpKind::Cmp(Pred::Lt), &[*lo, *hi])?;
    let [zero, span] = [edit.i32(0)?, edit.one(OpKind::Binary(BinOp::Sub), &[*hi, *lo])?];
    let n = edit.one(OpKind::Select, &[some, span, zero])?;
    let fits = edit.one(OpKind::Cmp(Pred::Ge), &[n, zero])?;
    let message = "a loop over stages has at most 2147483647 iterations".to_owned();
    edit.raw(OpKind::Assert(message), &[fits], &[], Vec::new());
    let old = *edit.kernel.block(*body).args.first()?;
    let outer = std::mem::take(&mut edit.pending);
    let new = edit.block_arg(*body, 0, Ty::I32)?;
    edit.define(OpKind::Binary(BinOp::Add), &[*lo, new], old);
    let first = *edit.kernel.block(*body).ops.first()?;
    edit.put_before(*body, first);
    edit.pending = outer;
    let op = edit.kernel.ops.get_mut(looped.index())?;
    (op.args[0], op.args[1]) = (zero, n);
    Some(())
}

fn ring(kernel: &Kernel, candidate: &Candidate, slots: u32, loc: Loc) -> Option<PipeDecl> {
    let mut fields = Vec::new();
    let mut names = Vec::new();
    for load in &candidate.loads {
        let (elem, shape) = tile_of(kernel, *load)?;
        fields.push(Field { elem, shape });
        names.extend(kernel.value(kernel.op(*load).results[0]).name.clone());
    }
    let name = (!names.is_empty()).then(|| names.join(", "));
    Some(PipeDecl { name, slots, fields, space: PipeSpace::Shared, loc })
}

fn tile_of(kernel: &Kernel, load: OpId) -> Option<(crate::ir::Elem, crate::ir::TileShape)> {
    let ty = kernel.ty(*kernel.op(load).results.first()?);
    Some((ty.elem(), ty.tile_shape()?))
}

/// `acquire; copy the tiles of this iteration`
fn copy(edit: &mut Edit, body: Block, candidate: &Candidate, (pipe, bytes): (Pipe, u32)) -> Option<()> {
    let counter = *edit.kernel.block(body).args.first()?;
    let mut ahead = Ahead { inside: inside(&edit.kernel, body), known: SortedMap::from([(counter, counter)]) };
    let slot = edit.one(OpKind::Ttg(TtgOp::Acquire(pipe)), &[])?;
    let mut args = vec![slot];
    for load in &candidate.loads {
        let op: Op = edit.kernel.op(*load).clone();
        let named = if let OpKind::Load(unit, shape) = op.kind {
            TtgOp::Source(unit, shape)
        } else if let OpKind::GatherRows { rows, width } = op.kind {
            TtgOp::SourceRows { rows, width }
        } else {
            return None;
        };
        let mut of = Vec::new();
        for arg in &op.args {
            of.push(ahead.value(edit, *arg)?);
        }
        args.push(edit.one(OpKind::Ttg(named), &of)?);
    }
    let kind = TtgOp::AsyncProduce { bytes, proxy: Proxy::Generic, skipped: None };
    edit.op(OpKind::Ttg(kind), &args).map(drop)
}

/// Values of a body that are computed before their place, for the copies at its beginning.
struct Ahead {
    inside: SortedSet<Value>,
    known: SortedMap<Value, Value>,
}

impl Ahead {
    fn value(&mut self, edit: &mut Edit, value: Value) -> Option<Value> {
        if let Some(done) = self.known.get(&value) {
            return Some(*done);
        }
        if !self.inside.contains(&value) {
            return Some(value);
        }
        // From results to operands, which were defined before: this ends. `known` keeps what was computed, so that each
        // operation is copied once.
        let Def::Result(id, _) = edit.kernel.value(value).def else { return None };
        let op = edit.kernel.op(id).clone();
        let mut args = Vec::new();
        for arg in &op.args {
            args.push(self.value(edit, *arg)?);
        }
        let results = edit.op(op.kind, &args)?;
        self.known.extend(op.results.iter().copied().zip(results));
        self.known.get(&value).copied()
    }
}

/// Changes the types of transposes of a tile in shared memory to shared memory.
fn retype(kernel: &mut Kernel, view: Value) {
    let mut open = vec![view];
    // Each transposed tile is the result of one operation, so none is pushed twice.
    while let Some(value) = open.pop() {
        let moved: Vec<Value> = kernel
            .ops
            .iter()
            .filter(|op| matches!(op.kind, OpKind::Permute(_)) && op.args.first() == Some(&value))
            .map(|op| op.results[0])
            .collect();
        for result in moved {
            let ty = &mut kernel.values[result.index()].ty;
            if let Ty::Tile(elem, shape) = *ty {
                *ty = Ty::Smem(elem, shape);
            }
            open.push(result);
        }
    }
}

/// The last operation of a block that reads a stage, directly or in its regions.
fn last_reader(kernel: &Kernel, body: Block, perm: Value) -> Option<OpId> {
    let mut stage: SortedSet<Value> = SortedSet::from([perm]);
    let mut last = None;
    for id in &kernel.block(body).ops {
        let mut reads = false;
        let mut visit = |op: &Op| {
            if op.args.iter().any(|v| stage.contains(v)) {
                reads = true;
                stage.extend(op.results.iter().filter(|v| matches!(kernel.ty(**v), Ty::Smem(..))));
            }
        };
        let op = kernel.op(*id);
        visit(op);
        let mut inner = Vec::new();
        op.regions.iter().for_each(|r| kernel.walk_block(*r, &mut |_, op| inner.push(op.clone())));
        inner.iter().for_each(&mut visit);
        if reads {
            last = Some(*id);
        }
    }
    last
}

/// The block that contains an operation.
fn parent_of(kernel: &Kernel, op: OpId) -> Option<Block> {
    (0..kernel.blocks.len()).map(Block::new).find(|b| kernel.block(*b).ops.contains(&op))
}
