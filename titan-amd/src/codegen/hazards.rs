//! Hazards: wait states between instructions that hardware does not keep apart.
//!
//! | first | second | states | source |
//! |---|---|---|---|
//! | vector arithmetic writes a scalar register | vector memory reads it | 5 | ISA §4.5, table 11 |
//! | the same | it selects the lane of a `v_readlane` | 4 | table 11 |
//! | the same, `vcc` | `v_div_fmas` | 4 | table 11 |
//! | the same | vector arithmetic reads it, also as a mask or carry | 2 | LLVM, `GCNHazardRecognizer`, gfx940 |
//! | vector arithmetic writes a vector register | a move across lanes (DPP) reads it | 2 | table 11 |
//! | the same | `v_readlane`, `v_readfirstlane` read it | 1 | LLVM, gfx940 |
//! | a transcendental instruction writes a vector register | other vector arithmetic reads it | 1 | table 11 |
//! | a store or atomic of more than 2 words reads its data | vector arithmetic writes them | 2 | table 11 |
//!
//! A wait state is an instruction in between; `s_nop n` counts n + 1. The state at a point is the list of recent events with the number of
//! instructions since, the least of all ways to the point. Events are forgotten after as many instructions as the longest rule has.
//!
//! Not in the table, because this code generator has no such instructions: matrix instructions, writes of a part of a register, writes of `exec`
//! by vector arithmetic, of `m0` and of hardware registers.

use super::machine_ir::{Code, Inst, Kind, Operand};
use super::registers::{Physical, of, read, unit, written};
use crate::isa::{Access, Field, Form, Operand as Isa, Unit};
use std::collections::BTreeMap;

/// The longest rule.
const LONGEST: u32 = 5;

/// What happened to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Vector arithmetic wrote it.
    Written,
    /// A transcendental instruction wrote it.
    Transcendental,
    /// A wide store reads it.
    Stored,
}

/// The number of instructions since recent events.
type Recent = BTreeMap<(Event, Physical), u32>;

const fn is_vector(unit: Unit) -> bool {
    matches!(unit, Unit::Valu | Unit::Trans | Unit::Dot)
}

const fn is_memory(unit: Unit) -> bool {
    matches!(unit, Unit::Load | Unit::Store | Unit::Atomic | Unit::LoadLds)
}

/// The wait states that an instruction needs after the recent events.
fn needed(recent: &Recent, inst: &Inst) -> u32 {
    let unit = unit(inst);
    let mut most = 0;
    let mut need = |event: Event, register: Physical, states: u32| {
        if let Some(since) = recent.get(&(event, register)) {
            most = most.max(states.saturating_sub(*since));
        }
    };
    let lanes = matches!(inst.name(), "v_readlane_b32" | "v_readfirstlane_b32");
    let across = matches!(inst.kind, Kind::Row { form: Form::Dpp, .. });
    let fmas = inst.name().starts_with("v_div_fmas");
    for register in read(inst) {
        match register {
            Physical::S(_) if is_memory(unit) => need(Event::Written, register, 5),
            Physical::S(_) if lanes || fmas => need(Event::Written, register, 4),
            Physical::S(_) if is_vector(unit) => need(Event::Written, register, 2),
            Physical::V(_) if across => need(Event::Written, register, 2),
            Physical::V(_) if lanes => need(Event::Written, register, 1),
            Physical::S(_) | Physical::V(_) | Physical::A(_) => {}
        }
        if is_vector(unit) && unit != Unit::Trans {
            need(Event::Transcendental, register, 1);
        }
    }
    if is_vector(unit) {
        for register in written(inst) {
            need(Event::Stored, register, 2);
        }
    }
    most
}

/// The data of a wide store or atomic.
fn stored(inst: &Inst) -> Vec<Physical> {
    let Kind::Row { row, form, .. } = &inst.kind else { return Vec::new() };
    if !matches!(row.unit, Unit::Store | Unit::Atomic) {
        return Vec::new();
    }
    let args = row.args_in(*form);
    let data = args
        .as_slice()
        .iter()
        .zip(&inst.operands)
        .find(|(arg, _)| matches!(arg.field, Field::Data | Field::Vdata) && arg.access == Access::Read);
    data.map(|(_, operand)| of(operand)).filter(|registers| registers.len() > 2).unwrap_or_default()
}

/// The effect of an instruction and of the idle states before it.
fn step(recent: &mut Recent, inst: &Inst, idle: u32) {
    // An instruction that waits for some states counts them.
    let own = match (inst.name(), inst.operands.first()) {
        ("s_nop", Some(Operand::Isa(Isa::Imm(n)))) => n.unsigned_abs() + 1,
        (_, _) => 1,
    };
    if inst.kind == Kind::Start {
        return;
    }
    recent.retain(|_, since| {
        *since += idle + own;
        *since < LONGEST
    });
    let unit = unit(inst);
    for register in written(inst) {
        for event in [Event::Written, Event::Transcendental] {
            recent.remove(&(event, register));
        }
        if is_vector(unit) {
            recent.insert((Event::Written, register), 0);
        }
        if unit == Unit::Trans {
            recent.insert((Event::Transcendental, register), 0);
        }
    }
    for register in stored(inst) {
        recent.insert((Event::Stored, register), 0);
    }
}

/// Adds the events of another way, with the least number of instructions; returns whether anything changed.
fn join(into: &mut Recent, from: &Recent) -> bool {
    let mut changed = false;
    for (key, since) in from {
        let known = into.entry(*key).or_insert(u32::MAX);
        changed |= *since < *known;
        *known = (*known).min(*since);
    }
    changed
}

/// Inserts the wait states of some code on registers of the machine.
pub(crate) fn insert(code: &mut Code) {
    let Some(row) = crate::isa::by_name("s_nop").first() else { return };
    let mut states = vec![Recent::new(); code.blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (position, block) in code.order.iter().enumerate() {
            let mut recent = states[block.index()].clone();
            for inst in code.insts(*block) {
                let idle = needed(&recent, inst);
                step(&mut recent, inst, idle);
            }
            for next in code.successors(position) {
                changed |= join(&mut states[next.index()], &recent);
            }
        }
    }
    for block in code.order.clone() {
        let mut recent = states[block.index()].clone();
        let insts = std::mem::take(&mut code.blocks[block.index()].insts);
        let mut out = Vec::with_capacity(insts.len());
        for inst in insts {
            let idle = needed(&recent, &inst);
            if let Ok(n @ 1..) = i32::try_from(idle) {
                let kind = Kind::Row { row, form: Form::Base, mods: Vec::new() };
                let operands = vec![Operand::Isa(Isa::Imm(n - 1))];
                out.push(Inst { kind, operands, loc: inst.loc, added: true });
            }
            step(&mut recent, &inst, idle);
            out.push(inst);
        }
        code.blocks[block.index()].insts = out;
    }
}
