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
//! | a store or atomic of more than 2 words reads its data | vector arithmetic or a matrix instruction writes them | 2 | table 11 |
//! | vector arithmetic writes a vector register | a matrix instruction reads it | 2 | table 37 |
//! | the same, and an MMA of `f64` follows | memory or the local data share reads it | 2 | LLVM |
//! | a matrix instruction of P passes, see below | | | table 37, LLVM for gfx940 |
//!
//! After a matrix instruction has written its result:
//!
//! | second | of narrow elements (XDL) | of `f32` | of `f64`, 8 passes | of `f64`, 4 passes |
//! |---|---|---|---|---|
//! | the same instruction adds to exactly these registers | 0; 2 if P is 2 | 0 | 0 | 0 |
//! | one of `f64` adds to any of them | P + 1 | P | 9 | 4 |
//! | another one adds to any of them | P + 1 | P | 11 | 6 |
//! | a matrix instruction reads them as A or B | P + 3 | P + 2 | 11 | 6 |
//! | vector arithmetic reads or writes them | P + 3 | P + 2 | 11 | 6 |
//! | any other instruction reads them | P + 3 | P + 2 | 18 | 9 |
//!
//! And until an XDL instruction has read what it adds to, P − 1 states, vector arithmetic may not write that.
//!
//! A wait state is an instruction in between; `s_nop n` counts n + 1. The state at a point is the list of recent events with the number of
//! instructions since, the least of all ways to the point. Events are forgotten after as many instructions as the longest rule has.
//!
//! **Example.** `v_mfma_f32_16x16x16_f16 v[0:3], …` has 4 passes. A second one of the kind that adds to `v[0:3]` may follow at once; a
//! `v_add_f32` of `v2` needs 4 + 3 = 7 states in between, which an `s_nop 6` is.
//!
//! Not in the table, because this code generator has no such instructions: writes of a part of a register, writes of `exec` by vector
//! arithmetic, of `m0` and of hardware registers, sparse matrix instructions.

use super::machine_ir::{Code, Inst, Kind, Operand};
use super::registers::{Physical, of, read, unit, written};
use crate::isa::{Access, Class, Field, Form, Operand as Isa, Unit};
use std::collections::BTreeMap;
use titan_core::ir::Loc;

/// The longest rule: after 16 passes.
const LONGEST: u32 = 19;
/// The most states of one `s_nop`; LLVM has none of more.
const NOP: u32 = 8;

/// The unit of a matrix instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Core {
    /// Elements of at most 16 bits, and `xf32`.
    Xdl,
    /// `f32`.
    Single,
    /// `f64`.
    Double,
}

/// A matrix instruction that wrote a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Product {
    core: Core,
    passes: u8,
    name: &'static str,
    /// All registers of its result.
    first: Physical,
    count: u8,
}

/// What happened to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// Vector arithmetic wrote it.
    Written,
    /// The same, and an MMA of `f64` followed.
    BeforeDouble,
    /// A transcendental instruction wrote it.
    Transcendental,
    /// A wide store reads it.
    Stored,
    /// A matrix instruction wrote it.
    Product(Product),
    /// An XDL instruction of so many passes adds to it.
    Added(u8),
}

/// The number of instructions since recent events, by register.
type Recent = BTreeMap<Physical, BTreeMap<Event, u32>>;

/// The use that an instruction makes of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// A matrix instruction adds to it, as one of these registers.
    Addend(Physical, u8),
    /// It is another operand of a matrix instruction.
    Factor,
    /// Vector arithmetic reads or writes it.
    Arithmetic,
    /// Any other instruction reads it.
    Other,
}

const fn is_vector(unit: Unit) -> bool {
    matches!(unit, Unit::Valu | Unit::Trans | Unit::Dot)
}

const fn is_memory(unit: Unit) -> bool {
    matches!(unit, Unit::Load | Unit::Store | Unit::Atomic | Unit::LoadLds)
}

