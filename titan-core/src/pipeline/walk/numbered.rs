//! Numbers the tiles of a grid in groups of rows, so that concurrently running programs read tiles of few rows and few columns, which
//! stay in the L2 cache ("grouped ordering", "threadblock swizzling").
//!
//! The number is the index of the program:
//!
//! ```text
//! grid(%e, %f)                         grid(%e * %f)
//! %m = program_id<0>                   %i = program_id<0>
//! %n = program_id<1>          ─▶       %m, %n = unflatten_grouped<8> %i, %e, %f
//! ```
//!
//! or, for a kernel with roles, it is counted by a loop of persistent programs, so that the copies for the next tile run while the role that
//! computes stores the current one:
//!
//! ```text
//! ttg.roles producer {                 ttg.roles producer {
//!     %m = program_id<0>                   for %i = 0 to %e * %f step 1 distributed {
//!     %n = program_id<1>        ─▶             %m, %n = unflatten_grouped<8> %i, %e, %f
//!     ..                                       ..
//!     ttg.pipeline.finalize                }
//! }                                        ttg.pipeline.finalize
//! ```
//!
//! `%e` and `%f` are the extents of the grid, computed from those of the arguments. A device starts programs in the order of axis 0. On a
//! machine that runs 108 programs concurrently, an unchanged matrix product of 64×64 tiles reads 64 tiles of A and 2 of B in every step; in
//! groups of 8 rows it reads 8 and 14.
//!
//! The caller verifies the result, including that the parts of an output are disjoint with the new numbers. The number of programs of the
//! grid must be less than 2³¹, which becomes a requirement.
//!
//! Deliberately absent: kernels whose programs do different amounts of work, which the device balances better than a loop; kernels whose
//! programs do not share tiles along two axes of the grid; kernels that use the number of programs; grids that are computed from values
//! other than extents and constants.

use super::NoWalk;
use super::asks::Asks;
use crate::analysis::cluster::Differing;
use crate::analysis::uses::Tree;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{
    BinOp, Block, Def, DimSpec, ForKind, GridSpec, HostExpr, HostOp, Kernel, OpId, OpKind, ParamKind, TtgOp, Ty, Value,
};
use crate::pipeline::edit::Edit;

/// The persistent kernel, with output tiles in groups of `rows` rows.
pub(super) fn persistent(kernel: &Kernel, rows: i32) -> Result<Kernel, NoWalk> {
    let GridSpec::Extents(extents) = &kernel.sig.grid else { return Err(NoWalk::OwnGrid) };
    let ops = &kernel.block(kernel.body).ops;
    let roles = ops.iter().find(|id| kernel.op(**id).kind == OpKind::Ttg(TtgOp::Roles)).ok_or(NoWalk::NoRoles)?;
    let regions = kernel.op(*roles).regions.clone();
    // A program that walks over tiles has a fixed share of them. If tiles differ in work, the device would have
    // balanced them better.
    if !is_even(kernel, &regions) {
        return Err(NoWalk::Uneven);
    }
    if !is_in_roles(kernel, &regions) {
        return Err(NoWalk::OutsideRoles);
    }
    if !(1..=3).contains(&extents.len()) {
        return Err(NoWalk::Grid);
    }
    let mut edit = Edit::new(kernel.clone());
    for region in regions {
        looped(&mut edit, region, extents, rows).ok_or(NoWalk::Grid)?;
    }
    require_programs(&mut edit.kernel, extents).ok_or(NoWalk::Grid)?;
    edit.kernel.sig.grid = GridSpec::Persistent;
    Ok(edit.kernel.canonical())
}

/// The kernel with programs in groups of `rows` rows.
pub(super) fn grouped(kernel: &Kernel, rows: i32) -> Result<Kernel, NoWalk> {
    let GridSpec::Extents(extents) = kernel.sig.grid.clone() else { return Err(NoWalk::OwnGrid) };
    if !(2..=3).contains(&extents.len()) || !asks_only_for_its_place(kernel) || !shares_tiles(kernel, extents.len()) {
        return Err(NoWalk::NotShared);
    }
    let mut edit = Edit::new(kernel.clone());
    in_front(&mut edit, &extents, rows).ok_or(NoWalk::Grid)?;
    let programs = require_programs(&mut edit.kernel, &extents).ok_or(NoWalk::Grid)?;
    edit.kernel.sig.grid = GridSpec::Extents(vec![programs]);
    Ok(edit.kernel.canonical())
}

/// Requires that a grid has less than 2³¹ programs, and returns their number.
fn require_programs(kernel: &mut Kernel, extents: &[HostExpr]) -> Option<HostExpr> {
    let number = extents.iter().cloned().reduce(|a, b| HostExpr::binary(HostOp::Mul, a, b))?;
    let most = HostExpr::Const(i64::from(i32::MAX));
    kernel.sig.requires.push(HostExpr::binary(HostOp::Le, number.clone(), most));
    Some(number)
}

