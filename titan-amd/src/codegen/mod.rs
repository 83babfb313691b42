//! The code generator: lane IR becomes code objects.
//!
//! ```text
//! lane IR ─ select ─▶ machine IR ─ conditions ─ clean ─ constants ─ pairs ─ [sink] ─ order ─ allocate ─▶ registers of the machine ─ waits ─ hazards ─ assemble ─▶ bytes ─▶ code object
//! ```
//!
//! | module | part | checked by |
//! |---|---|---|
//! | [`machine_ir`], [`mod@print`] | the instructions of a kernel, and their text | |
//! | `select` | instructions and masks of active lanes | the emulator against evaluated lane IR, in tests |
//! | `conditions` | comparisons where they decide | the emulator, likewise |
//! | `constants` | constants outside of loops | the emulator, likewise |
//! | `pairs` | arithmetic on two numbers by one instruction | the emulator, likewise |
//! | `sink` | masks computed where they are used, if scalar registers are scarce | [`check::order`] |
//! | `order` | loads, matrix instructions and arithmetic side by side | [`check::order`]; the model of issue, against the order before |
//! | `allocate` | registers | [`check::registers`] |
//! | `waits` | waits for memory operations | [`check::waits`], on the bytes |
//! | `hazards` | wait states | [`check::hazards`], on the bytes; the emulator's own table, in tests |
//! | `assemble`, `object` | bytes, and the file around them | LLVM's tools, in tests |
//!
//! The checkers share no code with what they check. They run in debug builds, and in the tests.
//!
//! Deliberately absent, so far: copies from global memory to the local data share without registers.

mod allocate;
mod arrivals;
mod assemble;
pub mod check;
mod clean;
mod conditions;
mod constants;
mod error;
mod hazards;
pub mod machine_ir;
mod object;
mod order;
mod pairs;
pub mod print;
mod registers;
mod select;
mod sink;
mod waits;

pub use error::EmitError;
pub use select::matrix_row;

use crate::machine::Machine;
use allocate::Allocated;
use error::Fault;
use machine_ir::{Code, File};
use order::Version;
use titan_core::lane::{self, Func};

/// A kernel as a code object, and the stages on the way.
#[derive(Clone, Debug)]
pub struct Emitted {
    /// The symbol of the kernel in the code object.
    pub entry: String,
    /// The code on virtual registers.
    pub selected: Code,
    /// The code on registers of the machine, without waits.
    pub allocated: Code,
    /// The code that is assembled.
    pub code: Code,
    /// The bytes of the instructions.
    pub text: Vec<u8>,
    /// The bytes of the code object.
    pub object: Vec<u8>,
    /// The number of scalar, vector and accumulation registers that it uses.
    pub registers: [u16; 3],
}

/// Emits a function for a machine.
///
/// # Errors
/// [`EmitError`]: the function breaks a rule of the lane IR, needs an operation that the machine lacks, or more than it has.
pub fn emit(func: &Func, machine: &Machine) -> Result<Emitted, EmitError> {
    emitted(func, machine, Ordering::Best)
}

/// The same without list scheduling: each block has the order of the lane IR. It is what [`emit`] is compared with.
///
/// # Errors
/// Those of [`emit`].
pub fn emit_in_given_order(func: &Func, machine: &Machine) -> Result<Emitted, EmitError> {
    emitted(func, machine, Ordering::Given)
}

/// The same with an order of the caller's: of the code on virtual registers with the order of the lane IR, it makes that with another one. Tests execute what
/// [`check::order`] accepts.
///
/// # Errors
/// Those of [`emit`], and what [`check::order`] says of the order.
pub fn emit_in_order_by(func: &Func, machine: &Machine, order: &dyn Fn(&Code) -> Code) -> Result<Emitted, EmitError> {
    emitted(func, machine, Ordering::By(order))
}

/// The order of the instructions of a block.
#[derive(Clone, Copy)]
enum Ordering<'a> {
    /// The one of list scheduling, if it is better.
    Best,
    /// The one of the lane IR.
    Given,
    /// Another one.
    By(&'a dyn Fn(&Code) -> Code),
}

fn emitted(func: &Func, machine: &Machine, ordering: Ordering<'_>) -> Result<Emitted, EmitError> {
    limits(func, machine)?;
    lane::verify(func).map_err(EmitError::Lane)?;
    generate(func, machine, ordering).map_err(|fault| fault.outside(func, machine.name))
}

fn generate(func: &Func, machine: &Machine, ordering: Ordering<'_>) -> Result<Emitted, Fault> {
    let selected = select::select(func, machine.name, true)?;
    let guarded = selected.guarded;
    match generated(func, machine, selected, ordering) {
        // The blocks behind the end are farther away than any others, and a branch may not reach them.
        Err(Fault::Limit(..)) if guarded => {
            generated(func, machine, select::select(func, machine.name, false)?, ordering)
        }
        other => other,
    }
}

