//! Numbers the programs of a grid in groups of rows, so that concurrently running programs read tiles of few rows and few columns, which
//! stay in the L2 cache ("grouped ordering", "threadblock swizzling").
//!
//! ```text
//! grid(%e, %f)                         grid(%e * %f)
//! %m = program_id<0>                   %i = program_id<0>
//! %n = program_id<1>          ─▶       %m, %n = unflatten_grouped<8> %i, %e, %f
//! ```
//!
//! A device starts programs in the order of axis 0. On a machine that runs 108 programs concurrently, an unchanged matrix product of 64×64
//! tiles reads 64 tiles of A and 2 of B in every step; in groups of 8 rows it reads 8 and 14.
//!
//! The caller verifies the result, including that the parts of an output are disjoint with the new numbers. The number of programs of the
//! grid must be less than 2³¹, which becomes a requirement.
//!
//! Deliberately absent: kernels whose programs do not share tiles along two axes of the grid; kernels that use the number of programs;
//! grids that are computed from values other than extents and constants.

use super::edit::Edit;
use super::grid::Asks;
use super::persist::{computed, require_programs};
use crate::analysis::uses::Tree;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Def, GridSpec, Kernel, OpId, OpKind, TtgOp, Value};

/// The kernel with programs in groups of `rows` rows; `None` if that has no benefit, or the grid is not supported.
#[must_use]
pub fn grouped(kernel: &Kernel, rows: i32) -> Option<Kernel> {
    let GridSpec::Extents(extents) = kernel.sig.grid.clone() else { return None };
    if !(2..=3).contains(&extents.len()) || !asks_only_for_its_place(kernel) || !shares_tiles(kernel, extents.len()) {
        return None;
    }
    let mut edit = Edit::new(kernel.clone());
    edit.loc = kernel.block(kernel.body).ops.first().map(|id| kernel.op(*id).loc)?;
    let old: Vec<(OpId, u8, Value)> = program_ids(kernel);
    let all = extents.iter().map(|extent| computed(&mut edit, extent)).collect::<Option<Vec<Value>>>()?;
    let number = edit.one(OpKind::ProgramId(0), &[])?;
    let places = edit.op(OpKind::UnflattenGrouped(rows), &[&[number], &all[..]].concat())?;
    let first = *edit.kernel.block(edit.kernel.body).ops.first()?;
    edit.put_before(edit.kernel.body, first);
    for (id, axis, value) in old {
        edit.replace(value, *places.get(usize::from(axis))?);
        edit.kernel.blocks.iter_mut().for_each(|block| block.ops.retain(|op| *op != id));
    }
    let programs = require_programs(&mut edit.kernel, &extents)?;
    edit.kernel.sig.grid = GridSpec::Extents(vec![programs]);
    Some(edit.kernel.canonical())
}

/// The operations that return the program's index, each with the axis and the result.
fn program_ids(kernel: &Kernel) -> Vec<(OpId, u8, Value)> {
    let mut found = Vec::new();
    kernel.walk(&mut |id, op| {
        if let (OpKind::ProgramId(axis), [value]) = (&op.kind, &op.results[..]) {
            found.push((id, *axis, *value));
        }
    });
    found
}

/// Whether no operation uses the number of programs, and no loop distributes its iterations over them.
fn asks_only_for_its_place(kernel: &Kernel) -> bool {
    let mut only = true;
    kernel.walk(&mut |_, op| {
        only &= matches!(Asks::of(kernel, op), Asks::Nothing | Asks::Index(_));
    });
    only
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