/// Whether all programs do the same amount of work: no loop or branch depends on the program.
fn is_even(kernel: &Kernel, regions: &[Block]) -> bool {
    let differing = Differing::between_programs(kernel);
    let mut even = true;
    for region in regions {
        kernel.walk_block(*region, &mut |_, op| {
            even &= !matches!(op.kind, OpKind::For(_) | OpKind::Loop | OpKind::If) || !differing.control(op);
        });
    }
    even
}

/// Whether only operations in roles use the program's index, and none uses the number of programs.
fn is_in_roles(kernel: &Kernel, regions: &[Block]) -> bool {
    let mut inside = Vec::new();
    for region in regions {
        kernel.walk_block(*region, &mut |id, _| inside.push(id));
    }
    let mut right = true;
    kernel.walk(&mut |id, op| {
        let inside = inside.contains(&id);
        right &= match Asks::of(kernel, op) {
            Asks::Nothing => true,
            Asks::Index(_) => inside,
            Asks::Number(_) | Asks::More => false,
        };
        right &= !inside || op.kind != OpKind::Return;
    });
    right
}

/// Whether no operation uses the number of programs, and no loop distributes its iterations over them.
fn asks_only_for_its_place(kernel: &Kernel) -> bool {
    let mut only = true;
    kernel.walk(&mut |_, op| {
        only &= matches!(Asks::of(kernel, op), Asks::Nothing | Asks::Index(_));
    });
    only
}

/// Computes the place of the program in front of all operations, from its number.
fn in_front(edit: &mut Edit, extents: &[HostExpr], rows: i32) -> Option<()> {
    let body = edit.kernel.body;
    let all = edit.kernel.block(body).ops.clone();
    let first = *all.first()?;
    edit.loc = edit.kernel.op(first).loc;
    let extents = extents.iter().map(|extent| computed(edit, extent)).collect::<Option<Vec<Value>>>()?;
    // The operations that ask for the place are found before one that asks for the number is added.
    let asking = program_ids(&edit.kernel, &all);
    let number = edit.one(OpKind::ProgramId(0), &[])?;
    let places = places(edit, number, &extents, rows)?;
    give(edit, asking, &places)?;
    edit.put_before(body, *edit.kernel.block(body).ops.first()?);
    Some(())
}

/// A role that executes its operations for every tile of the grid.
fn looped(edit: &mut Edit, region: Block, extents: &[HostExpr], rows: i32) -> Option<()> {
    let ops = edit.kernel.block(region).ops.clone();
    let (inner, end) = ops.split_at(ops.len().checked_sub(2)?);
    let ends = [OpKind::Ttg(TtgOp::Finalize), OpKind::Yield];
    if !end.iter().zip(ends).all(|(id, kind)| edit.kernel.op(*id).kind == kind) {
        return None;
    }
    edit.loc = edit.kernel.op(end[0]).loc;
    let extents = extents.iter().map(|extent| computed(edit, extent)).collect::<Option<Vec<Value>>>()?;
    let (zero, one) = (edit.i32(0)?, edit.i32(1)?);
    let mut number = one;
    for extent in &extents {
        number = edit.one(OpKind::Binary(BinOp::Mul), &[number, *extent])?;
    }
    let asking = program_ids(&edit.kernel, inner);
    let body = edit.block(&[Ty::I32], |edit, args| {
        let mut places = places(edit, args[0], &extents, rows)?;
        // An axis that the grid does not have is of extent 1, and its index is 0.
        places.resize(3, zero);
        edit.pending.extend(inner);
        edit.raw(OpKind::Continue(0), &[], &[], Vec::new());
        give(edit, asking, &places)
    })?;
    edit.raw(OpKind::For(ForKind::Distributed), &[zero, number, one], &[], vec![body]);
    edit.pending.extend(end);
    let ops = std::mem::take(&mut edit.pending);
    edit.kernel.blocks[region.index()].ops = ops;
    Some(())
}

/// The coordinates of the tile with a number: a permutation of all tiles, so that each is computed once, in whatever order.
fn places(edit: &mut Edit, number: Value, extents: &[Value], rows: i32) -> Option<Vec<Value>> {
    let kind = if extents.len() > 1 { OpKind::UnflattenGrouped(rows) } else { OpKind::Unflatten };
    edit.op(kind, &[&[number], extents].concat())
}

/// An operation that asks for the program's index along an axis, and its result.
type Asking = (OpId, u8, Value);

