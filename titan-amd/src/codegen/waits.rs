//! Waits for memory operations: before every instruction that touches a register which an operation in flight will write, this operation is
//! waited for; before a barrier, all operations that other waves may notice: all but loads from global memory, which only write registers of
//! their own wave. What a wave has loaded for a later iteration therefore stays in flight across barriers.
//!
//! | counter | operations | order (ISA §4.4) | waits |
//! |---|---|---|---|
//! | `vmcnt` | vector memory: loads, stores, atomics | in order | until as many are in flight as were issued after it |
//! | `lgkmcnt` | the local data share in order; scalar memory in any order | | the same, or for all while scalar memory may be in flight |
//!
//! The state at a point is, for each register that an operation may be writing, the least number of operations of its counter that were issued
//! after it (its *age*), and the age of the last operation that changes memory. Where ways meet, it is the
//! union of theirs with the lesser ages. Ages only decrease and the sets only grow, so the iteration ends. A wait for n forgets what has an age
//! of n or more.
//!
//! A load from global memory need not wait for another one that writes the same registers: both are in order.
//!
//! Counts saturate one below what the fields hold: LLVM never waits for more, and hardware issues no operation that its counter could not
//! count. Waiting for fewer is always right.

use super::arrivals::Arrivals;
use super::machine_ir::{Block, Code, Inst, Kind, Operand};
use super::registers::{Physical, read, unit, written};
use crate::isa::{Form, Operand as Isa, Unit};
use crate::model::issue::Sharing;
use std::collections::BTreeMap;
use titan_core::ir::Loc;

/// The immediate of `s_waitcnt` that waits for nothing: ISA §12.5, `S_WAITCNT`.
const NOTHING: i32 = 0xcf7f;
/// The bits of `vmcnt`.
const VECTOR: i32 = 0xc00f;
/// The bits of `lgkmcnt`.
const OTHER: i32 = 0x0f00;
/// The greatest numbers of operations in flight that are waited for.
const MOST: [u32; 2] = [62, 14];

/// The number of matrix instructions before which one wait is for the fragments of all: a matrix instruction of 16 × 16 × 16 elements takes 16 cycles,
/// and a fragment of 16 bytes a lane for each of four SIMDs takes 32 cycles of the local data share.
const PRODUCTS: usize = 4;

/// The number of instructions of vector arithmetic before which one wait is for what all of them read: a load of 8 bytes a lane takes at least 8 cycles of
/// the path from the cache, and an instruction 4.
const ARITHMETIC: usize = 8;

/// The number of operations that may stay in flight, by counter.
type Counts = [Option<u32>; 2];

/// The operations of a counter that may be in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Queue {
    /// The ages of the operations that write registers.
    ages: BTreeMap<Physical, u32>,
    /// The age of the last operation that must be complete at a barrier.
    noticed: Option<u32>,
    /// Whether there may be some that complete in any order.
    unordered: bool,
}

impl Queue {
    /// Adds what is in flight on another way; returns whether anything changed.
    fn join(&mut self, from: &Queue) -> bool {
        let noticed = self.noticed.into_iter().chain(from.noticed).min();
        let mut changed = noticed != self.noticed || (from.unordered && !self.unordered);
        self.noticed = noticed;
        self.unordered |= from.unordered;
        for (register, age) in &from.ages {
            let known = self.ages.entry(*register).or_insert(u32::MAX);
            changed |= age < known;
            *known = (*known).min(*age);
        }
        changed
    }

    /// The count to wait for before registers are touched.
    fn needed(&self, touched: &[Physical], most: u32) -> Option<u32> {
        let age = touched.iter().filter_map(|register| self.ages.get(register)).min()?;
        Some(self.count(*age, most))
    }

    /// The count to wait for so that what has this age is complete.
    fn count(&self, age: u32, most: u32) -> u32 {
        if self.unordered { 0 } else { age.min(most) }
    }

    fn wait(&mut self, count: u32) {
        if count == 0 {
            *self = Queue::default();
        } else if !self.unordered {
            self.ages.retain(|_, age| *age < count);
            self.noticed = self.noticed.filter(|age| *age < count);
        }
    }

