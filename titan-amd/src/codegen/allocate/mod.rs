//! Allocation of registers: virtual registers become those of the machine.
//!
//! ```text
//! lifetimes (live) ─▶ assignment (assign) ─┬─▶ code with registers of the machine
//!          ▲                               │ no place is free
//!          └──────── spills (spill) ◀──────┘
//! ```
//!
//! Every round spills registers that were not spilled before, and copies of spilled registers live for one instruction and are not
//! spilled; so the rounds end. Constants are not copied, but computed again.
//!
//! Deliberately absent: splitting of lifetimes, coalescing, private memory. What fits neither in vector nor
//! in accumulation registers is an error that names the line where most registers live.

mod assign;
mod live;
mod spill;

use super::error::Fault;
use super::machine_ir::{BlockData, Code, File, Inst, Kind, Operand, Part};
use super::select::{FIXED_SCALARS, FIXED_VECTORS};
use crate::isa::Operand as Isa;
use crate::machine::Machine;
pub(crate) use live::live_at_ends;

use assign::{Assignment, Available, index};
use live::Lives;
use spill::Spills;
use titan_core::ir::Loc;

/// Code with registers of the machine, and how many it uses.
#[derive(Clone, Debug)]
pub(crate) struct Allocated {
    /// The code on registers of the machine.
    pub(crate) code: Code,
    /// The number of scalar, vector and accumulation registers.
    pub(crate) used: [u16; 3],
}

impl Allocated {
    /// Whether registers are copied, or constants are computed again.
    pub(crate) fn has_copies(&self) -> bool {
        self.code.order.iter().any(|block| self.code.insts(*block).iter().any(|inst| inst.added))
    }

    /// The number of instructions that copy registers, or compute constants again: those in a loop count ten times.
    pub(crate) fn copies(&self) -> u64 {
        self.cost(|inst| inst.added)
    }

    /// Whether scalar registers are kept in lanes of vector registers.
    pub(crate) fn copies_scalars(&self) -> bool {
        let copies = |inst: &Inst| inst.added && inst.name() == "v_readlane_b32";
        self.code.order.iter().any(|block| self.code.insts(*block).iter().any(copies))
    }

    /// The number of waves on a SIMD unit, if each had so many vector registers less.
    pub(crate) fn waves(&self, machine: &Machine, less: u32) -> u32 {
        let [_, vector, accumulation] = self.used.map(u32::from);
        machine.waves_by_registers(vector.saturating_sub(less).next_multiple_of(4) + accumulation)
    }

    /// Whether it leaves room for more waves than other code, or, if one of them has copies, executes fewer instructions. One in a loop counts ten
    /// times, and one that copies a lane twice, since wait states follow it.
    pub(crate) fn is_better(&self, other: &Allocated, machine: &Machine) -> bool {
        let waves = [self.waves(machine, 0), other.waves(machine, 0)];
        if !self.has_copies() && !other.has_copies() && waves[0] != waves[1] {
            return waves[0] > waves[1];
        }
        self.cost(|_| true) < other.cost(|_| true)
    }

    /// Whether copies are less than a hundredth of what is executed.
    pub(crate) fn has_few_copies(&self) -> bool {
        self.copies() * 100 < self.cost(|_| true)
    }

    /// The number of instructions among some that are executed: those in a loop count ten times.
    fn cost(&self, counts: impl Fn(&Inst) -> bool) -> u64 {
        let of_inst = |inst: &Inst| match (&inst.kind, inst.name()) {
            (Kind::Start | Kind::Rematerialized, _) => 0,
            (Kind::Row { .. }, "v_readlane_b32" | "v_writelane_b32") => 2,
            (Kind::Row { .. }, _) => 1,
        };
        let of_block = |block: &BlockData| {
            let own = block.insts.iter().filter(|inst| counts(inst));
            10u64.pow(block.depth.min(6)) * own.map(of_inst).sum::<u64>()
        };
        self.code.order.iter().map(|block| of_block(&self.code.blocks[block.index()])).sum()
    }
}

/// Rounds of spills, of which each spills new registers.
const ROUNDS: u32 = 256;

/// The numbers of vector and of accumulation registers that a wave may have, those to try first at the start.
///
/// All waves of a program run at once, on the SIMD units of one compute unit, whose registers they share equally (ISA §3.6.4). A wave with
/// half of the registers of a unit or less has to divide them among both files: all vector registers at first, which need no copies.
///
/// **Example.** 8 waves on 4 units are 2 on each, so that a wave has 256 of 512 registers: 256 and 0, then 192 and 64, then 128 and 128.
fn shares(machine: &Machine, threads: u32) -> Vec<[u32; 2]> {
    let waves = threads.div_ceil(machine.wave_size).div_ceil(machine.simds_per_cu).max(1);
    let all = machine.vgprs_per_simd / waves / machine.vgpr_granule * machine.vgpr_granule;
    let vector = |part: u32| (all * part / 4).min(machine.arch_vgprs) / machine.vgpr_granule * machine.vgpr_granule;
    let mut shares: Vec<[u32; 2]> =
        [4, 3, 2].map(vector).into_iter().map(|v| [v, (all - v).min(machine.acc_vgprs)]).collect();
    shares.dedup();
    shares
}

