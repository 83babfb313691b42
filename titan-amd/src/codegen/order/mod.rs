//! List scheduling: the instructions of a block in an order in which units work side by side.
//!
//! ```text
//! ds_read_b128 %1, …                       ds_read_b128 %1, …
//! ds_read_b128 %2, …                       ds_read_b128 %2, …
//! v_mfma %5, %1, %2, %5             ─▶     v_mfma %5, %1, %2, %5
//! v_mfma …                                 ds_read_b128 %3, …
//! ds_read_b128 %3, …                       v_mfma …
//! v_mfma %6, %1, %3, %6                    v_mfma %6, %1, %3, %6
//! ```
//!
//! Selection leaves the order of the lane IR. Here each block is put in the order that a wave would like best, as the model of units and of their latencies says
//! ([`crate::model`]): loads as early as the registers that are free allow, so that they return while matrices are multiplied, and what needs no new wait first.
//! Waits and wait states come later, and are fewer if there is something to do in between.
//!
//! | part | |
//! |---|---|
//! | `graph` | what must come before what |
//! | `times` | units, latencies and wait states |
//! | `pressure` | the registers that live |
//! | `list` | the choice of the next instruction |
//!
//! **Why it is right.** Instructions move within their blocks only, and every one comes after those whose results it reads, and after those that read or
//! write what it writes: registers, the implicit state, and memories. Loads of one memory change places, and accesses of
//! different memories; none passes a barrier, a wait, or an atomic operation, by which other waves learn what this one did. `check::order` shows it for each kernel.
//!
//! **Why it never makes a kernel worse.** The code is allocated, and waits are inserted, in both orders. A loop keeps the given order if the other one has more
//! instructions, with waits and wait states, or takes no fewer clocks in [`crate::model::issue`]; code outside of loops, if it has more instructions; and all of the code,
//! if registers leave room for fewer waves or are copied more often, or the clocks of all loops and of what is outside do not become fewer. So the limit of registers is what the allocation says; the count of living words here only makes a success likely.
//!
//! **Why it ends.** A block is put in order by one instruction in each round. There are at most two ceilings of registers, and two rounds for each, of
//! which the second one leaves out what the first one made worse.
//!
//! Deliberately absent: motion between blocks and between iterations of a loop, and the times of other waves but as a share of the units.

mod graph;
mod list;
mod pressure;
mod times;

use super::allocate::{self, Allocated};
use super::error::{Done, Fault};
use super::machine_ir::{Block, Code, Inst, Kind, Reg};
use super::{assemble, check, clean, hazards, waits};
use crate::isa::{Inst as IsaInst, Unit};
use crate::machine::Machine;
use crate::model::issue::{Sharing, of_loop, once};
use graph::Locations;
use list::{Parts, ordered};
use pressure::Words;
use std::collections::BTreeSet;

/// Blocks with fewer instructions keep their order.
const SHORT: usize = 8;
/// The scalar registers that are left free for the alignment of tuples.
const ALIGNED: u32 = 8;

/// Code in an order, with its registers, and with waits and wait states.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// The code on virtual registers.
    pub(crate) selected: Code,
    /// The code on registers of the machine.
    pub(crate) allocated: Allocated,
    /// The same with waits and wait states.
    pub(crate) code: Code,
}

impl Version {
    /// Inserts waits and wait states.
    pub(crate) fn new(selected: Code, allocated: Allocated, sharing: Sharing) -> Version {
        let mut code = allocated.code.clone();
        clean::identities(&mut code);
        waits::insert(&mut code, sharing);
        hazards::insert(&mut code);
        Version { selected, allocated, code }
    }
}

/// The waves of a program with so many threads that share units.
pub(crate) fn sharing(machine: &Machine, threads: u32) -> Sharing {
    let waves = threads.div_ceil(machine.wave_size).max(1);
    Sharing { waves: waves.div_ceil(machine.simds_per_cu).into(), simds: waves.min(machine.simds_per_cu).into() }
}

/// A run of blocks of one depth, as a loop or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    blocks: Vec<Block>,
    depth: u32,
    instructions: usize,
    clocks: u64,
}

/// What the runs of blocks of finished code take.
fn runs(code: &Code, sharing: Sharing) -> Result<Vec<Run>, Fault> {
    let depth = |block: &Block| code.blocks[block.index()].depth;
    let mut all = Vec::new();
    for blocks in code.order.chunk_by(|a, b| depth(a) == depth(b)) {
        let insts = blocks.iter().flat_map(|block| code.insts(*block));
        let insts: Vec<IsaInst> =
            insts.filter_map(|inst| assemble::instruction(inst).transpose()).collect::<Result<_, _>>()?;
        let depth = blocks.first().map_or(0, depth);
        let issue = if depth > 0 { of_loop(&insts, sharing) } else { once(&insts, sharing) };
        all.push(Run { blocks: blocks.to_vec(), depth, instructions: insts.len(), clocks: issue.clocks });
    }
    Ok(all)
}

/// The clocks of all runs, those of loops ten times.
fn clocks(runs: &[Run]) -> u64 {
    runs.iter().map(|run| 10u64.pow(run.depth.min(6)) * run.clocks).sum()
}

