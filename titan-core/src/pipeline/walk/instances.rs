//! Gives a role several instances, which compute the tiles of a program in turn: one stores its tile while the MMAs of another one run.
//!
//! ```text
//! producer:                               producer:
//! for %i = 0 to %n distributed {          for %i = 0 to %n distributed {
//!     %m = unflatten %i, ..                   %m = unflatten %i, ..
//!     copy tiles of %m to ring                if rem(div(%i, num_programs), 2) == 0 { copy to ring 0 } else { copy to ring 1 }
//! }                                       }
//! consumer:                          ─▶   consumer 0:
//! for %i = 0 to %n distributed {          for %i = 0 to %n distributed {
//!     %m = unflatten %i, ..                   %m = unflatten %i, ..
//!     read ring, store tile %m                if .. == 0 { read ring 0, store tile %m } else { }
//! }                                       }
//!                                         consumer 1: the same, with { } and { read ring 1, store tile %m }
//! ```
//!
//! A program has the tiles p, p + P, p + 2 P, .., if it is the p-th of P programs: the quotient by P is the number of the tile among them.
//! Each instance has a part of the slots of a ring, so that the ring of one can be filled before another one has read its own. A ring that
//! only this role uses, for results, exists once for each instance.
//!
//! The caller verifies the result: the protocol of each ring is that of two roles, and outputs are partitioned by tiles.
//!
//! Deliberately absent: one ring with the slots of all instances. They would have to release slots in the order in which tiles were copied,
//! so that a fast instance would wait for a slow one.

use crate::analysis::turns::{TileLoop, rings, tile_loop};
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{BinOp, Block, Kernel, OpId, OpKind, Pipe, Pred, RoleDecl, TtgOp, Ty, Value};
use crate::pipeline::edit::Edit;

/// The kernel with the instances that its roles declare; `None` if that is impossible. Roles with one instance are unchanged.
pub(super) fn with_instances(mut made: Kernel) -> Option<Kernel> {
    // Each round replaces a role with several instances by roles with one, so that one fewer is left.
    while let Some(role) = made.roles.iter().position(|role| role.instances > 1) {
        made = several(&made, role)?;
    }
    Some(made)
}

/// The kernel with the instances of a role as separate roles.
fn several(kernel: &Kernel, role: usize) -> Option<Kernel> {
    let top = kernel.block(kernel.body).ops.clone();
    let roles = *top.iter().find(|id| kernel.op(**id).kind == OpKind::Ttg(TtgOp::Roles))?;
    let regions = kernel.op(roles).regions.clone();
    let decl = kernel.roles.get(role)?.clone();
    let own = rings(kernel, *regions.get(role)?);
    // Whoever shares a ring with the role must deal its tiles in the same way: it fills or reads the ring of the
    // instance whose turn it is.
    let partners: SortedSet<usize> =
        (0..regions.len()).filter(|i| *i != role && !rings(kernel, regions[*i]).is_disjoint(&own)).collect();
    let shared: SortedSet<Pipe> = partners
        .iter()
        .flat_map(|partner| rings(kernel, regions[*partner]))
        .filter(|ring| own.contains(ring))
        .collect();
    let mut edit = Edit::new(kernel.clone());
    edit.loc = kernel.op(roles).loc;
    let programs = edit.one(OpKind::NumPrograms(0), &[])?;
    edit.put_before(kernel.body, roles);
    let renamed = parts(&mut edit.kernel, &own, &shared, decl.instances)?;
    let turn = Turn { programs, instances: decl.instances };
    let mut new = Vec::new();
    for (i, region) in regions.iter().enumerate() {
        let walked = if i == role || partners.contains(&i) { Some(tile_loop(kernel, *region).ok()?) } else { None };
        match walked {
            None => new.push((kernel.roles.get(i)?.clone(), *region)),
            Some(walked) if i != role => {
                let all: Vec<Option<&Renamed>> = renamed.iter().map(Some).collect();
                new.push((kernel.roles.get(i)?.clone(), turn.dealt(&mut edit, *region, walked, &all)?));
            }
            Some(walked) => {
                for (instance, names) in renamed.iter().enumerate() {
                    let mut arms = vec![None; renamed.len()];
                    arms[instance] = Some(names);
                    let name = unused(&new, &kernel.roles, &format!("{}{instance}", decl.name));
                    let region = turn.dealt(&mut edit, *region, walked, &arms)?;
                    new.push((RoleDecl::one(&name, decl.warps), region));
                }
            }
        }
    }
    (edit.kernel.roles, edit.kernel.ops[roles.index()].regions) = new.into_iter().unzip();
    Some(edit.kernel.canonical())
}

/// A name that no role has.
fn unused(new: &[(RoleDecl, Block)], roles: &[RoleDecl], name: &str) -> String {
    let taken = |name: &str| roles.iter().chain(new.iter().map(|(role, _)| role)).any(|role| role.name == name);
    let mut name = name.to_owned();
    while taken(&name) {
        name.push('_');
    }
    name
}

/// The rings of an instance, by those of the role.
type Renamed = SortedMap<Pipe, Pipe>;

