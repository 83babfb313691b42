//! Refuses programs whose threads cannot hold the accumulators of their MMAs in registers.
//!
//! An assembler would move them to local memory around each MMA, which is slower than any smaller tile, and says so in a note at most. What
//! is counted needs registers at the same time whatever the assembler does: the accumulator of an MMA, other accumulators that are live at
//! it, and tiles that loops around it carry; and [`OTHER_REGISTERS`] for everything else. With `ptxas` 12.9, of 128 rows and one warpgroup,
//! 208 columns take 252 registers, 216 have spills.
//!
//! Deliberately absent: other tiles, which are loaded, computed or stored in parts; and scalars ([`super::registers`]).

use super::registers::{Held, OfRole, Peak, entry, for_tiles, with_others};
use super::table::OTHER_REGISTERS;
use crate::diag::counted;
use crate::ir::Kernel;
use crate::plan::LowerError;
use crate::target::Target;

/// Checks the accumulators of a barrier program.
///
/// # Errors
/// The MMA with the most, if they do not fit; or that there are more warps than a program has.
pub(super) fn check(program: &Kernel, target: &Target, held: &Held) -> Result<(), LowerError> {
    let warps = program.laid_out.as_deref().map_or(1, |laid| laid.warps);
    if warps > target.max_warps {
        return Err(too_many_warps(program, target, warps));
    }
    let over = held.of_roles.iter().filter_map(|of| Some((of, of.accumulators?)));
    let over = over.filter(|(of, most)| most.registers > for_tiles(of.each));
    match over.max_by_key(|(_, most)| most.registers) {
        Some((of, most)) => Err(error(program, target, (of, most))),
        None => Ok(()),
    }
}

/// The error of a kernel whose roles have too many warps; its place is the kernel, which declares them.
fn too_many_warps(program: &Kernel, target: &Target, warps: u32) -> LowerError {
    let rounded = match target.role_warps {
        0 | 1 => String::new(),
        whole => format!(", with those of each role rounded up to a multiple of {whole}"),
    };
    let message =
        format!("the roles have {warps} warps on {}{rounded}; a program has at most {}", target.name, target.max_warps);
    let help = Some("give the roles fewer warps, or let one role do the work of two".to_owned());
    LowerError { help, of_instance: false, ..LowerError::of_kernel(&program.sig.full_name(), message) }
}

fn error(program: &Kernel, target: &Target, (held, most): (&OfRole, Peak)) -> LowerError {
    let op = program.op(most.at);
    let warps = program.laid_out.as_deref().map_or(1, |laid| laid.warps);
    let role = held.role.and_then(|role| program.roles.get(role));
    let own = role.map_or(warps, |role| role.warps);
    let who = role.map_or_else(|| "the program".to_owned(), |role| format!("the role `{}`", role.name));
    let result = op.results.first().copied();
    let shape = result
        .and_then(|v| program.ty(v).tile_shape())
        .map_or_else(String::new, |shape| shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(" × "));
    // Parts that the compiler makes of an accumulator have no name.
    let named = result.into_iter().chain(op.args.last().copied()).map(|v| program.display_name(v));
    let name = named.filter(|name| !name.starts_with('%')).map(|name| format!("`{name}`")).next();
    let name = name.unwrap_or_else(|| "that of this MMA".to_owned());
    let message = format!(
        "accumulators do not fit in registers on {}: {name} has {shape} elements, and a thread of {who}, which has {}, would hold {} \
         registers of accumulators besides {OTHER_REGISTERS} others, of {}",
        target.name,
        counted(own, "warp"),
        most.registers,
        held.each,
    );
    // With twice the warps, a thread holds half of them, and the other warps keep what they have.
    let others = warps.saturating_sub(own);
    let fits = |more: &u32| {
        let warps = others.saturating_add(*more);
        let half = most.registers.saturating_mul(own).div_ceil(*more);
        warps <= target.max_warps && with_others(half) <= entry(warps, target).min(target.registers)
    };
    let more = (1..=4).map(|n| own << n).find(fits);
    let help = match (role, more) {
        (Some(role), Some(more)) => {
            format!("give the role `{}` {}, or use smaller tiles", role.name, counted(more, "warp"))
        }
        (_, _) => {
            let elements = for_tiles(held.each).saturating_mul(own * target.lanes);
            let all = if own == 1 { "1 warp holds".to_owned() } else { format!("{own} warps hold") };
            format!("use smaller tiles: {all} at most {elements} elements of 32 bits")
        }
    };
    LowerError { of_registers: true, ..LowerError::refused(program, Some(most.at), message, &help) }
}
