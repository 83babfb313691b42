//! tidy: table
//! A model of the issue of instructions: how long the waves of a SIMD unit take for a loop, in the order in which its instructions are.
//!
//! Each wave issues its instructions in order, one in 4 clocks at most, and several waves issue to different units at once. An instruction is issued when
//! its unit is free, `s_waitcnt` when no more operations are in flight than it says, and `s_barrier` when all waves are there. The units of the compute unit
//! ([`Engine::Local`], [`Engine::Memory`]) serve the equal waves of all SIMD units, so that each access takes as many times longer. Accesses queue up, and
//! return their data a latency after they were served.
//!
//! | latency | clocks | source |
//! |---|---|---|
//! | local data share | 64 | assumed: LLVM, `SISchedule.td`, has 20, "can be between" 8 and 256 |
//! | vector memory | 320 | LLVM, `SISchedule.td`, `WriteVMEM`: 80 of 4 clocks |
//! | scalar memory | 64 | assumed: LLVM has 20, as for the local data share |
//! | branch | 32 | LLVM, `SISchedule.td`, `WriteBranch`: 8 of 4 clocks |
//! | matrix instruction, to one that adds to its result | its passes | ISA §7.5: no wait states |
//! | others | | `s_nop` is in the code: a wait state is 4 clocks |
//!
//! **Example.** A loop of a load of 16 bytes a lane from the local data share, `s_waitcnt lgkmcnt(0)` and an MMA of 4 passes, for one wave on each of
//! 4 SIMD units: the load is served for 8 × 4 clocks and returns 64 later. So the wait ends at clock 96, the MMA starts at 100, and the next load at 104.
//!
//! Deliberately absent: conflicts of banks ([`super::banks`]), caches, and the fetch of instructions. No AMD GPU has been measured: the model
//! compares orders of the same instructions, and says nothing about times.

use super::units::{Engine, occupies};
use crate::isa::{Inst, Operand, Unit};
use std::collections::VecDeque;

/// The clocks from the service of an access to the local data share, or of a scalar load, to its data.
pub const LOCAL_LATENCY: u64 = 64;
/// The clocks from the service of an access to vector memory to its data.
pub const MEMORY_LATENCY: u64 = 320;
/// The clocks between instructions of a wave.
pub const ISSUE: u64 = 4;
/// The clocks of a branch.
const BRANCH: u64 = 32;
/// How many operations each counter counts: hardware issues no more (ISA §4.4). The last ones cannot be waited for.
const COUNTED: [usize; 2] = [63, 15];

/// The waves that share units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// The waves on each SIMD unit.
    pub waves: u64,
    /// The SIMD units of a compute unit with such waves.
    pub simds: u64,
}

impl Sharing {
    /// For how many clocks a unit is occupied by the instruction of a wave and the same ones of all waves that share the unit, one after the other.
    #[must_use]
    pub const fn in_turn(self, engine: Engine, clocks: u64) -> u64 {
        match engine {
            Engine::Matrix => clocks * self.waves,
            Engine::Vector | Engine::Scalar => clocks,
            Engine::Local | Engine::Memory => clocks * self.waves * self.simds,
        }
    }
}

/// The counter of an access, as in [`COUNTED`], and the clocks from its service to its data; `None` for what is not waited for by a counter.
pub(crate) const fn returns(unit: Unit) -> Option<(usize, u64)> {
    match unit {
        Unit::Load | Unit::Store | Unit::Atomic | Unit::LoadLds => Some((0, MEMORY_LATENCY)),
        Unit::Lds | Unit::Smem => Some((1, LOCAL_LATENCY)),
        Unit::Salu
        | Unit::Valu
        | Unit::Trans
        | Unit::Dot
        | Unit::Xdl
        | Unit::Sgemm
        | Unit::Dgemm
        | Unit::Cache
        | Unit::Branch
        | Unit::Control => None,
    }
}

