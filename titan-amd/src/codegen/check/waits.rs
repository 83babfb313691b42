//! The checker of waits: an abstract run of the bytes of a kernel, with the counters of memory operations.
//!
//! The state has, for each register that an operation in flight may write, the counter of the operation and its *age*: the least number of
//! operations of that counter that were issued after it, on any way. A wait for n completes what has an age of at least n if the counter is in
//! order: vector memory always, `lgkmcnt` unless a scalar load may be in flight; otherwise only a wait for 0 completes it. It is an error if an instruction
//! touches a register that may still be written, but for loads from global memory that follow each other, or if operations may be in flight at a barrier, other than loads from global memory: then other
//! waves may not see their effects (ISA §4.4; `s_barrier` waits for nothing). Loads have none but on registers of their own wave.
//!
//! It decodes the bytes and takes nothing from the passes that made them. Where ways meet, ages are the least; they only decrease, so that the
//! iteration ends.

use crate::isa::{Access, Class, Implicit, Operand, Unit, decode};
use std::collections::BTreeMap;

/// A counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Counter {
    Vector,
    Lds,
    Scalar,
}

/// What an operation in flight writes: a register by file and number, or nothing that is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    Register(char, u8),
    Memory,
}

/// The ages of what is in flight.
type Flight = BTreeMap<(Target, Counter), u32>;

/// A decoded instruction.
struct Step {
    at: u64,
    next: u64,
    name: &'static str,
    text: String,
    unit: Unit,
    reads: Vec<(char, u8)>,
    writes: Vec<(char, u8)>,
    /// The counts to wait for.
    wait: Option<[u32; 2]>,
    target: Option<u64>,
}

/// Checks the bytes of a kernel.
///
/// # Errors
/// A description of the first instruction without a wait that it needs.
pub fn check(text: &[u8]) -> Result<(), String> {
    let steps = steps(text)?;
    let index: BTreeMap<u64, usize> = steps.iter().enumerate().map(|(i, s)| (s.at, i)).collect();
    let mut states: Vec<Option<Flight>> = vec![None; steps.len()];
    let mut left = vec![0];
    if let Some(first) = states.first_mut() {
        *first = Some(Flight::new());
    }
    while let Some(i) = left.pop() {
        let (Some(step), Some(mut flight)) = (steps.get(i), states.get(i).cloned().flatten()) else { continue };
        run(step, &mut flight)?;
        let falls = !matches!(step.name, "s_branch" | "s_endpgm");
        let ways = step.target.into_iter().chain(falls.then_some(step.next));
        for to in ways {
            let Some(next) = index.get(&to).copied() else {
                return Err(format!("waits: {:#x}: `{}`: control leaves the code", step.at, step.text));
            };
            if join(&mut states[next], &flight) {
                left.push(next);
            }
        }
    }
    Ok(())
}

fn join(into: &mut Option<Flight>, from: &Flight) -> bool {
    let Some(flight) = into else {
        *into = Some(from.clone());
        return true;
    };
    let mut changed = false;
    for (key, age) in from {
        let known = flight.entry(*key).or_insert(u32::MAX);
        changed |= age < known;
        *known = (*known).min(*age);
    }
    changed
}

fn run(step: &Step, flight: &mut Flight) -> Result<(), String> {
    let wrong = |what: String| Err(format!("waits: {:#x}: `{}`: {what}", step.at, step.text));
    if let Some([vector, other]) = step.wait {
        let scalar = flight.keys().any(|(_, counter)| *counter == Counter::Scalar);
        flight.retain(|(_, counter), age| match counter {
            Counter::Vector => *age < vector,
            Counter::Lds | Counter::Scalar => *age < if scalar && other > 0 { u32::MAX } else { other },
        });
        return Ok(());
    }
    let others_notice = |(target, counter): &(Target, Counter)| match counter {
        Counter::Vector => *target == Target::Memory,
        Counter::Lds | Counter::Scalar => true,
    };
    if step.name == "s_barrier" && flight.keys().any(others_notice) {
        return wrong("operations may be in flight at a barrier".to_owned());
    }
    let all = [Counter::Vector, Counter::Lds, Counter::Scalar];
    // Of vector memory, a later load writes its registers later.
    let others = if step.unit == Unit::Load { &all[1..] } else { &all[..] };
    let touched = step.reads.iter().map(|r| (r, &all[..])).chain(step.writes.iter().map(|r| (r, others)));
    for ((file, n), counters) in touched {
        let register = Target::Register(*file, *n);
        if counters.iter().any(|c| flight.contains_key(&(register, *c))) {
            return wrong(format!("an operation in flight may still write {file}{n}"));
        }
    }
    let counter = match step.unit {
        Unit::Load | Unit::Store | Unit::Atomic | Unit::LoadLds => Counter::Vector,
        Unit::Lds => Counter::Lds,
        Unit::Smem => Counter::Scalar,
        Unit::Salu
        | Unit::Valu
        | Unit::Trans
        | Unit::Dot
        | Unit::Xdl
        | Unit::Sgemm
        | Unit::Dgemm
        | Unit::Cache
        | Unit::Branch
        | Unit::Control => return Ok(()),
    };
    let shares = |other: Counter| (counter == Counter::Vector) == (other == Counter::Vector);
    for ((_, other), age) in flight.iter_mut() {
        if shares(*other) {
            *age = age.saturating_add(1).min(64);
        }
    }
    if step.unit != Unit::Load {
        flight.insert((Target::Memory, counter), 0);
    }
    for (file, n) in &step.writes {
        flight.insert((Target::Register(*file, *n), counter), 0);
    }
    Ok(())
}

fn steps(text: &[u8]) -> Result<Vec<Step>, String> {
    let mut all = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let (inst, size) = decode(&text[start..]).map_err(|e| format!("waits: {start:#x}: {e}"))?;
        let (at, next) = (start as u64, (start + size) as u64);
        let (mut reads, mut writes, mut target, mut wait) = (Vec::new(), Vec::new(), None, None);
        for (arg, operand) in inst.args() {
            if let (Class::Branch, Operand::Imm(words)) = (arg.class, operand) {
                target = Some(next.wrapping_add_signed(4 * i64::from(words)));
            }
            if let (Class::Waitcnt, Operand::Imm(bits)) = (arg.class, operand) {
                let bits = bits.cast_unsigned();
                wait = Some([bits & 15 | bits >> 10 & 0x30, bits >> 8 & 15]);
            }
            let named: Vec<(char, u8)> = match operand {
                Operand::S(first, n) => (0..n).map(|i| ('s', first + i)).collect(),
                Operand::V(first, n) => (0..n).map(|i| ('v', first + i)).collect(),
                Operand::A(first, n) => (0..n).map(|i| ('a', first + i)).collect(),
                Operand::Inline(_) | Operand::Literal(_) | Operand::Special(_) | Operand::Imm(_) | Operand::Off => {
                    continue;
                }
            };
            match arg.access {
                Access::Read => reads.extend(named),
                Access::Write => writes.extend(named),
                Access::ReadWrite => {
                    reads.extend(named.clone());
                    writes.extend(named);
                }
            }
        }
        if inst.row().reads.has(Implicit::VCC) {
            reads.extend([('s', 106), ('s', 107)]);
        }
        let (name, unit) = (inst.row().name, inst.row().unit);
        all.push(Step { at, next, name, text: inst.to_string(), unit, reads, writes, wait, target });
        start += size;
    }
    Ok(all)
}
