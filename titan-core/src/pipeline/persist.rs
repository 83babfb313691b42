//! Makes a kernel with roles and a grid persistent: its programs loop over the tiles of the grid, so that the copies for the next tile run
//! while the role that computes stores the current one.
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
//! `%e` and `%f` are the extents of the grid, computed from those of the arguments. Concurrently running programs have tiles of few rows
//! and few columns ([`crate::ir::grouped`]), which stay in the L2 cache.
//!
//! The caller verifies the result. The number of programs of the grid must be less than 2³¹, which becomes a requirement.
//!
//! Deliberately absent: kernels whose programs do different amounts of work, which the device balances better; grids that are computed from
//! values other than extents and constants.

use super::edit::Edit;
use super::grid::Asks;
use crate::analysis::cluster::Differing;
use crate::ir::{
    BinOp, Block, DimSpec, ForKind, GridSpec, HostExpr, HostOp, Kernel, OpId, OpKind, ParamKind, TtgOp, Ty, Value,
};
use std::fmt;

/// The reason why a kernel cannot be made persistent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoWalk {
    /// Its programs loop over tiles already.
    OwnGrid,
    /// It has no roles.
    NoRoles,
    /// Its programs do different amounts of work.
    Uneven,
    /// Operations around the roles depend on the program.
    OutsideRoles,
    /// The grid cannot be computed on the device.
    Grid,
}

impl fmt::Display for NoWalk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NoWalk::OwnGrid => "the kernel loops over tiles itself",
            NoWalk::NoRoles => "no role could copy for the next tile while another one stores",
            NoWalk::Uneven => "programs differ in how much they do, which the device balances",
            NoWalk::OutsideRoles => "code outside of the roles depends on the program",
            NoWalk::Grid => "the grid depends on more than extents and constants",
        })
    }
}

/// The persistent kernel, with output tiles in groups of `rows` rows.
///
/// # Errors
/// The reason why the kernel cannot be made persistent.
pub fn persistent(kernel: &Kernel, rows: i32) -> Result<Kernel, NoWalk> {
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
        walk(&mut edit, region, extents, rows).ok_or(NoWalk::Grid)?;
    }
    require_programs(&mut edit.kernel, extents).ok_or(NoWalk::Grid)?;
    edit.kernel.sig.grid = GridSpec::Persistent;
    Ok(edit.kernel.canonical())
}

/// Requires that a grid has less than 2³¹ programs, and returns their number.
pub(super) fn require_programs(kernel: &mut Kernel, extents: &[HostExpr]) -> Option<HostExpr> {
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

/// A role that executes its operations for every tile of the grid.
fn walk(edit: &mut Edit, region: Block, extents: &[HostExpr], rows: i32) -> Option<()> {
    let ops = edit.kernel.block(region).ops.clone();
    let (inner, end) = ops.split_at(ops.len().checked_sub(2)?);
    let ends = [OpKind::Ttg(TtgOp::Finalize), OpKind::Yield];
    if !end.iter().zip(ends).all(|(id, kind)| edit.kernel.op(*id).kind == kind) {
        return None;
    }
    edit.loc = edit.kernel.op(end[0]).loc;
    let mut all = Vec::new();
    for extent in extents {
        all.push(computed(edit, extent)?);
    }
    let (zero, one) = (edit.i32(0)?, edit.i32(1)?);
    let mut number = one;
    for extent in &all {
        number = edit.one(OpKind::Binary(BinOp::Mul), &[number, *extent])?;
    }
    let body = edit.block(&[Ty::I32], |edit, args| {
        // A permutation of the numbers of tiles, so that each tile is computed once, in whatever order.
        let kind = if all.len() > 1 { OpKind::UnflattenGrouped(rows) } else { OpKind::Unflatten };
        let places = edit.op(kind, &[&[args[0]], &all[..]].concat())?;
        edit.pending.extend(inner);
        edit.raw(OpKind::Continue(0), &[], &[], Vec::new());
        for id in (0..edit.kernel.ops.len()).map(OpId::new) {
            let OpKind::ProgramId(axis) = edit.kernel.op(id).kind else { continue };
            let old = edit.kernel.op(id).results.first().copied().filter(|_| is_within(&edit.kernel, inner, id));
            if let Some(old) = old {
                let place = places.get(usize::from(axis)).copied();
                // An axis that the grid does not have is of extent 1, and its index is 0.
                edit.replace(old, place.unwrap_or(zero));
                edit.pending.retain(|pending| *pending != id);
                edit.kernel.blocks.iter_mut().for_each(|block| block.ops.retain(|op| *op != id));
            }
        }
        Some(())
    })?;
    edit.raw(OpKind::For(ForKind::Distributed), &[zero, number, one], &[], vec![body]);
    edit.pending.extend(end);
    let ops = std::mem::take(&mut edit.pending);
    edit.kernel.blocks[region.index()].ops = ops;
    Some(())
}

/// Whether an operation is one of these, or nested in one of them.
fn is_within(kernel: &Kernel, ops: &[OpId], id: OpId) -> bool {
    ops.iter().any(|outer| {
        let mut found = *outer == id;
        for region in &kernel.op(*outer).regions {
            kernel.walk_block(*region, &mut |inner, _| found |= inner == id);
        }
        found
    })
}

/// The extent of a grid as a value of the kernel.
pub(super) fn computed(edit: &mut Edit, extent: &HostExpr) -> Option<Value> {
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