/// Declares the rings of each instance, all with the user's name. The first instance keeps the rings of the role, with fewer slots.
fn parts(kernel: &mut Kernel, own: &SortedSet<Pipe>, shared: &SortedSet<Pipe>, instances: u32) -> Option<Vec<Renamed>> {
    let mut all = vec![Renamed::new(); instances as usize];
    for ring in own {
        let whole = kernel.pipe(*ring)?.clone();
        for (renamed, instance) in all.iter_mut().zip(0..) {
            let mut part = whole.clone();
            if shared.contains(ring) {
                // The remaining slots are given to the first instances.
                part.slots = whole.slots.saturating_sub(instance).div_ceil(instances);
            }
            if instance == 0 {
                *kernel.pipes.get_mut(ring.index())? = part;
                renamed.insert(*ring, *ring);
            } else {
                renamed.insert(*ring, Pipe::new(kernel.pipes.len()));
                kernel.pipes.push(part);
            }
        }
    }
    Some(all)
}

/// The condition by which a program selects an instance.
struct Turn {
    /// The number of programs.
    programs: Value,
    instances: u32,
}

impl Turn {
    /// A copy of a role that executes, for each tile, the arm of the instance that computes the tile: its operations with the rings of that
    /// instance, or nothing.
    fn dealt(&self, edit: &mut Edit, region: Block, walked: TileLoop, arms: &[Option<&Renamed>]) -> Option<Block> {
        let ops = edit.kernel.block(region).ops.clone();
        edit.block(&[], |edit, _| {
            let mut names = SortedMap::new();
            for id in ops {
                if id == walked.looped {
                    self.looped(edit, walked, arms, &names)?;
                } else {
                    edit.copies(&[id], &mut names);
                }
            }
            Some(())
        })
    }

    fn looped(
        &self,
        edit: &mut Edit,
        walked: TileLoop,
        arms: &[Option<&Renamed>],
        outer: &SortedMap<Value, Value>,
    ) -> Option<()> {
        let op = edit.kernel.op(walked.looped).clone();
        let body = edit.kernel.block(walked.body).clone();
        let (index, (last, inner)) = (*body.args.first()?, body.ops.split_last()?);
        // The coordinates of the tile are computed for all tiles; the operations from the first other one on are those of the instance.
        let scalar = |id: &&OpId| {
            let op = edit.kernel.op(**id);
            op.kind.effect() == crate::ir::Effect::Pure
                && op.results.iter().all(|v| matches!(edit.kernel.ty(*v), Ty::Scalar(_)))
        };
        let (places, rest) = inner.split_at(inner.iter().take_while(scalar).count());
        let looped = edit.block(&[Ty::I32], |edit, args| {
            let mut names = outer.clone();
            names.insert(index, args[0]);
            edit.copies(places, &mut names);
            let count = edit.i32(self.instances.into())?;
            let nth = edit.one(OpKind::Binary(BinOp::Div), &[args[0], self.programs])?;
            let turn = edit.one(OpKind::Binary(BinOp::Rem), &[nth, count])?;
            branches(edit, turn, rest, &names, (0, arms))?;
            edit.copies(&[*last], &mut names);
            Some(())
        })?;
        let bounds: Vec<Value> = op.args.iter().map(|v| outer.get(v).copied().unwrap_or(*v)).collect();
        edit.raw(op.kind, &bounds, &[], vec![looped]);
        Some(())
    }
}

/// `if turn == first { .. } else { if turn == first + 1 { .. } else { .. } }`, in which the last arm has no condition.
fn branches(
    edit: &mut Edit,
    turn: Value,
    ops: &[OpId],
    names: &SortedMap<Value, Value>,
    (first, arms): (i64, &[Option<&Renamed>]),
) -> Option<()> {
    let (arm, later) = arms.split_first()?;
    let copied = |edit: &mut Edit| {
        if let Some(rings) = arm {
            with_rings(edit, ops, &mut names.clone(), rings);
        }
    };
    if later.is_empty() {
        copied(edit);
        return Some(());
    }
    let number = edit.i32(first)?;
    // The last arm needs no condition: turn is a remainder by the number of instances.
    let own = edit.one(OpKind::Cmp(Pred::Eq), &[turn, number])?;
    let here = |edit: &mut Edit| {
        copied(edit);
        Some(())
    };
    edit.branch(own, here, |edit| branches(edit, turn, ops, names, (first + 1, later)))
}

/// Adds copies of operations that use other rings.
fn with_rings(edit: &mut Edit, ops: &[OpId], names: &mut SortedMap<Value, Value>, rings: &Renamed) {
    let (old_ops, old_values) = (edit.kernel.ops.len(), edit.kernel.values.len());
    edit.copies(ops, names);
    let renamed = |ring: &mut Pipe| *ring = rings.get(ring).copied().unwrap_or(*ring);
    // Only the copies are renamed. The original operations may be copied again, for the next instance.
    for op in &mut edit.kernel.ops[old_ops..] {
        if let OpKind::Ttg(TtgOp::Acquire(ring) | TtgOp::Ready(ring) | TtgOp::Claim(_, ring)) = &mut op.kind {
            renamed(ring);
        }
    }
    for value in &mut edit.kernel.values[old_values..] {
        if let Ty::Token(_, ring) = &mut value.ty {
            renamed(ring);
        }
    }
}