/// Why a wave waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stall {
    /// For data of vector memory.
    Memory,
    /// For data of the local data share or of scalar memory.
    Local,
    /// For other waves.
    Barrier,
    /// For wait states.
    States,
    /// For a unit that works for this wave or another one.
    Unit,
}

/// All reasons.
pub const STALLS: [Stall; 5] = [Stall::Memory, Stall::Local, Stall::Barrier, Stall::States, Stall::Unit];

/// The clocks of an iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Issue {
    /// From the start of an iteration to that of the next one.
    pub clocks: u64,
    /// Those in which a wave waits, by reason, in the order of [`STALLS`]; the mean of all waves.
    pub stalls: [u64; 5],
}

/// A wave, between two instructions.
#[derive(Clone, Debug, Default)]
struct Wave {
    /// The number of its next instruction, of all iterations.
    next: usize,
    /// When the next one may be issued.
    ready: u64,
    /// When operations in flight are complete, by counter: vector memory, and the rest.
    flight: [VecDeque<u64>; 2],
    at_barrier: bool,
    stalls: [u64; 5],
}

/// When each unit is free.
#[derive(Clone, Copy, Debug, Default)]
struct Units([u64; 5]);

impl Units {
    fn of(&mut self, engine: Engine) -> &mut u64 {
        let [matrix, vector, scalar, local, memory] = &mut self.0;
        match engine {
            Engine::Matrix => matrix,
            Engine::Vector => vector,
            Engine::Scalar => scalar,
            Engine::Local => local,
            Engine::Memory => memory,
        }
    }
}

/// What matters about an instruction.
#[derive(Clone, Copy, Debug)]
struct Step {
    engine: Option<(Engine, u64)>,
    /// The numbers of operations that may stay in flight: ISA §12.5, `S_WAITCNT`.
    counts: Option<[usize; 2]>,
    /// The wait states of an instruction that only waits.
    states: u64,
    unit: Unit,
    is_barrier: bool,
}

impl Step {
    fn of(inst: &Inst) -> Step {
        let row = inst.row();
        let (mut counts, mut states) = (None, 0);
        match (row.name, inst.operands()) {
            ("s_waitcnt", [Operand::Imm(bits)]) => {
                let bits = bits.cast_unsigned() as usize;
                counts = Some([bits & 15 | (bits >> 14 & 3) << 4, bits >> 8 & 15]);
            }
            ("s_nop", [Operand::Imm(n)]) => states = u64::from(n.unsigned_abs()) + 1,
            (_, _) => {}
        }
        Step { engine: occupies(inst), counts, states, unit: row.unit, is_barrier: row.name == "s_barrier" }
    }
}

impl Wave {
    /// When an instruction is issued, and why not before.
    fn start(&self, step: &Step, units: &mut Units) -> (u64, Option<Stall>) {
        let later = |time: u64, why: Stall| if time > self.ready { (time, Some(why)) } else { (self.ready, None) };
        // The last of the operations that must be complete: they complete in order.
        let until = |counter: usize, left: usize| {
            let queue = &self.flight[counter];
            queue.len().checked_sub(left + 1).and_then(|at| queue.get(at)).copied().unwrap_or(0)
        };
        if let Some([memory, local]) = step.counts {
            let (memory, local) = (until(0, memory), until(1, local));
            return if memory > local { later(memory, Stall::Memory) } else { later(local, Stall::Local) };
        }
        match step.engine {
            Some((Engine::Local, _)) => later(until(1, COUNTED[1] - 1), Stall::Local),
            Some((Engine::Memory, _)) => later(until(0, COUNTED[0] - 1), Stall::Memory),
            Some((engine, _)) => later(*units.of(engine), Stall::Unit),
            None => (self.ready, None),
        }
    }

