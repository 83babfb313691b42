//! Distributes the tiles of a persistent kernel to clusters of programs, so that one copy of an input tile can be for all of them.
//!
//! The programs of a cluster compute tiles that are adjacent along one axis. With two programs along the first axis:
//!
//! ```text
//! for %i = 0 to %e * %f step 1 distributed {        for %i = 0 to cdiv(%e, 2) * %f step 1 distributed {
//!     %m, %n = unflatten %i, %e, %f          ─▶         %q, %n = unflatten %i, cdiv(%e, 2), %f
//!     ..                                                %m = add (mul %q, 2), ttg.nv.cluster.rank
//! ```
//!
//! Every tile belongs to one program: `(%q, %n)` to one cluster, and `%m` determines the quotient and the rank. If the extent is not a
//! multiple of the cluster's size, some programs have tiles that do not exist. These are outside of the tensors that are written: each
//! store in the loop is of a tile at `%m`, and `%e` is the number of such tiles of the tensor. What a program loads for a tile that does
//! not exist is padding, or inside of an input.
//!
//! Deliberately absent: kernels that use program ids, and stores that are not of tiles; which copies are for all programs, which is decided
//! when rings are lowered.

use super::NoWalk;
use super::asks::Asks;
use crate::analysis::number::Numbers;
use crate::ir::{
    BinOp, Block, Def, DimSpec, Effect, ForKind, HostExpr, Kernel, NvOp, Op, OpId, OpKind, ParamKind, Pred, Symbol,
    TileShape, TtgOp, Ty, Unit, Value,
};
use crate::pipeline::edit::Edit;

/// The kernel with its tiles distributed to clusters of `size` programs, which are adjacent along the `axis`-th of the last two coordinates
/// of tiles.
///
/// # Errors
/// The reason why the tiles of the kernel cannot be distributed to clusters.
pub(super) fn deal(kernel: &Kernel, size: u32, axis: usize) -> Result<Kernel, NoWalk> {
    let alone = kernel.laid_out.as_deref().is_some_and(|laid| laid.cluster == 1);
    if !size.is_power_of_two() || size < 2 || !alone {
        return Err(NoWalk::Size);
    }
    let (mut loops, mut programs) = (Vec::new(), Vec::new());
    let mut asks = false;
    kernel.walk(&mut |id, op| {
        loops.extend((op.kind == OpKind::For(ForKind::Distributed)).then_some(id));
        match Asks::of(kernel, op) {
            Asks::Number(0) => programs.push(id),
            // The loops are dealt to clusters below.
            Asks::More if op.kind.is_loop() => {}
            Asks::Number(_) | Asks::Index(_) | Asks::More => asks = true,
            Asks::Nothing => {}
        }
    });
    if loops.is_empty() {
        return Err(NoWalk::NoLoop);
    }
    if asks {
        return Err(NoWalk::AsksProgram);
    }
    let mut edit = Edit::new(kernel.clone());
    for id in &programs {
        of_clusters(&mut edit, *id, &loops, size).ok_or(NoWalk::AsksProgram)?;
    }
    for id in loops {
        let dealt = Dealt::of(kernel, id, axis).ok_or(NoWalk::Coordinates)?;
        dealt.is_clipped(kernel).ok_or(NoWalk::NotClipped)?;
        dealt.apply(&mut edit, i64::from(size)).ok_or(NoWalk::Coordinates)?;
    }
    // Writes outside of such loops are executed by each program for itself.
    if writes_outside(kernel) {
        return Err(NoWalk::Outside);
    }
    edit.kernel.laid_out.as_deref_mut().ok_or(NoWalk::Size)?.cluster = size;
    Ok(edit.kernel.canonical())
}

/// The extent along which the programs of a cluster have adjacent tiles, and the extent of a tile along it. If there is only one tile, all
/// but one program of a cluster have none.
#[must_use]
pub fn extent(kernel: &Kernel, axis: usize) -> Option<(HostExpr, i64)> {
    let mut looped = None;
    kernel.walk(&mut |id, op| looped = looped.or((op.kind == OpKind::For(ForKind::Distributed)).then_some(id)));
    let dealt = Dealt::of(kernel, looped?, axis)?;
    let counted = *kernel.op(dealt.unflatten).args.get(1 + dealt.at)?;
    let ((param, axis), tile) = tiles_of(kernel, counted)?;
    Some((symbol(kernel, (param, axis)).map_or(HostExpr::Dim(param, axis), HostExpr::Symbol), tile))
}

