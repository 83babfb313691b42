//! The co-execution one operation at a time: this repository's tests compare the tables in the documentation of `barriers::machine`,
//! `barriers::parity` and `cyclic` with what it does. Everything is returned as plain numbers.
//!
//! Deliberately absent: everything that decides about a kernel.

use super::barriers::machine::{Record, What};
use super::linear::{Condition, Facts, Linear};
use super::run::{Run, Step};
use super::state::{Frame, State};
use super::values::{Env, Known, Symbols};
use crate::ir::op_table::mnemonic;
use crate::ir::{Kernel, Value};

/// What is known after an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walked {
    /// What is recorded about accesses and phases of barriers, the oldest first.
    pub records: Vec<Recorded>,
    /// The carried values of the role that executed the operation, as far as they are numbers.
    pub numbers: Vec<(Value, i64)>,
}

/// An event, and where it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The event.
    pub event: Event,
    /// The time of the memory or barrier at which it happened.
    pub time: i64,
    /// The role of which it is an event.
    pub role: usize,
    /// The roles that have observed it.
    pub known: Vec<usize>,
    /// The phases that carry it: the barrier, and its time.
    pub sent: Vec<(usize, i64)>,
}

/// An event that is recorded. Barriers are numbered in the order of their allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A read of a part of a memory.
    Read,
    /// A write to a part of a memory.
    Write,
    /// A phase of a barrier completed.
    Completed(usize),
    /// A wait for a phase of a barrier passed.
    Passed(usize),
}

/// Executes for each step a role up to its next operation of this name, and that operation. Returns what is known after each; fewer, if a
/// role cannot execute its operation, because it waits or has ended, or at a loop or branch that is not decided by numbers.
#[must_use]
pub fn walk(kernel: &Kernel, steps: &[(usize, &str)]) -> Vec<Walked> {
    let mut run = Run::new(kernel);
    let mut state = run.start();
    steps.iter().map_while(|(role, name)| until(&mut run, &mut state, *role, name)).collect()
}

fn until(run: &mut Run<'_>, state: &mut State, role: usize, name: &str) -> Option<Walked> {
    loop {
        let next = match state.roles.get(role)?.frames.last()? {
            Frame::Block(block, at) => run.kernel.block(*block).ops.get(*at).copied(),
            Frame::Loop(_) => None,
        };
        let Ok(Step::Moved) = run.step(state, role) else { return None };
        if next.is_some_and(|id| mnemonic(&run.kernel.op(id).kind) == name) {
            let env = &state.roles.get(role)?.env;
            let number = |value: &Value| Some((*value, run.symbols.known_int(*value, env)?.as_constant()?));
            return Some(Walked {
                records: state.machine.records.iter().filter_map(recorded).collect(),
                numbers: env.known.keys().filter_map(number).collect(),
            });
        }
    }
}

fn recorded(record: &Record) -> Option<Recorded> {
    let (event, time) = match record.what {
        What::Access { time, write: true, .. } => (Event::Write, time),
        What::Access { time, write: false, .. } => (Event::Read, time),
        What::Completed { barrier, time } => (Event::Completed(barrier), time),
        What::Passed { barrier, time } => (Event::Passed(barrier), time),
        What::Touched { .. } | What::Announced { .. } => return None,
    };
    let known = (0..64).filter(|role| record.known & (1 << role) != 0).collect();
    Some(Recorded { event, time, role: record.role, known, sent: record.phases().collect() })
}

/// The values of a slot and a parity that a loop carries, in an arbitrary iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turned {
    /// What the kernel computes from `t mod n` and `(t div n) mod 2` for the next iteration.
    pub computed: [Linear; 2],
    /// `(t + 1) mod n` and `((t + 1) div n) mod 2`.
    pub wanted: [Linear; 2],
}

/// The values `next` of a kernel if `carried` are the slot of `t` among `slots`, a positive number, and its parity; for any `t` that is not
/// negative. `None` if there are no such numbers.
#[must_use]
pub fn turn(kernel: &Kernel, slots: i64, carried: [Value; 2], next: [Value; 2]) -> Option<Turned> {
    let mut symbols = Symbols::new(kernel);
    let mut facts = Facts::default();
    let t = Linear::atom(symbols.counter());
    facts.assume(&Condition::NotNegative(t.clone(), true), true);
    let mut slot_and_parity = |t: &Linear| {
        let turns = symbols.quotient(t, slots, &mut facts)?;
        Some([symbols.remainder(t, slots, &mut facts)?, symbols.remainder(&turns, 2, &mut facts)?])
    };
    let (now, wanted) = (slot_and_parity(&t)?, slot_and_parity(&t.plus_const(1))?);
    let mut env = Env::default();
    env.known.extend(carried.into_iter().zip(now.map(Known::Int)));
    let computed = next.map(|value| symbols.int(value, &env, &mut facts));
    Some(Turned { computed, wanted })
}