fn generated(
    func: &Func,
    machine: &Machine,
    mut selected: select::Selected,
    ordering: Ordering<'_>,
) -> Result<Emitted, Fault> {
    conditions::fuse(&mut selected.code);
    clean::clean(&mut selected.code);
    let allocated = allocated(&mut selected.code, machine, func.threads)?;
    let given = Version::new(selected.code, allocated, order::sharing(machine, func.threads));
    let best = match ordering {
        Ordering::Best => order::improved(given, machine, func.threads)?,
        Ordering::Given => given,
        Ordering::By(order) => order::in_order(order(&given.selected), &given, machine, func.threads)?,
    };
    let Version { selected: ordered, allocated, code } = best;
    if cfg!(debug_assertions) {
        check::registers::check(&ordered, &allocated.code).map_err(Fault::Defect)?;
    }
    let text = assemble::assemble(&code)?;
    if cfg!(debug_assertions) {
        check::waits::check(&text).map_err(Fault::Defect)?;
        check::hazards::check(&text).map_err(Fault::Defect)?;
    }
    let (entry, object) = object::object(func, &text, allocated.used, selected.reads_grid)?;
    let registers = allocated.used;
    Ok(Emitted { entry, selected: ordered, allocated: allocated.code, code, text, object, registers })
}

/// Moves constants out of loops, packs operations and allocates registers.
///
/// Both need registers for longer. So where many registers are copied, or constants of loops leave room for fewer waves on a SIMD unit, the code is
/// allocated with fewer of them too, and with masks that are computed where they are used, and the best is taken.
fn allocated(code: &mut Code, machine: &Machine, threads: u32) -> Result<Allocated, Fault> {
    let hoisted = [true, false].map(|tuples| constants::hoist(code, tuples));
    let own = hoisted[0].registers.get(code.registers.len()..).unwrap_or_default();
    let constants = u32::try_from(own.iter().filter(|r| r.file == File::V).count()).unwrap_or(0);
    // Those to try first come last.
    let mut ways = vec![(code.clone(), 0, false), (pairs::pack(code), 0, false)];
    ways.extend(hoisted.iter().rev().map(|code| (pairs::pack(code), constants, false)));
    ways.dedup_by(|a, b| a.0 == b.0);
    let (mut best, mut failed): (Option<(Code, Allocated)>, _) = (None, None);
    while let Some((way, constants, sunk)) = ways.pop() {
        let allocated = match allocate::allocate(&way, machine, threads) {
            Ok(allocated) => allocated,
            Err(fault) => {
                failed = Some(fault);
                continue;
            }
        };
        let enough = allocated.has_few_copies() && allocated.waves(machine, constants) == allocated.waves(machine, 0);
        if allocated.copies_scalars() && !sunk && !enough {
            let sunk = sink::masks(&way);
            if cfg!(debug_assertions) {
                check::order::check(&way, &sunk).map_err(Fault::Defect)?;
            }
            ways.push((sunk, constants, true));
        }
        if best.as_ref().is_none_or(|(_, known)| allocated.is_better(known, machine)) {
            best = Some((way, allocated));
        }
        if enough {
            break;
        }
    }
    match (best, failed) {
        (Some((way, allocated)), _) => {
            *code = way;
            Ok(allocated)
        }
        (None, failed) => Err(failed.unwrap_or_else(|| Fault::Defect("there is no code to allocate".to_owned()))),
    }
}

/// Checks limits before any instruction is selected.
fn limits(func: &Func, machine: &Machine) -> Result<(), EmitError> {
    let limit = |why: String| {
        let kernel = func.name.clone();
        Err(EmitError::Limit { kernel, target: machine.name, why, loc: titan_core::ir::Loc::default() })
    };
    if func.lanes != machine.wave_size {
        return limit(format!("has waves of {} lanes, not {}", machine.wave_size, func.lanes));
    }
    if func.threads == 0 || !func.threads.is_multiple_of(func.lanes) || func.threads > machine.threads_per_group {
        let max = machine.threads_per_group;
        return limit(format!("runs programs of whole waves, at most {max} threads, not {}", func.threads));
    }
    if func.cluster > 1 {
        return limit(format!("has no clusters of programs; this code has clusters of {}", func.cluster));
    }
    if !func.maps.is_empty() || func.maker.is_some() {
        return limit("has no tensor maps".to_owned());
    }
    if func.shared_bytes > machine.lds_bytes {
        let max = machine.lds_bytes;
        return limit(format!("has at most {max} bytes of shared memory for a program, not {}", func.shared_bytes));
    }
    Ok(())
}
