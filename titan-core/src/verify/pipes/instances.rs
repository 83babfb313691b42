//! Rule 77: a role with several instances takes the tiles of its program in turn.
//!
//! The instances share nothing: each gets its own part of the slots of a ring, and the role that copies fills the ring of the instance that
//! computes the tile ([`crate::pipeline::instances`]). That is possible if the iterations for different tiles depend on each other only by
//! their order.
//!
//! Deliberately absent: outputs, of which the instances write different tiles (rule 33 checks that for the kernel with its instances).

use crate::analysis::number::Numbers;
use crate::analysis::turns::{NoTileLoop, Turns, rings, tile_loop};
use crate::diag::Code;
use crate::ir::{Kernel, Loc, Op, RoleDecl};
use crate::verify::Error;
use crate::verify::roles::roles_op;

/// Violations of rule 77, at most one for each role.
pub(in crate::verify) fn check(kernel: &Kernel) -> Vec<Error> {
    let Some(roles) = roles_op(kernel).map(|id| kernel.op(id)) else { return Vec::new() };
    let several = (0..kernel.roles.len()).filter(|role| kernel.roles.get(*role).is_some_and(|r| r.instances > 1));
    several.filter_map(|role| one(kernel, roles, role).err()).collect()
}

fn one(kernel: &Kernel, roles: &Op, role: usize) -> Result<(), Error> {
    let numbers = Numbers::new(kernel);
    let decl = |role: usize| kernel.roles.get(role).cloned().unwrap_or_else(|| RoleDecl::one("", 1));
    let (own, region) = (decl(role), roles.regions[role]);
    let title = format!("the {} instances of `{}` cannot take tiles in turn", own.instances, own.name);
    let error = |loc: Loc, why: String| Error::new(Code::Instances, loc, format!("{title}: {why}"));
    let no_walk = |(loc, why): NoTileLoop| error(loc, why.to_owned());
    let alone =
        "a role with instances is one loop over the tiles of a `work`, in which each tile is computed for itself";
    let tiles = tile_loop(kernel, region).map_err(|found| no_walk(found).help(alone))?;
    for ring in rings(kernel, region) {
        let name = kernel.pipe_name(ring);
        let others: Vec<usize> = (0..roles.regions.len())
            .filter(|other| *other != role && rings(kernel, roles.regions[*other]).contains(&ring))
            .collect();
        let (slots, made) = kernel.pipe(ring).map_or((0, roles.loc), |pipe| (pipe.slots, pipe.loc));
        if let [_, third, ..] = others[..] {
            return Err(error(made, format!("`{name}` is also read by `{}`", decl(third).name))
                .help("let each role read a ring of its own"));
        }
        if !others.is_empty() && slots < own.instances {
            return Err(error(made, format!("`{name}` has fewer slots ({slots}) than there are instances"))
                .help("the slots are divided between the instances: give the ring at least one for each"));
        }
        for other in others {
            let partner = decl(other);
            if partner.instances > 1 {
                return Err(error(
                    roles.loc,
                    format!("`{}`, with which it shares `{name}`, has instances too", partner.name),
                ));
            }
            let help = format!("both roles loop over the tiles of one `work`, in `{}` too", partner.name);
            let theirs = tile_loop(kernel, roles.regions[other]).map_err(|found| no_walk(found).help(help.clone()))?;
            let (ours, others) = (numbers.of(tiles.tiles), numbers.of(theirs.tiles));
            if ours.is_none() || ours != others {
                let loc = kernel.op(theirs.looped).loc;
                return Err(error(loc, format!("`{}` loops over other tiles", partner.name)).help(help));
            }
        }
    }
    outputs(kernel, roles, role).map_err(|(loc, why)| error(loc, why))
}

/// Checks that the instances write different elements for different tiles.
fn outputs(kernel: &Kernel, roles: &Op, role: usize) -> Result<(), (Loc, String)> {
    let turns = Turns::new(kernel);
    let mut found = Ok(());
    kernel.walk_block(roles.regions[role], &mut |_, op| {
        for param in super::tensors::written(kernel, op) {
            if found.is_ok() && !turns.divides(param) {
                let name = kernel.display_name(kernel.param(param));
                found = Err((op.loc, format!("what it writes of `{name}` does not depend on the tile alone")));
            }
        }
    });
    found
}
