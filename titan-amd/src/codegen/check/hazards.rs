//! The checker of wait states: from each instruction of the bytes of a kernel, a search backward along all ways.
//!
//! For each register that an instruction touches, the search looks for the instructions that last wrote it, and for those that may still read
//! it. It goes on until the register was written, or until as many wait states have passed as the longest rule has. For each pair it finds, a
//! rule says how many states the two must be apart; the rules are those of the manual (ISA §4.5, table 11, and §7.5, table 37) and of LLVM's
//! `GCNHazardRecognizer`, written down pair by pair.
//!
//! **Why this finds every pair.** Each way on which two instructions are less than the longest rule apart is a chain of fewer predecessors than
//! that, and the search visits all of them: at each instruction it keeps the least distance with which it came there, and goes on only if that
//! decreased. Distances are positive integers, so the search ends.
//!
//! **Example.** `v_mfma_f32_16x16x16_f16 v[0:3], …; s_nop 4; v_add_f32 v9, v2, v2`: from the sum, one way back passes 5 states and comes to the
//! writer of `v2`. The rule for an XDL instruction of 4 passes and vector arithmetic says 7, so this is reported.
//!
//! It decodes the bytes, and shares neither a table nor the direction of its search with the pass that inserts the states.

use crate::isa::{Access, Class, Field, Form, Implicit, Inst, Operand, Unit, decode};
use std::collections::BTreeMap;

/// The longest rule.
const LONGEST: u32 = 19;

/// A register, by file and number.
type Register = (char, u8);

/// A decoded instruction.
struct Step {
    at: usize,
    inst: Inst,
    unit: Unit,
    reads: Vec<(Register, Class)>,
    writes: Vec<Register>,
    /// The data of a store of more than two words.
    stored: Vec<Register>,
    /// The states that it takes.
    states: u32,
    before: Vec<usize>,
}

/// Checks the bytes of a kernel.
///
/// # Errors
/// A description of the first pair of instructions that are too close.
pub fn check(text: &[u8]) -> Result<(), String> {
    let steps = steps(text)?;
    for (number, second) in steps.iter().enumerate() {
        let mut touched: Vec<Register> = second.reads.iter().map(|(register, _)| *register).collect();
        touched.extend(&second.writes);
        touched.sort_unstable();
        touched.dedup();
        for register in touched {
            search(&steps, number, register)?;
        }
    }
    Ok(())
}

/// Looks back from an instruction for those that must be further away because of a register.
fn search(steps: &[Step], number: usize, register: Register) -> Result<(), String> {
    let second = &steps[number];
    let mut least: BTreeMap<(usize, bool), u32> = BTreeMap::new();
    let mut open: Vec<(usize, u32, bool)> = second.before.iter().map(|from| (*from, 0, false)).collect();
    while let Some((at, distance, double)) = open.pop() {
        let Some(first) = steps.get(at) else { continue };
        if distance >= LONGEST || least.get(&(at, double)).is_some_and(|known| *known <= distance) {
            continue;
        }
        least.insert((at, double), distance);
        let (states, why) = apart(first, second, register, double);
        if states > distance {
            let (from, to) = (&first.inst, &second.inst);
            return Err(format!(
                "wait states: {:#x}: `{to}` after `{from}` at {:#x}: {why}: {states} are needed, and there are {distance}",
                second.at, first.at
            ));
        }
        if first.writes.contains(&register) {
            continue;
        }
        let double = double || first.unit == Unit::Dgemm;
        open.extend(first.before.iter().map(|from| (*from, distance + first.states, double)));
    }
    Ok(())
}

const fn vector(unit: Unit) -> bool {
    matches!(unit, Unit::Valu | Unit::Trans | Unit::Dot)
}

const fn matrix(unit: Unit) -> bool {
    matches!(unit, Unit::Xdl | Unit::Sgemm | Unit::Dgemm)
}

const fn memory(unit: Unit) -> bool {
    matches!(unit, Unit::Load | Unit::Store | Unit::Atomic | Unit::LoadLds)
}

/// The states by which two instructions must be apart because of a register, and why. `double`: an MMA of `f64` is between them.
fn apart(first: &Step, second: &Step, register: Register, double: bool) -> (u32, &'static str) {
    let wrote = first.writes.contains(&register);
    let reads: Vec<Class> = second.reads.iter().filter(|(r, _)| *r == register).map(|(_, class)| *class).collect();
    let writes = second.writes.contains(&register);
    let mut rules = vec![(0, "")];
    if wrote && !reads.is_empty() {
        rules.push(match register.0 {
            's' => (scalar(first, second, register), "a scalar register that vector arithmetic wrote"),
            _ if vector(first.unit) => (arithmetic(first, second, double), "a register that vector arithmetic wrote"),
            _ => (0, ""),
        });
    }
    if wrote && matrix(first.unit) {
        for class in &reads {
            rules.push((product(first, second, *class == Class::MatrixC), "the result of a matrix instruction"));
        }
        if writes && vector(second.unit) {
            rules.push((product(first, second, false), "the result of a matrix instruction is overwritten"));
        }
    }
    if writes && (vector(second.unit) || matrix(second.unit)) && first.stored.contains(&register) {
        rules.push((2, "a store still reads its data"));
    }
    let adds = first.unit == Unit::Xdl && first.reads.contains(&(register, Class::MatrixC));
    if writes && vector(second.unit) && adds {
        let passes = u32::from(first.inst.row().passes);
        rules.push((passes.saturating_sub(1), "a matrix instruction still reads what it adds to"));
    }
    rules.into_iter().max_by_key(|(states, _)| *states).unwrap_or((0, ""))
}