/// The unit of a matrix instruction; `None` for other instructions.
const fn core(unit: Unit) -> Option<Core> {
    match unit {
        Unit::Xdl => Some(Core::Xdl),
        Unit::Sgemm => Some(Core::Single),
        Unit::Dgemm => Some(Core::Double),
        Unit::Salu
        | Unit::Smem
        | Unit::Valu
        | Unit::Trans
        | Unit::Dot
        | Unit::Load
        | Unit::Store
        | Unit::Atomic
        | Unit::LoadLds
        | Unit::Cache
        | Unit::Lds
        | Unit::Branch
        | Unit::Control => None,
    }
}

/// The wait states between a matrix instruction and an instruction that uses a register of its result.
fn after(product: &Product, inst: &Inst, how: Use) -> u32 {
    let p = u32::from(product.passes);
    let long = p > 4;
    let pick = |many: u32, few: u32| if long { many } else { few };
    let again = how == Use::Addend(product.first, product.count) && inst.name() == product.name;
    match (product.core, how) {
        (Core::Xdl, _) if again => {
            if p == 2 {
                2
            } else {
                0
            }
        }
        (Core::Single | Core::Double, _) if again => 0,
        (Core::Xdl, Use::Addend(..)) => p + 1,
        (Core::Single, Use::Addend(..)) => p,
        (Core::Double, Use::Addend(..)) if unit(inst) == Unit::Dgemm => pick(9, 4),
        (Core::Xdl, Use::Factor | Use::Arithmetic | Use::Other) => p + 3,
        (Core::Single, Use::Factor | Use::Arithmetic | Use::Other) => p + 2,
        (Core::Double, Use::Other) => pick(18, 9),
        (Core::Double, Use::Addend(..) | Use::Factor | Use::Arithmetic) => pick(11, 6),
    }
}

/// The uses of vector and accumulation registers by an instruction.
fn uses(inst: &Inst) -> Vec<(Physical, Use)> {
    let Kind::Row { row, form, .. } = &inst.kind else { return Vec::new() };
    let mut all = Vec::new();
    for (arg, operand) in row.args_in(*form).as_slice().iter().zip(&inst.operands) {
        let registers = of(operand);
        let Some(first) = registers.first().copied() else { continue };
        let how = match (core(row.unit), arg.class) {
            (Some(_), Class::MatrixC) => Use::Addend(first, u8::try_from(registers.len()).unwrap_or(u8::MAX)),
            (Some(_), _) => Use::Factor,
            (None, _) if is_vector(row.unit) => Use::Arithmetic,
            (None, _) => Use::Other,
        };
        // What is only written matters to vector arithmetic alone: hardware orders other writes.
        if arg.access == Access::Write && how != Use::Arithmetic {
            continue;
        }
        all.extend(registers.into_iter().filter(|r| !matches!(r, Physical::S(_))).map(|register| (register, how)));
    }
    all
}

/// The wait states that an instruction needs after the recent events.
fn needed(recent: &Recent, inst: &Inst) -> u32 {
    let unit = unit(inst);
    let mut most = 0;
    let mut need = |event: Event, register: Physical, states: u32| {
        if let Some(since) = recent.get(&register).and_then(|events| events.get(&event)) {
            most = most.max(states.saturating_sub(*since));
        }
    };
    let lanes = matches!(inst.name(), "v_readlane_b32" | "v_readfirstlane_b32");
    let across = matches!(inst.kind, Kind::Row { form: Form::Dpp, .. });
    let fmas = inst.name().starts_with("v_div_fmas");
    let matrix = core(unit).is_some();
    for register in read(inst) {
        match register {
            Physical::S(_) if is_memory(unit) => need(Event::Written, register, 5),
            Physical::S(_) if lanes || fmas => need(Event::Written, register, 4),
            Physical::S(_) if is_vector(unit) => need(Event::Written, register, 2),
            Physical::V(_) if across => need(Event::Written, register, 2),
            Physical::V(_) if lanes => need(Event::Written, register, 1),
            Physical::V(_) | Physical::A(_) if matrix => need(Event::Written, register, 2),
            Physical::V(_) | Physical::A(_) if is_memory(unit) || unit == Unit::Lds => {
                need(Event::BeforeDouble, register, 2);
            }
            Physical::S(_) | Physical::V(_) | Physical::A(_) => {}
        }
        if is_vector(unit) && unit != Unit::Trans {
            need(Event::Transcendental, register, 1);
        }
    }
    if is_vector(unit) || matrix {
        for register in written(inst) {
            need(Event::Stored, register, 2);
        }
    }
    most.max(needed_by_matrices(recent, inst))
}