/// The code in a better order, or the same.
///
/// # Errors
/// A defect of this pass.
pub(crate) fn improved(given: Version, machine: &Machine, threads: u32) -> Result<Version, Fault> {
    let sharing = sharing(machine, threads);
    let before = runs(&given.code, sharing)?;
    let movable = Movable::all(&given.selected, sharing);
    for ceiling in ceilings(machine, &given.allocated) {
        let mut kept: BTreeSet<Block> = BTreeSet::new();
        for _ in 0..2 {
            // Where scalar registers are copied, no more of them may live.
            let scalars = if given.allocated.copies_scalars() { 0 } else { machine.sgprs - ALIGNED };
            let other = ordered_but(&given.selected, &movable, &kept, [scalars, ceiling]);
            let Some(other) = version(&given, other, machine, threads)? else { break };
            let after = runs(&other.code, sharing)?;
            let worse = |(old, new): &(&Run, &Run)| {
                let gains = new.depth == 0 || new.clocks < old.clocks;
                old != new && (new.instructions > old.instructions || !gains)
            };
            let worse: Vec<&Run> = before.iter().zip(&after).filter(worse).map(|(old, _)| old).collect();
            if worse.is_empty() && before.len() == after.len() && clocks(&after) < clocks(&before) {
                return Ok(other);
            }
            kept.extend(worse.into_iter().flat_map(|run| &run.blocks));
        }
    }
    Ok(given)
}

/// The code in an order that somebody else chose.
///
/// # Errors
/// What the checker says of the order, or that there are too few registers.
pub(crate) fn in_order(other: Code, given: &Version, machine: &Machine, threads: u32) -> Result<Version, Fault> {
    check::order::check(&given.selected, &other).map_err(Fault::Defect)?;
    let allocated = allocate::allocate(&other, machine, threads)?;
    Ok(Version::new(other, allocated, sharing(machine, threads)))
}

/// The numbers of vector registers that may live: all that leave room for as many waves, and those that the given order takes.
fn ceilings(machine: &Machine, given: &Allocated) -> Vec<u32> {
    let waves = given.waves(machine, 0);
    let [_, vector, accumulation] = given.used.map(u32::from);
    let holds = |vector: &u32| machine.waves_by_registers(vector + accumulation) >= waves;
    let most = (vector..=machine.arch_vgprs).rev().find(|n| n.is_multiple_of(4) && holds(n)).unwrap_or(vector);
    let mut all = vec![most, vector];
    all.dedup();
    all
}

/// A version of the code in this order; `None` if it is the given one, or needs more registers.
fn version(given: &Version, other: Code, machine: &Machine, threads: u32) -> Result<Option<Version>, Fault> {
    if other == given.selected {
        return Ok(None);
    }
    checked(&given.selected, &other)?;
    let Ok(allocated) = allocate::allocate(&other, machine, threads) else { return Ok(None) };
    let keeps = allocated.waves(machine, 0) >= given.allocated.waves(machine, 0)
        && allocated.copies() <= given.allocated.copies();
    Ok(keeps.then(|| Version::new(other, allocated, sharing(machine, threads))))
}

fn checked(before: &Code, after: &Code) -> Done {
    if cfg!(debug_assertions) {
        check::order::check(before, after).map_err(Fault::Defect)?;
    }
    Ok(())
}

/// A block that may be put in another order.
struct Movable {
    block: Block,
    parts: Parts,
    /// The registers that live at its end.
    ends: Vec<Reg>,
}

impl Movable {
    fn all(code: &Code, sharing: Sharing) -> Vec<Movable> {
        let locations = Locations::new(code);
        let ends = allocate::live_at_ends(code);
        let may = |block: &&Block| {
            let insts = code.insts(**block);
            insts.len() >= SHORT && insts.iter().any(waits)
        };
        let movable = |block: &Block| Movable {
            block: *block,
            parts: Parts::of(code, &locations, code.insts(*block), sharing),
            ends: ends[block.index()].clone(),
        };
        code.order.iter().filter(may).map(movable).collect()
    }
}

/// The code with all of these blocks but some in another order.
fn ordered_but(code: &Code, movable: &[Movable], kept: &BTreeSet<Block>, ceilings: Words) -> Code {
    let mut out = code.clone();
    for Movable { block, parts, ends } in movable.iter().filter(|movable| !kept.contains(&movable.block)) {
        out.blocks[block.index()].insts = ordered(code, parts, code.insts(*block), ends, ceilings);
    }
    out
}

/// Whether something may be waited for behind an instruction.
fn waits(inst: &Inst) -> bool {
    let Kind::Row { row, .. } = &inst.kind else { return false };
    match row.unit {
        Unit::Xdl | Unit::Sgemm | Unit::Dgemm | Unit::Load | Unit::Lds | Unit::Smem | Unit::Trans => true,
        Unit::Salu
        | Unit::Valu
        | Unit::Dot
        | Unit::Store
        | Unit::Atomic
        | Unit::LoadLds
        | Unit::Cache
        | Unit::Branch
        | Unit::Control => false,
    }
}