    fn issue(&mut self, registers: Vec<Physical>, noticed: bool, unordered: bool) {
        for age in self.ages.values_mut().chain(&mut self.noticed) {
            *age = age.saturating_add(1);
        }
        if noticed {
            self.noticed = Some(0);
        }
        self.unordered |= unordered;
        self.ages.extend(registers.into_iter().map(|register| (register, 0)));
    }
}

/// What may be in flight: vector memory, and the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Flight([Queue; 2]);

impl Flight {
    fn join(&mut self, from: &Flight) -> bool {
        let [vector, other] = &mut self.0;
        let changed = vector.join(&from.0[0]);
        other.join(&from.0[1]) || changed
    }

    /// The counts that an instruction must wait for.
    fn needed(&self, inst: &Inst) -> Counts {
        let [vector, other] = &self.0;
        if inst.name() == "s_barrier" {
            let count = |queue: &Queue, most: u32| queue.noticed.map(|age| queue.count(age, most));
            return [count(vector, MOST[0]), count(other, MOST[1])];
        }
        let (mut touched, written) = (read(inst), written(inst));
        // A load writes behind those that were issued before it.
        let in_order = unit(inst) == Unit::Load;
        let of_reads = vector.needed(&touched, MOST[0]);
        let of_writes = if in_order { None } else { vector.needed(&written, MOST[0]) };
        touched.extend(written);
        [of_reads.into_iter().chain(of_writes).min(), other.needed(&touched, MOST[1])]
    }

    fn wait(&mut self, counts: Counts) {
        for (queue, count) in self.0.iter_mut().zip(counts) {
            if let Some(count) = count {
                queue.wait(count);
            }
        }
    }

    /// The effect of an instruction, after its waits.
    fn issue(&mut self, inst: &Inst) {
        if inst.name() == "s_waitcnt" {
            let bits = match inst.operands.first() {
                Some(Operand::Isa(Isa::Imm(bits))) => *bits,
                Some(_) | None => NOTHING,
            };
            self.wait([(bits & VECTOR == 0).then_some(0), (bits & OTHER == 0).then_some(0)]);
            return;
        }
        match unit(inst) {
            Unit::Load => self.0[0].issue(written(inst), false, false),
            Unit::Store | Unit::Atomic | Unit::LoadLds => self.0[0].issue(written(inst), true, false),
            Unit::Lds => self.0[1].issue(written(inst), true, false),
            Unit::Smem => self.0[1].issue(written(inst), true, true),
            Unit::Salu
            | Unit::Valu
            | Unit::Trans
            | Unit::Dot
            | Unit::Xdl
            | Unit::Sgemm
            | Unit::Dgemm
            | Unit::Cache
            | Unit::Branch
            | Unit::Control => {}
        }
    }

    fn step(&mut self, inst: &Inst) -> Counts {
        let needed = self.needed(inst);
        self.wait(needed);
        self.issue(inst);
        needed
    }
}

/// Inserts the waits of some code on registers of the machine.
pub(crate) fn insert(code: &mut Code, sharing: Sharing) {
    let Some(row) = crate::isa::by_name("s_waitcnt").first() else { return };
    let states = at_starts(code);
    let wait = |counts: Counts, loc: Loc| {
        let kind = Kind::Row { row, form: Form::Base, mods: Vec::new() };
        Inst { kind, operands: vec![Operand::Isa(Isa::Imm(immediate(counts)))], loc, added: true }
    };
    for block in code.order.clone() {
        let mut state = states[block.index()].clone();
        let insts = std::mem::take(&mut code.blocks[block.index()].insts);
        let mut out = Vec::with_capacity(insts.len());
        let mut arrivals = Arrivals::new(sharing);
        for (number, inst) in insts.iter().enumerate() {
            let mut needed = together(&state, &insts[number..]);
            needed[1] = needed[1].map(|count| arrivals.left(count, inst));
            state.wait(needed);
            let own = state.step(inst);
            if let Some(count) = needed[1].or(own[1]) {
                arrivals.wait(count);
            }
            arrivals.step(inst);
            if needed != [None; 2] || own != [None; 2] {
                out.push(wait([needed[0].or(own[0]), needed[1].or(own[1])], inst.loc));
            }
            out.push(inst.clone());
        }
        code.blocks[block.index()].insts = out;
    }
}