/// The wait states that an instruction needs after recent matrix instructions.
fn needed_by_matrices(recent: &Recent, inst: &Inst) -> u32 {
    let mut most = 0;
    for (register, how) in uses(inst) {
        for (event, since) in recent.get(&register).into_iter().flatten() {
            if let Event::Product(product) = event {
                most = most.max(after(product, inst, how).saturating_sub(*since));
            }
        }
    }
    if is_vector(unit(inst)) {
        for register in written(inst) {
            for (event, since) in recent.get(&register).into_iter().flatten() {
                if let Event::Added(passes) = event {
                    most = most.max(u32::from(passes.saturating_sub(1)).saturating_sub(*since));
                }
            }
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
    let Kind::Row { row, form, .. } = &inst.kind else { return };
    recent.retain(|_, events| {
        events.retain(|_, since| {
            *since += idle + own;
            *since < LONGEST
        });
        !events.is_empty()
    });
    if row.unit == Unit::Dgemm {
        for events in recent.values_mut() {
            if let Some(since) = events.get(&Event::Written).copied() {
                events.insert(Event::BeforeDouble, since);
            }
        }
    }
    let results = written(inst);
    let count = u8::try_from(results.len()).unwrap_or(u8::MAX);
    for register in &results {
        let events = recent.entry(*register).or_default();
        events.retain(|event, _| match event {
            Event::Written | Event::BeforeDouble | Event::Transcendental => false,
            // A matrix instruction waits for those whose results it replaces, as far as its own rules say.
            Event::Product(_) => core(row.unit).is_none(),
            Event::Stored | Event::Added(_) => true,
        });
        if is_vector(row.unit) {
            events.insert(Event::Written, 0);
        }
        if row.unit == Unit::Trans {
            events.insert(Event::Transcendental, 0);
        }
        if let (Some(core), Some(first)) = (core(row.unit), results.first().copied()) {
            events.insert(Event::Product(Product { core, passes: row.passes, name: row.name, first, count }), 0);
        }
    }
    if row.unit == Unit::Xdl {
        let addend = row.args_in(*form).as_slice().iter().position(|arg| arg.class == Class::MatrixC);
        for register in addend.and_then(|at| inst.operands.get(at)).map(of).unwrap_or_default() {
            recent.entry(register).or_default().insert(Event::Added(row.passes), 0);
        }
    }
    for register in stored(inst) {
        recent.entry(register).or_default().insert(Event::Stored, 0);
    }
}

/// Adds the events of another way, with the least number of instructions; returns whether anything changed.
fn join(into: &mut Recent, from: &Recent) -> bool {
    let mut changed = false;
    for (register, events) in from {
        let own = into.entry(*register).or_default();
        for (event, since) in events {
            let known = own.entry(*event).or_insert(u32::MAX);
            changed |= *since < *known;
            *known = (*known).min(*since);
        }
    }
    changed
}

/// Inserts the wait states of some code on registers of the machine.
pub(crate) fn insert(code: &mut Code) {
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
            idles(idle, inst.loc, &mut out);
            step(&mut recent, &inst, idle);
            out.push(inst);
        }
        code.blocks[block.index()].insts = out;
    }
}

/// Adds instructions that wait for so many states.
fn idles(states: u32, loc: Loc, out: &mut Vec<Inst>) {
    let Some(row) = crate::isa::by_name("s_nop").first() else { return };
    let mut left = states;
    while left > 0 {
        let n = left.min(NOP);
        left -= n;
        let kind = Kind::Row { row, form: Form::Base, mods: Vec::new() };
        let operands = vec![Operand::Isa(Isa::Imm(i32::try_from(n - 1).unwrap_or(0)))];
        out.push(Inst { kind, operands, loc, added: true });
    }
}
