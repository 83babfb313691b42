//! Notes about tiles that take more registers than a thread has, and about rows that warpgroups share.
//!
//! What does not fit in registers the assembler keeps in local memory, and it says so in its own output at most. Accumulators that cannot
//! fit are an error ([`super::accumulators`]). Here all tiles count that are live at an operation that nothing is moved across: an MMA, a
//! wait for MMAs, a reduction across lanes. Exempt are tiles that are computed from scalars alone, such as masks, broadcasts, and fragments
//! that are loaded from shared memory: the assembler makes these where they are used. This is an estimate, and the note says so.
//!
//! Worked example, attention with MMAs of warpgroups, where [`OTHER_REGISTERS`] are needed besides tiles, and [`COPYING`] more without roles.
//! The spilled bytes are those that `ptxas` 12.9 reports:
//!
//! | queries × head × keys | tiles | others | registers | spilled |
//! |---|---|---|---|---|
//! | 128 × 256 × 64 | 180: output 128, probabilities 16, scores 32 | 40 | 232 | 0 |
//! | 320 × 64 × 64 | 200: output 80, scores 80, four of rows with 10 each | 40 | 232 | 588 |
//! | 128 × 96 × 64, no roles | 200: output 96, probabilities 32, scores 64 | 48 | 255 | 0 |
//! | 256 × 64 × 128, no roles | 208: output 64, scores 128, four of rows with 4 each | 48 | 255 | 216 |
//!
//! Attention of 192 × 64 × 128 needs 168 + 40 of 232 and spills 348 bytes nevertheless. There, two warpgroups share rows, since 192 rows are
//! not a multiple of two times 64; this has a note of its own.
//!
//! Deliberately absent: scalars and addresses, which are not counted one by one; tiles that the assembler could compute later but does not, so
//! that it may spill where there is no note (128 × 256 × 128, causal: 664 bytes); errors.

use super::Made;
use super::accumulators::Limits;
use super::estimate::{is_fixed, live, registers};
use super::rings::at_line;
use super::schedule::Roles;
use super::table::OTHER_REGISTERS;
use crate::collections::{SortedMap, SortedSet};
use crate::ir::{Effect, Kernel, Loc, LocalOp, OpKind, Value};
use crate::lane::GroupMma;
use crate::plan::Method;

/// The registers for the addresses of copies that the threads of a program without roles start besides their computation.
const COPYING: u32 = 8;

/// The most registers that the tiles of a role take.
struct Most {
    registers: u32,
    loc: Loc,
}

/// The notes about a compiled kernel.
pub(super) fn notes(made: &Made) -> Vec<String> {
    let program = &made.barriers;
    let limits = Limits::of(program, &made.plan.target);
    let small = computed_again(program);
    let mut most: SortedMap<Option<usize>, Most> = SortedMap::new();
    live(program, &mut |at, live| {
        let op = program.op(at);
        if !is_fixed(&op.kind) {
            return;
        }
        let tiles = live.iter().filter(|v| !small.contains(v)).map(|v| registers(program, *v));
        let registers = tiles.fold(0, u32::saturating_add);
        let most = most.entry(limits.role_of(at)).or_insert(Most { registers: 0, loc: op.loc });
        if registers > most.registers {
            *most = Most { registers, loc: op.loc };
        }
    });
    let mut notes = SortedSet::new();
    for (role, Most { registers, loc }) in most {
        let each = limits.registers(role);
        let others = if role.is_some() { OTHER_REGISTERS } else { OTHER_REGISTERS + COPYING };
        if registers.saturating_add(others) <= each {
            continue;
        }
        let name = role.filter(|_| made.schedule.roles == Roles::Kept).and_then(|role| program.roles.get(role));
        let who = name.map_or_else(|| "a thread".to_owned(), |role| format!("a thread of `{}`", role.name));
        let at = at_line(loc);
        notes.insert(format!(
            "{who} has {each} registers, and tiles take {registers} of them, besides about {others} for addresses and counters: \
             probably some lie in local memory, which is slow, and smaller tiles are faster{at}"
        ));
    }
    notes.extend(shared_rows(made));
    notes.into_iter().collect()
}

/// The notes about rows of MMAs that warpgroups share although they are reduced.
fn shared_rows(made: &Made) -> SortedSet<String> {
    let mut across = false;
    made.laid_out.walk(&mut |_, op| {
        across |= matches!(op.kind, OpKind::Local(LocalOp::Fold { parts, .. }) if parts > 1);
    });
    let mut notes = SortedSet::new();
    for mma in made.plan.mmas.values().filter(|_| across) {
        let Method::Group(atom) = mma.method else { continue };
        let groups = (1 << mma.acc.warp_bits().len()) / GroupMma::WARPS;
        let ([rows, ..], together) = (mma.extents, atom.m * groups);
        if !rows.is_multiple_of(together) {
            notes.insert(format!(
                "{groups} warpgroups share rows of MMAs, and reduce these through shared memory: {rows} rows are not a multiple of {together}, \
                 {} for each warpgroup",
                atom.m
            ));
        }
    }
    notes
}

/// The tiles that take no registers of their own: broadcasts, what is computed from scalars alone, and what is loaded from shared memory, such
/// as the fragments of MMAs of warps, which are loaded one by one.
fn computed_again(program: &Kernel) -> SortedSet<Value> {
    let mut small = SortedSet::new();
    program.walk(&mut |_, op| {
        let from_scalars = || op.args.iter().all(|v| small.contains(v) || program.ty(*v).tile_shape().is_none());
        let pure = op.kind.effect() == Effect::Pure && op.regions.is_empty();
        let moved = matches!(op.kind, OpKind::Broadcast { .. } | OpKind::Local(LocalOp::Load));
        if moved || pure && from_scalars() {
            small.extend(op.results.iter().copied());
        }
    });
    small
}