/// What is waited for before the first of some instructions: what it needs, or more if instructions follow that need more, and one wait serves all
/// of them without delay:
///
/// * Writes to the local data share that follow each other: a barrier comes after them, and nothing can be done in between.
/// * Matrix instructions that follow each other: while one multiplies, the fragments of the next ones arrive.
/// * Vector arithmetic on what was loaded or exchanged that follows each other: each instruction takes less time than the next load.
/// * Operations of the local data share that have arrived by then ([`Arrivals`]), whatever reads them.
/// * Registers that are set again although a load is in flight to them: what it has loaded is not read on this way. So it was waited for where
///   it is read, or is never needed, and is complete long ago.
fn together(state: &Flight, insts: &[Inst]) -> Counts {
    let Some(first) = insts.first() else { return [None; 2] };
    let mut needed = state.needed(first);
    let multiplies = |inst: &Inst| matches!(unit(inst), Unit::Xdl | Unit::Sgemm | Unit::Dgemm);
    if needed[1].is_some() {
        // None of them issues an operation of the counter.
        let needed_by = |inst: &Inst| state.needed(inst)[1];
        let products = insts.iter().take(PRODUCTS).take_while(|inst| multiplies(inst));
        let arithmetic = insts.iter().take(ARITHMETIC).take_while(|inst| unit(inst) == Unit::Valu);
        needed[1] = needed[1].into_iter().chain(products.chain(arithmetic).filter_map(needed_by)).min();
    }
    let Some(_) = needed[0] else { return needed };
    let writes = |inst: &Inst| unit(inst) == Unit::Lds && written(inst).is_empty();
    let of_memory = |inst: &Inst| matches!(unit(inst), Unit::Load | Unit::Store | Unit::Atomic | Unit::LoadLds);
    let sets = |inst: &Inst| {
        let in_flight =
            |registers: Vec<Physical>| registers.iter().any(|register| state.0[0].ages.contains_key(register));
        in_flight(written(inst)) && !in_flight(read(inst)) && !of_memory(inst)
    };
    let computes = |inst: &Inst| unit(inst) == Unit::Valu && !sets(inst);
    // None of them issues vector memory operations, so that the counts mean the same everywhere.
    let alike: Vec<&Inst> = if writes(first) {
        insts.iter().take_while(|inst| writes(inst)).collect()
    } else if computes(first) {
        insts.iter().take(ARITHMETIC).take_while(|inst| computes(inst)).collect()
    } else if sets(first) {
        insts.iter().take_while(|inst| !of_memory(inst)).filter(|inst| sets(inst)).collect()
    } else {
        return needed;
    };
    for inst in alike {
        if let Some(count) = state.needed(inst)[0] {
            needed[0] = needed[0].map(|known| known.min(count));
        }
    }
    needed
}

/// The immediate of a wait: ISA §12.5, `S_WAITCNT`: `vmcnt` is in bits 3:0 and 15:14, `lgkmcnt` in bits 11:8.
fn immediate([vector, other]: Counts) -> i32 {
    let small = |count: u32| i32::try_from(count).unwrap_or(0);
    let vector = vector.map_or(NOTHING & VECTOR, |n| small(n & 15 | (n >> 4 & 3) << 14));
    let other = other.map_or(NOTHING & OTHER, |n| small((n & 15) << 8));
    NOTHING & !(VECTOR | OTHER) | vector | other
}

/// What may be in flight at the start of each block, by the number of the block.
fn at_starts(code: &Code) -> Vec<Flight> {
    let mut states = vec![Flight::default(); code.blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (position, block) in code.order.iter().enumerate() {
            let state = at_end(code, *block, states[block.index()].clone());
            for next in code.successors(position) {
                changed |= states[next.index()].join(&state);
            }
        }
    }
    states
}

fn at_end(code: &Code, block: Block, mut state: Flight) -> Flight {
    for inst in code.insts(block) {
        state.step(inst);
    }
    state
}