/// Vector arithmetic wrote a scalar register, or a mask.
fn scalar(first: &Step, second: &Step, register: Register) -> u32 {
    if !vector(first.unit) {
        return 0;
    }
    let name = second.inst.row().name;
    let last = second.inst.operands().last();
    let selects = name.starts_with("v_readlane") || name.starts_with("v_writelane");
    let lane = matches!(last, Some(Operand::S(code, _)) if selects && *code == register.1);
    if memory(second.unit) {
        5
    } else if lane || name.starts_with("v_div_fmas") {
        4
    } else if vector(second.unit) {
        2
    } else {
        0
    }
}

/// Vector arithmetic wrote a vector or accumulation register.
fn arithmetic(first: &Step, second: &Step, double: bool) -> u32 {
    let lane = matches!(second.inst.row().name, "v_readlane_b32" | "v_readfirstlane_b32");
    let across = vector(second.unit) && second.inst.form() == Form::Dpp;
    let after_function = first.unit == Unit::Trans && vector(second.unit) && second.unit != Unit::Trans;
    let after_double = double && (memory(second.unit) || second.unit == Unit::Lds);
    if matrix(second.unit) || across || after_double { 2 } else { u32::from(lane || after_function) }
}

/// A matrix instruction wrote a register. `adds`: the second instruction is a matrix instruction that adds to it.
fn product(first: &Step, second: &Step, adds: bool) -> u32 {
    let (row, passes) = (first.inst.row(), u32::from(first.inst.row().passes));
    let adds = adds && matrix(second.unit);
    let addend = second.inst.args().find(|(arg, _)| arg.class == Class::MatrixC).map(|(_, operand)| operand);
    let result = first.inst.args().find(|(arg, _)| arg.class == Class::MatrixD).map(|(_, operand)| operand);
    if adds && row.name == second.inst.row().name && addend == result {
        return if first.unit == Unit::Xdl && passes == 2 { 2 } else { 0 };
    }
    let beside = !vector(second.unit) && !matrix(second.unit);
    match (first.unit, adds) {
        (Unit::Xdl, true) => passes + 1,
        (Unit::Xdl, false) => passes + 3,
        (Unit::Sgemm, true) => passes,
        (Unit::Sgemm, false) => passes + 2,
        // MMAs of `f64` have 4 or 8 passes.
        (_, true) if second.unit == Unit::Dgemm => passes + u32::from(passes > 4),
        (_, false) if beside => 2 * passes + if passes > 4 { 2 } else { 1 },
        (_, _) => passes + if passes > 4 { 3 } else { 2 },
    }
}

/// The instructions of the bytes, with those from which control comes to each.
fn steps(text: &[u8]) -> Result<Vec<Step>, String> {
    let (mut steps, mut index, mut ways) = (Vec::new(), BTreeMap::new(), Vec::new());
    let mut start = 0;
    while start < text.len() {
        let (inst, size) = decode(&text[start..]).map_err(|e| format!("wait states: {start:#x}: {e}"))?;
        index.insert(start, steps.len());
        let name = inst.row().name;
        if !matches!(name, "s_branch" | "s_endpgm") {
            ways.push((steps.len(), start + size));
        }
        for (arg, operand) in inst.args() {
            if let (Class::Branch, Operand::Imm(words)) = (arg.class, operand) {
                let to = (start + size).wrapping_add_signed(4 * isize::try_from(words).unwrap_or(0));
                ways.push((steps.len(), to));
            }
        }
        steps.push(step(start, inst));
        start += size;
    }
    for (from, to) in ways {
        let Some(to) = index.get(&to) else { return Err(format!("wait states: control leaves the code for {to:#x}")) };
        steps[*to].before.push(from);
    }
    Ok(steps)
}

fn step(at: usize, inst: Inst) -> Step {
    let (mut reads, mut writes, mut stored) = (Vec::new(), Vec::new(), Vec::new());
    for (arg, operand) in inst.args() {
        let named: Vec<Register> = match operand {
            Operand::S(first, n) => (0..n).map(|i| ('s', first + i)).collect(),
            Operand::V(first, n) => (0..n).map(|i| ('v', first + i)).collect(),
            Operand::A(first, n) => (0..n).map(|i| ('a', first + i)).collect(),
            Operand::Inline(_) | Operand::Literal(_) | Operand::Special(_) | Operand::Imm(_) | Operand::Off => continue,
        };
        if arg.access != Access::Write {
            reads.extend(named.iter().map(|register| (*register, arg.class)));
            let sends = matches!(inst.row().unit, Unit::Store | Unit::Atomic);
            if sends && matches!(arg.field, Field::Data | Field::Vdata) && named.len() > 2 {
                stored.extend(&named);
            }
        }
        if arg.access != Access::Read {
            writes.extend(named);
        }
    }
    if inst.row().reads.has(Implicit::VCC) {
        reads.extend([(('s', 106), Class::Vcc), (('s', 107), Class::Vcc)]);
    }
    let states = match inst.operands().first() {
        Some(Operand::Imm(n)) if inst.row().name == "s_nop" => n.unsigned_abs() + 1,
        Some(_) | None => 1,
    };
    let unit = inst.row().unit;
    Step { at, unit, inst, reads, writes, stored, states, before: Vec::new() }
}