/// The operations among these, and nested in them, that ask for the program's index.
fn program_ids(kernel: &Kernel, ops: &[OpId]) -> Vec<Asking> {
    let mut found = Vec::new();
    let mut see = |id: OpId| {
        let op = kernel.op(id);
        if let (OpKind::ProgramId(axis), [value]) = (&op.kind, &op.results[..]) {
            found.push((id, *axis, *value));
        }
    };
    for id in ops {
        see(*id);
        kernel.op(*id).regions.iter().for_each(|region| kernel.walk_block(*region, &mut |inner, _| see(inner)));
    }
    found
}

/// Replaces what operations that ask for the program's index give by the coordinates of a tile, and removes these operations.
fn give(edit: &mut Edit, asking: Vec<Asking>, places: &[Value]) -> Option<()> {
    for (id, axis, value) in asking {
        edit.replace(value, *places.get(usize::from(axis))?);
        edit.pending.retain(|pending| *pending != id);
        edit.kernel.blocks.iter_mut().for_each(|block| block.ops.retain(|op| *op != id));
    }
    Some(())
}

/// The extent of a grid as a value of the kernel.
fn computed(edit: &mut Edit, extent: &HostExpr) -> Option<Value> {
    match extent {
        HostExpr::Const(n) => edit.i32(*n).filter(|_| i32::try_from(*n).is_ok()),
        HostExpr::Dim(param, axis) => {
            let tensor = edit.kernel.param(*param);
            edit.one(OpKind::Dim(u8::try_from(*axis).ok()?), &[tensor])
        }
        HostExpr::Symbol(symbol) => {
            let bound = edit.kernel.sig.params.iter().enumerate().find_map(|(param, p)| match &p.kind {
                ParamKind::Tensor { optional: false, shape, .. } => {
                    shape.iter().position(|dim| *dim == DimSpec::Bind(*symbol)).map(|axis| (param, axis))
                }
                ParamKind::Tensor { optional: true, .. } | ParamKind::Scalar(_) => None,
            });
            let (param, axis) = bound?;
            computed(edit, &HostExpr::Dim(param, axis))
        }
        HostExpr::Binary(HostOp::Cdiv, a, b) => {
            let HostExpr::Const(by @ 1..) = **b else { return None };
            if !matches!(**a, HostExpr::Dim(..) | HostExpr::Symbol(_)) {
                return None;
            }
            let x = computed(edit, a)?;
            edit.cdiv(x, by)
        }
        HostExpr::Scalar(_) | HostExpr::Not(_) | HostExpr::Binary(..) => None,
    }
}

/// Whether loops load tiles that are the same for all programs in a row of the grid's last two axes, and others that are the same for all
/// programs in a column.
fn shares_tiles(kernel: &Kernel, axes: usize) -> bool {
    let (Ok(last), Ok(before)) = (u8::try_from(axes - 1), u8::try_from(axes - 2)) else { return false };
    let mut loads: Vec<SortedSet<u8>> = Vec::new();
    let mut axes = Axes { kernel, tree: Tree::new(kernel), known: SortedMap::new() };
    kernel.walk(&mut |_, op| {
        let OpKind::For(_) = op.kind else { return };
        for region in &op.regions {
            kernel.walk_block(*region, &mut |_, inner| {
                if matches!(inner.kind, OpKind::Load(..) | OpKind::Ttg(TtgOp::Source(..))) {
                    loads.push(axes.of_all(&inner.args));
                }
            });
        }
    });
    let of = |axis: u8, other: u8| loads.iter().any(|load| load.contains(&axis) && !load.contains(&other));
    of(last, before) && of(before, last)
}

/// The axes of the grid on which values depend.
struct Axes<'k> {
    kernel: &'k Kernel,
    tree: Tree,
    known: SortedMap<Value, SortedSet<u8>>,
}

impl Axes<'_> {
    fn of_all(&mut self, values: &[Value]) -> SortedSet<u8> {
        values.iter().flat_map(|value| self.of(*value)).collect()
    }

    fn of(&mut self, value: Value) -> SortedSet<u8> {
        if let Some(known) = self.known.get(&value) {
            return known.clone();
        }
        // A value that depends on itself through a loop depends on the initial values of the loop.
        self.known.insert(value, SortedSet::new());
        let kernel = self.kernel;
        let found = match kernel.value(value).def {
            Def::Param(_) => SortedSet::new(),
            Def::BlockArg(block, _) => {
                let around = self.tree.owner(block).map(|id| kernel.op(id));
                around.map_or_else(SortedSet::new, |op| self.of_all(&op.args))
            }
            Def::Result(id, _) => {
                let op = kernel.op(id);
                if let OpKind::ProgramId(axis) = op.kind { SortedSet::from([axis]) } else { self.of_all(&op.args) }
            }
        };
        self.known.insert(value, found.clone());
        found
    }
}