/// Replaces the number of programs by the number of clusters, where it only determines the number of a tile among the program's own tiles.
fn of_clusters(edit: &mut Edit, id: OpId, loops: &[OpId], size: u32) -> Option<()> {
    let kernel = &edit.kernel;
    let programs = *kernel.op(id).results.first()?;
    let index = |looped: &OpId| kernel.block(*kernel.op(*looped).regions.first()?).args.first().copied();
    let indices: Vec<Value> = loops.iter().filter_map(index).collect();
    let nth = |op: &Op| nth(kernel, op).is_some_and(|tile| indices.contains(&tile));
    if !kernel.ops.iter().filter(|op| op.args.contains(&programs)).all(nth) {
        return None;
    }
    let block = block_of(kernel, id)?;
    edit.loc = kernel.op(id).loc;
    edit.replace_by(programs, |edit, programs| {
        let size = edit.i32(size.into())?;
        edit.one(OpKind::Binary(BinOp::Div), &[programs, size])
    })?;
    edit.put_after(block, id);
    Some(())
}

/// The tile number whose quotient by the number of programs an operation computes.
fn nth(kernel: &Kernel, op: &Op) -> Option<Value> {
    let (OpKind::Binary(BinOp::Div), [tile, by]) = (&op.kind, &op.args[..]) else { return None };
    (kernel.def_op(*by)?.kind == OpKind::NumPrograms(0)).then_some(*tile)
}

fn writes_outside(kernel: &Kernel) -> bool {
    let mut inside = Vec::new();
    kernel.walk(&mut |_, op| {
        if op.kind == OpKind::For(ForKind::Distributed) {
            op.regions.iter().for_each(|block| kernel.walk_block(*block, &mut |id, _| inside.push(id)));
        }
    });
    let mut found = false;
    kernel.walk(&mut |id, op| found |= may_write(op) && !inside.contains(&id));
    found
}

fn may_write(op: &Op) -> bool {
    matches!(op.kind.effect(), Effect::Write | Effect::Atomic | Effect::Print)
}

/// The tensor and coordinates of the tile that an operation stores, and the tile's shape; `None` if it stores something else.
fn stored(kernel: &Kernel, op: &Op) -> Option<(Vec<Value>, TileShape)> {
    if let OpKind::Nv(NvOp::BulkStore { tensor: true, .. }) = op.kind {
        let named = kernel.def_op(*op.args.first()?)?;
        let OpKind::Ttg(TtgOp::Source(Unit::Tile, shape)) = named.kind else { return None };
        return Some((named.args.clone(), shape));
    }
    let OpKind::Store(Unit::Tile) = op.kind else { return None };
    Some((op.args.clone(), kernel.ty(*op.args.last()?).tile_shape()?))
}

/// A loop over tiles.
struct Dealt {
    looped: OpId,
    body: Block,
    /// The operation that computes the coordinates of a tile.
    unflatten: OpId,
    /// Its extents, each as a value that is defined before the loop: the operation may take them from inside of it.
    extents: Vec<Value>,
    /// The coordinate in which the programs of a cluster differ.
    at: usize,
}