/// Allocates the registers of some code, for waves of a program with so many threads.
pub(crate) fn allocate(code: &Code, machine: &Machine, threads: u32) -> Result<Allocated, Fault> {
    let mut first = None;
    for share in shares(machine, threads) {
        match within(code.clone(), machine, share) {
            Ok(allocated) => return Ok(allocated),
            Err(fault) => _ = first.get_or_insert(fault),
        }
    }
    Err(first.unwrap_or_else(|| Fault::Defect("a machine without registers".to_owned())))
}

/// Allocates so many vector and accumulation registers at most.
fn within(mut code: Code, machine: &Machine, [vector, accumulation]: [u32; 2]) -> Result<Allocated, Fault> {
    let small = |n: u32| u16::try_from(n).unwrap_or(u16::MAX);
    let available = [
        Available { first: FIXED_SCALARS.into(), end: small(machine.sgprs) },
        Available { first: FIXED_VECTORS.into(), end: small(vector) },
        Available { first: 0, end: small(accumulation) },
    ];
    let limits = [machine.sgprs, vector + accumulation];
    let mut spills = Spills::default();
    for _ in 0..ROUNDS {
        let lives = live::lives(&code);
        let full = match assign::assign(&code, &lives, available) {
            Ok(assignment) => return Ok(finish(code, &assignment)),
            Err(full) => full,
        };
        // More than the one that has no place: the pressure of what follows is likely as high.
        let chosen = match full.file {
            File::S => spill::choose(&code, &lives, full.reg, &spills, 4),
            File::V => spill::choose(&code, &lives, full.reg, &spills, if accumulation > 0 { 16 } else { 0 }),
            File::A => Vec::new(),
        };
        if chosen.is_empty() {
            return Err(exceeded(&code, &lives, limits));
        }
        spill::spill(&mut code, &chosen, &mut spills);
    }
    let lives = live::lives(&code);
    Err(exceeded(&code, &lives, limits))
}

/// The error for code that needs more registers than there are, at the line where most of them live.
fn exceeded(code: &Code, lives: &Lives, limits: [u32; 2]) -> Fault {
    let mut at = vec![[0u32; 3]; 2 * code.len() + 2];
    for (register, ranges) in code.registers.iter().zip(&lives.ranges) {
        for range in ranges {
            for point in range.from..=range.to {
                if let Some(all) = at.get_mut(point as usize) {
                    all[index(register.file)] += u32::from(register.words);
                }
            }
        }
    }
    let worst = |point: &[u32; 3]| (point[0] * 1000 / limits[0]).max((point[1] + point[2]) * 1000 / limits[1]);
    let (point, most) =
        at.iter().enumerate().max_by_key(|(i, p)| (worst(p), std::cmp::Reverse(*i))).unwrap_or((0, &[0; 3]));
    let insts: Vec<&Inst> = code.order.iter().flat_map(|b| code.insts(*b)).collect();
    let loc = insts.get(point / 2).map_or_else(Loc::default, |inst| inst.loc);
    let why = format!(
        "has {} scalar and {} vector registers for each wave of this program, and this code needs {} and {} here",
        limits[0],
        limits[1],
        most[0] + u32::from(FIXED_SCALARS),
        most[1] + most[2] + u32::from(FIXED_VECTORS),
    );
    Fault::Limit(why, loc)
}

/// Replaces virtual registers by their places.
fn finish(spilled: Code, assignment: &Assignment) -> Allocated {
    let mut code = spilled.clone();
    for block in &spilled.order {
        let insts = &mut code.blocks[block.index()].insts;
        for inst in insts.iter_mut() {
            for operand in &mut inst.operands {
                if let Operand::Part(part) = *operand {
                    *operand = Operand::Isa(place(&spilled, assignment, part));
                }
            }
        }
    }
    let fixed = [u16::from(FIXED_SCALARS), u16::from(FIXED_VECTORS), 0];
    let mut used = assignment.used;
    for (used, fixed) in used.iter_mut().zip(fixed) {
        *used = (*used).max(fixed);
    }
    Allocated { code, used }
}

fn place(code: &Code, assignment: &Assignment, part: Part) -> Isa {
    // A register without a lifetime is neither read nor written.
    let first = assignment.places[part.reg.index()].unwrap_or(0).saturating_add(part.first);
    match code.register(part.reg).file {
        File::S => Isa::S(first, part.words),
        File::V => Isa::V(first, part.words),
        File::A => Isa::A(first, part.words),
    }
}
