//! Waits for memory operations: before every instruction that touches a register which an operation in flight will write, all operations of
//! that kind are waited for; before a barrier, all operations.
//!
//! | counter | operations | order (ISA §4.4) |
//! |---|---|---|
//! | `vmcnt` | vector memory: loads, stores, atomics | in order |
//! | `lgkmcnt` | the local data share in order; scalar memory in any order | only 0 is certain with both |
//!
//! The state at a point is the set of registers that an operation may be writing, by counter, and whether anything is in flight; where ways
//! meet, it is the union of theirs. States only grow, so the iteration ends. A wait empties the sets of its counter.
//!
//! Deliberately absent: counts other than 0. Vector memory completes in order, so that a wait for a few of the last operations would be possible.

use super::machine_ir::{Block, Code, Inst, Kind, Operand};
use super::registers::{Physical, read, unit, written};
use crate::isa::{Form, Operand as Isa, Unit};
use std::collections::BTreeSet;
use titan_core::ir::Loc;

/// The immediate of `s_waitcnt` that waits for nothing: ISA §12.5, `S_WAITCNT`.
const NOTHING: i32 = 0xcf7f;
/// The bits of `vmcnt`.
const VECTOR: i32 = 0xc00f;
/// The bits of `lgkmcnt`.
const OTHER: i32 = 0x0f00;

/// What may be in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Flight {
    vector: BTreeSet<Physical>,
    other: BTreeSet<Physical>,
    /// Whether there are operations at all, also those that write no register.
    any: [bool; 2],
}

impl Flight {
    /// Adds what is in flight on another way; returns whether there was more.
    fn join(&mut self, from: &Flight) -> bool {
        let before = (self.vector.len(), self.other.len(), self.any);
        self.vector.extend(&from.vector);
        self.other.extend(&from.other);
        self.any = [self.any[0] | from.any[0], self.any[1] | from.any[1]];
        before != (self.vector.len(), self.other.len(), self.any)
    }

    /// The counters that an instruction must wait for.
    fn needed(&self, inst: &Inst) -> [bool; 2] {
        if inst.name() == "s_barrier" {
            return self.any;
        }
        let touched: Vec<Physical> = read(inst).into_iter().chain(written(inst)).collect();
        let among = |set: &BTreeSet<Physical>| !set.is_empty() && touched.iter().any(|r| set.contains(r));
        [among(&self.vector), among(&self.other)]
    }

    fn wait(&mut self, counters: [bool; 2]) {
        if counters[0] {
            self.vector.clear();
            self.any[0] = false;
        }
        if counters[1] {
            self.other.clear();
            self.any[1] = false;
        }
    }

    /// The effect of an instruction, after its waits.
    fn issue(&mut self, inst: &Inst) {
        if inst.name() == "s_waitcnt" {
            let bits = match inst.operands.first() {
                Some(Operand::Isa(Isa::Imm(bits))) => *bits,
                Some(_) | None => NOTHING,
            };
            self.wait([bits & VECTOR == 0, bits & OTHER == 0]);
            return;
        }
        match unit(inst) {
            Unit::Load | Unit::Store | Unit::Atomic | Unit::LoadLds => {
                self.vector.extend(written(inst));
                self.any[0] = true;
            }
            Unit::Smem | Unit::Lds => {
                self.other.extend(written(inst));
                self.any[1] = true;
            }
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

    fn step(&mut self, inst: &Inst) -> [bool; 2] {
        let needed = self.needed(inst);
        self.wait(needed);
        self.issue(inst);
        needed
    }
}

/// Inserts the waits of some code on registers of the machine.
pub(crate) fn insert(code: &mut Code) {
    let Some(row) = crate::isa::by_name("s_waitcnt").first() else { return };
    let states = at_starts(code);
    let wait = |counters: [bool; 2], loc: Loc| {
        let bits = NOTHING & !(if counters[0] { VECTOR } else { 0 }) & !(if counters[1] { OTHER } else { 0 });
        let kind = Kind::Row { row, form: Form::Base, mods: Vec::new() };
        Inst { kind, operands: vec![Operand::Isa(Isa::Imm(bits))], loc, added: true }
    };
    for block in code.order.clone() {
        let mut state = states[block.index()].clone();
        let insts = std::mem::take(&mut code.blocks[block.index()].insts);
        let mut out = Vec::with_capacity(insts.len());
        for inst in insts {
            let needed = state.step(&inst);
            if needed != [false; 2] {
                out.push(wait(needed, inst.loc));
            }
            out.push(inst);
        }
        code.blocks[block.index()].insts = out;
    }
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