impl Dealt {
    fn of(kernel: &Kernel, looped: OpId, axis: usize) -> Option<Dealt> {
        let op = kernel.op(looped);
        let (body, [lo, hi, step, ..]) = (*op.regions.first()?, &op.args[..]) else { return None };
        let index = *kernel.block(body).args.first()?;
        if kernel.int_constant(*lo) != Some(0) || kernel.int_constant(*step) != Some(1) {
            return None;
        }
        let uses = |op: &Op| op.args.contains(&index) && nth(kernel, op) != Some(index);
        let users: Vec<OpId> = (0..kernel.ops.len()).map(OpId::new).filter(|id| uses(kernel.op(*id))).collect();
        let [unflatten] = users[..] else { return None };
        let made = kernel.op(unflatten);
        let own = kernel.block(body).ops.contains(&unflatten);
        if !own
            || !matches!(made.kind, OpKind::Unflatten | OpKind::UnflattenGrouped(_))
            || made.args.first() != Some(&index)
        {
            return None;
        }
        let extents = made.args.get(1..)?;
        let at = (extents.len() + axis).checked_sub(2).filter(|at| *at < extents.len())?;
        // Each extent is one of the factors of the loop's bound. The factor is defined before the loop, since the bound is.
        // Equal numbers are equal values, so that the product of the extents is the bound, and each number below it is
        // one tile.
        let numbers = Numbers::new(kernel);
        let mut factors = factors(kernel, *hi);
        let mut before = Vec::new();
        for extent in extents {
            let number = numbers.of(*extent)?;
            let found = factors.iter().position(|factor| numbers.of(*factor) == Some(number))?;
            before.push(factors.swap_remove(found));
        }
        let is_one = |factor: &Value| kernel.int_constant(*factor) == Some(1);
        factors.iter().all(is_one).then_some(Dealt { looped, body, unflatten, extents: before, at })
    }

    /// Whether every write in the loop is of a tile that is outside of its tensor if the tile of the loop does not exist.
    fn is_clipped(&self, kernel: &Kernel) -> Option<()> {
        let made = kernel.op(self.unflatten);
        let (extent, place) = (*made.args.get(1 + self.at)?, *made.results.get(self.at)?);
        let (tensor, tile) = tiles_of(kernel, extent)?;
        let mut clipped = true;
        kernel.walk_block(self.body, &mut |_, op| {
            let stored = match op.kind.effect() {
                Effect::Pure | Effect::Read | Effect::Control | Effect::Pipeline => return,
                Effect::Write => stored(kernel, op),
                // Reads of elements that do not exist may trap.
                Effect::Trap | Effect::Atomic | Effect::Print => None,
            };
            let outside = stored.and_then(|(args, shape)| {
                let extents = Vec::<u32>::from(shape);
                (0..extents.len()).find(|axis| {
                    let at = args.get(1 + axis).and_then(|v| scaled(kernel, *v));
                    let (Some((value, by, plus)), Some(param)) = (at, param(kernel, args[0])) else { return false };
                    let whole = i64::from(extents[*axis]) * by;
                    value == place
                        && (0..by).contains(&plus)
                        && whole == tile
                        && same_extent(kernel, (param, *axis), tensor)
                })
            });
            // One store that is not clipped, and a program without a tile would write into another one's.
            clipped &= outside.is_some();
        });
        clipped.then_some(())
    }

    fn apply(&self, edit: &mut Edit, size: i64) -> Option<()> {
        let made = edit.kernel.op(self.unflatten).clone();
        let parent = block_of(&edit.kernel, self.looped)?;
        edit.loc = edit.kernel.op(self.looped).loc;
        let clusters = edit.cdiv(*self.extents.get(self.at)?, size)?;
        let mut args = made.args.clone();
        args.splice(1.., self.extents.iter().copied());
        args[1 + self.at] = clusters;
        let mut total = edit.i32(1)?;
        for extent in &args[1..] {
            // With a rounded-up number of clusters along the axis, clusters times programs cover all tiles, and less
            // than a cluster beyond them.
            total = edit.one(OpKind::Binary(BinOp::Mul), &[total, *extent])?;
        }
        edit.put_before(parent, self.looped);
        edit.kernel.ops[self.looped.index()].args[1] = total;
        edit.kernel.ops[self.unflatten.index()].args = args;
        edit.replace_by(made.results[self.at], |edit, old| {
            let size = edit.i32(size)?;
            let rank = edit.one(OpKind::Nv(NvOp::ClusterRank), &[])?;
            let first = edit.one(OpKind::Binary(BinOp::Mul), &[old, size])?;
            edit.one(OpKind::Binary(BinOp::Add), &[first, rank])
        })?;
        edit.put_after(self.body, self.unflatten);
        Some(())
    }
}

