//! Refuses programs whose threads cannot hold the accumulators of their MMAs in registers.
//!
//! An assembler would move them to local memory around each MMA, which is slower than any smaller tile, and says so in a note at most. What
//! is counted needs registers at the same time whatever the assembler does: the accumulator of an MMA, other accumulators that are live at
//! it, and tiles that loops around it carry; and [`OTHER_REGISTERS`] for everything else. With `ptxas` 12.9, of 128 rows and one warpgroup,
//! 208 columns take 252 registers, 216 have spills.
//!
//! | threads | registers of each |
//! |---|---|
//! | of a role that requests a number (`setmaxnreg`) | this number |
//! | others | an equal part of the multiprocessor's, of whole warpgroups, in units of 8 |
//! | all | at most as many as an instruction addresses |
//!
//! Deliberately absent: other tiles, which are loaded, computed or stored in parts; and scalars. [`super::estimate`] estimates those.

use super::estimate::{is_mma, live, registers};
use super::table::OTHER_REGISTERS;
use crate::collections::SortedMap;
use crate::diag::counted;
use crate::ir::{Def, Kernel, NvGroup, NvOp, OpId, OpKind, TtgOp, Value};
use crate::plan::LowerError;
use crate::target::Target;

/// The number of warps up to which threads get equal parts of the registers: those of a warpgroup.
const WHOLE: u32 = 4;

/// An MMA at which a thread would hold too many accumulators.
struct Held {
    at: OpId,
    registers: u32,
    /// The role that executes it.
    role: Option<usize>,
    /// The number of registers of a thread.
    each: u32,
}

/// Checks the accumulators of a barrier program. Returns the maximum number of registers of tiles that a thread holds.
///
/// # Errors
/// The MMA with the most, if they do not fit; or that there are more warps than a program has.
pub(super) fn check(program: &Kernel, target: &Target) -> Result<u32, LowerError> {
    let warps = program.laid_out.as_deref().map_or(1, |laid| laid.warps);
    if warps > target.max_warps {
        return Err(too_many_warps(program, target, warps));
    }
    let limits = Limits::of(program, target);
    let mut worst: Option<Held> = None;
    let all = live(program, &mut |at, live| {
        if !is_mma(&program.op(at).kind) {
            return;
        }
        let held =
            live.iter().filter(|v| is_kept(program, **v)).map(|v| registers(program, *v)).fold(0, u32::saturating_add);
        let role = limits.role_of(at);
        let each = limits.registers(role);
        let beyond = worst.as_ref().is_none_or(|worst| held > worst.registers);
        if held.saturating_add(OTHER_REGISTERS) > each && beyond {
            worst = Some(Held { at, registers: held, role, each });
        }
    });
    worst.map_or(Ok(all), |held| Err(error(program, target, &held)))
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

/// The registers that the threads of a program have.
pub(super) struct Limits {
    /// The role of each operation that has one.
    role_of: SortedMap<OpId, usize>,
    /// The number of registers that roles request.
    requested: SortedMap<usize, u32>,
    /// The number with which every thread begins.
    entry: u32,
    /// The number that an instruction addresses.
    most: u32,
}

impl Limits {
    pub(super) fn of(program: &Kernel, target: &Target) -> Limits {
        let warps = program.laid_out.as_deref().map_or(1, |laid| laid.warps);
        let (mut role_of, mut requested) = (SortedMap::new(), SortedMap::new());
        program.walk(&mut |_, op| {
            if op.kind == OpKind::Ttg(TtgOp::Roles) {
                for (role, block) in op.regions.iter().enumerate() {
                    program.walk_block(*block, &mut |id, op| {
                        role_of.insert(id, role);
                        if let OpKind::Nv(NvOp::SetMaxNReg { registers }) = op.kind {
                            requested.insert(role, registers);
                        }
                    });
                }
            }
        });
        Limits { role_of, requested, entry: entry(warps, target), most: target.registers }
    }

    /// The role that executes an operation.
    pub(super) fn role_of(&self, op: OpId) -> Option<usize> {
        self.role_of.get(&op).copied()
    }

    /// The number of registers of a thread of a role, or of a program without roles.
    pub(super) fn registers(&self, role: Option<usize>) -> u32 {
        role.and_then(|role| self.requested.get(&role).copied()).unwrap_or(self.entry).min(self.most)
    }
}

/// The number of registers with which each thread of so many warps begins.
fn entry(warps: u32, target: &Target) -> u32 {
    target.equal_registers(warps.max(1).next_multiple_of(WHOLE).saturating_mul(target.lanes))
}

/// Whether a tile is an accumulator, or carried by a loop.
fn is_kept(program: &Kernel, value: Value) -> bool {
    match program.value(value).def {
        Def::BlockArg(..) => true,
        Def::Param(_) => false,
        Def::Result(op, _) => {
            let kind = &program.op(op).kind;
            is_mma(kind) || matches!(kind, OpKind::Nv(NvOp::WaitGroup { group: NvGroup::Wgmma, .. }))
        }
    }
}

fn error(program: &Kernel, target: &Target, held: &Held) -> LowerError {
    let op = program.op(held.at);
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
        held.registers,
        held.each,
    );
    // With twice the warps, a thread holds half of them, and the other warps keep what they have.
    let others = warps.saturating_sub(own);
    let fits = |more: &u32| {
        let warps = others.saturating_add(*more);
        let half = held.registers.saturating_mul(own).div_ceil(*more);
        warps <= target.max_warps && half + OTHER_REGISTERS <= entry(warps, target).min(target.registers)
    };
    let more = (1..=4).map(|n| own << n).find(fits);
    let help = match (role, more) {
        (Some(role), Some(more)) => {
            format!("give the role `{}` {}, or use smaller tiles", role.name, counted(more, "warp"))
        }
        (_, _) => {
            let elements = held.each.saturating_sub(OTHER_REGISTERS).saturating_mul(own * target.lanes);
            let all = if own == 1 { "1 warp holds".to_owned() } else { format!("{own} warps hold") };
            format!("use smaller tiles: {all} at most {elements} elements of 32 bits")
        }
    };
    LowerError { of_registers: true, ..LowerError::refused(program, Some(held.at), message, &help) }
}