    /// Issues an instruction.
    fn issue(&mut self, step: &Step, at: u64, units: &mut Units, sharing: Sharing) {
        self.ready = at + ISSUE;
        self.next += 1;
        for queue in &mut self.flight {
            while queue.front().is_some_and(|done| *done <= at) {
                queue.pop_front();
            }
        }
        if let Some((engine, clocks)) = step.engine {
            let free = units.of(engine);
            let begin = at.max(*free);
            *free = begin + if engine.is_of_simd() { clocks } else { clocks * sharing.simds };
            let Some((counter, latency)) = returns(step.unit) else { return };
            let done = (*free + latency).max(self.flight[counter].back().copied().unwrap_or(0));
            self.flight[counter].push_back(done);
            return;
        }
        if step.states > 0 {
            self.ready = at + ISSUE * step.states;
            self.stalls[Stall::States as usize] += ISSUE * step.states;
        }
        if step.unit == Unit::Branch {
            self.ready = at + BRANCH;
        }
        self.at_barrier = step.is_barrier;
    }
}

/// Executes so many iterations; the time at the end, and the stalls of all waves.
fn run(steps: &[Step], sharing: Sharing, turns: usize) -> (u64, [u64; 5]) {
    let mut waves = vec![Wave::default(); usize::try_from(sharing.waves.max(1)).unwrap_or(1)];
    let mut units = Units::default();
    let all = steps.len() * turns;
    loop {
        let mut first: Option<(u64, u64, usize, Option<Stall>)> = None;
        for (number, wave) in waves.iter().enumerate().filter(|(_, wave)| wave.next < all && !wave.at_barrier) {
            let (start, why) = wave.start(&steps[wave.next % steps.len()], &mut units);
            // Of those that could issue at once, the one that has waited longest.
            if first.is_none_or(|(time, ready, ..)| (start, wave.ready) < (time, ready)) {
                first = Some((start, wave.ready, number, why));
            }
        }
        if let Some((start, ready, number, why)) = first {
            let wave = &mut waves[number];
            if let Some(why) = why {
                wave.stalls[why as usize] += start - ready;
            }
            let step = &steps[wave.next % steps.len()];
            wave.issue(step, start, &mut units, sharing);
            continue;
        }
        let Some(together) = waves.iter().filter(|wave| wave.at_barrier).map(|wave| wave.ready).max() else { break };
        // All waves execute the same instructions, so that all are at the barrier, or at the end.
        for wave in waves.iter_mut().filter(|wave| wave.at_barrier) {
            wave.stalls[Stall::Barrier as usize] += together - wave.ready;
            wave.ready = together;
            wave.at_barrier = false;
        }
    }
    let end = waves.iter().map(|wave| wave.ready).max().unwrap_or(0);
    let stalls = std::array::from_fn(|why| waves.iter().map(|wave| wave.stalls[why]).sum());
    (end, stalls)
}

/// The clocks of an iteration of a loop that executes these instructions, after the first ones.
#[must_use]
pub fn of_loop(insts: &[Inst], sharing: Sharing) -> Issue {
    /// Iterations before those that count, and with them.
    const TURNS: [usize; 2] = [2, 4];
    if insts.is_empty() {
        return Issue::default();
    }
    let steps: Vec<Step> = insts.iter().map(Step::of).collect();
    let [(start, before), (end, after)] = TURNS.map(|turns| run(&steps, sharing, turns));
    let counted = (TURNS[1] - TURNS[0]) as u64;
    let stalls = std::array::from_fn(|why| (after[why] - before[why]) / (counted * sharing.waves.max(1)));
    Issue { clocks: (end - start) / counted, stalls }
}

/// The clocks of instructions that are executed once, with nothing in flight before.
#[must_use]
pub fn once(insts: &[Inst], sharing: Sharing) -> Issue {
    if insts.is_empty() {
        return Issue::default();
    }
    let steps: Vec<Step> = insts.iter().map(Step::of).collect();
    let (clocks, stalls) = run(&steps, sharing, 1);
    Issue { clocks, stalls: stalls.map(|all| all / sharing.waves.max(1)) }
}