fn block_of(kernel: &Kernel, id: OpId) -> Option<Block> {
    (0..kernel.blocks.len()).map(Block::new).find(|block| kernel.block(*block).ops.contains(&id))
}

/// The factors of a product.
fn factors(kernel: &Kernel, value: Value) -> Vec<Value> {
    let Some(Op { kind: OpKind::Binary(BinOp::Mul), args, .. }) = kernel.def_op(value) else { return vec![value] };
    args.iter().flat_map(|arg| factors(kernel, *arg)).collect()
}

/// A value as `value · by + plus`, with constants.
fn scaled(kernel: &Kernel, at: Value) -> Option<(Value, i64, i64)> {
    let Some(op) = kernel.def_op(at) else { return Some((at, 1, 0)) };
    match (&op.kind, &op.args[..]) {
        (OpKind::Binary(BinOp::Add), [a, b]) => {
            let (plus, (value, by, more)) = (kernel.int_constant(*b)?, scaled(kernel, *a)?);
            Some((value, by, more.checked_add(plus)?))
        }
        (OpKind::Binary(BinOp::Mul), [a, b]) => Some((*a, kernel.int_constant(*b)?, 0)),
        _ => Some((at, 1, 0)),
    }
}

/// A tensor parameter and an axis of it.
type Axis = (usize, usize);

/// The axis of a tensor and the extent of a tile along it, if a value is the number of tiles that cover the axis.
fn tiles_of(kernel: &Kernel, value: Value) -> Option<(Axis, i64)> {
    let of = |value: Value, kind: OpKind| kernel.def_op(value).filter(|op| op.kind == kind).map(|op| &op.args[..]);
    let [whole, more] = of(value, OpKind::Binary(BinOp::Add))? else { return None };
    let [extent, by] = of(*whole, OpKind::Binary(BinOp::Div))? else { return None };
    let tile = kernel.int_constant(*by)?;
    let more = kernel.def_op(*more).filter(|op| matches!(op.kind, OpKind::Cast(_)))?;
    let some = kernel.def_op(*more.args.first()?)?;
    let ([rest, zero], OpKind::Cmp(Pred::Ne | Pred::Gt)) = (&some.args[..], &some.kind) else { return None };
    let again = of(*rest, OpKind::Binary(BinOp::Rem))?;
    let numbers = Numbers::new(kernel);
    let same = |a: &Value, b: &Value| numbers.of(*a).is_some() && numbers.of(*a) == numbers.of(*b);
    let right = same(again.first()?, extent) && same(again.get(1)?, by) && kernel.int_constant(*zero) == Some(0);
    let dim = kernel.def_op(*extent)?;
    let OpKind::Dim(axis) = dim.kind else { return None };
    let param = param(kernel, *dim.args.first()?)?;
    (right && tile > 0).then_some(((param, usize::from(axis)), tile))
}

/// The parameter that a value is.
fn param(kernel: &Kernel, value: Value) -> Option<usize> {
    match kernel.value(value).def {
        Def::Param(param) if matches!(kernel.ty(value), Ty::Tensor(..)) => Some(param),
        Def::Param(_) | Def::Result(..) | Def::BlockArg(..) => None,
    }
}

/// The shape name of an extent in the signature.
fn symbol(kernel: &Kernel, (param, axis): Axis) -> Option<Symbol> {
    match &kernel.sig.params.get(param)?.kind {
        ParamKind::Tensor { shape, optional: false, .. } => match shape.get(axis)? {
            DimSpec::Bind(symbol) | DimSpec::Equals(HostExpr::Symbol(symbol)) => Some(*symbol),
            DimSpec::Any | DimSpec::Equals(_) => None,
        },
        ParamKind::Tensor { .. } | ParamKind::Scalar(_) => None,
    }
}

/// Whether two axes have the same extent in every launch.
fn same_extent(kernel: &Kernel, a: Axis, b: Axis) -> bool {
    a == b || symbol(kernel, a).is_some() && symbol(kernel, a) == symbol(kernel, b)
}
