//! The code generator: lane IR becomes code objects.
//!
//! ```text
//! lane IR ─ select ─▶ machine IR ─ conditions ─ clean ─ pairs ─ allocate ─▶ registers of the machine ─ waits ─ hazards ─ assemble ─▶ bytes ─▶ code object
//! ```
//!
//! | module | part | checked by |
//! |---|---|---|
//! | [`machine_ir`], [`mod@print`] | the instructions of a kernel, and their text | |
//! | `select` | instructions and masks of active lanes | the emulator against evaluated lane IR, in tests |
//! | `conditions` | comparisons where they decide | the emulator, likewise |
//! | `pairs` | arithmetic on two numbers by one instruction | the emulator, likewise |
//! | `allocate` | registers | [`check::registers`] |
//! | `waits` | waits for memory operations | [`check::waits`], on the bytes |
//! | `hazards` | wait states | [`check::hazards`], on the bytes; the emulator's own table, in tests |
//! | `assemble`, `object` | bytes, and the file around them | LLVM's tools, in tests |
//!
//! The checkers share no code with what they check. They run in debug builds, and in the tests.
//!
//! Deliberately absent, so far: copies to the local data share, order of instructions.

mod allocate;
mod assemble;
pub mod check;
mod clean;
mod conditions;
mod error;
mod hazards;
pub mod machine_ir;
mod object;
mod pairs;
pub mod print;
mod registers;
mod select;
mod waits;

pub use error::EmitError;
pub use select::matrix_row;

use crate::machine::Machine;
use allocate::Allocated;
use error::Fault;
use machine_ir::Code;
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
    limits(func, machine)?;
    lane::verify(func).map_err(EmitError::Lane)?;
    generate(func, machine).map_err(|fault| fault.outside(func, machine.name))
}

fn generate(func: &Func, machine: &Machine) -> Result<Emitted, Fault> {
    let selected = select::select(func, machine.name, true)?;
    let guarded = selected.guarded;
    match generated(func, machine, selected) {
        // The blocks behind the end are farther away than any others, and a branch may not reach them.
        Err(Fault::Limit(..)) if guarded => generated(func, machine, select::select(func, machine.name, false)?),
        other => other,
    }
}

fn generated(func: &Func, machine: &Machine, mut selected: select::Selected) -> Result<Emitted, Fault> {
    conditions::fuse(&mut selected.code);
    clean::clean(&mut selected.code);
    let allocated = allocated(&mut selected.code, machine, func.threads)?;
    if cfg!(debug_assertions) {
        check::registers::check(&selected.code, &allocated.code).map_err(Fault::Defect)?;
    }
    let mut code = allocated.code.clone();
    clean::identities(&mut code);
    waits::insert(&mut code);
    hazards::insert(&mut code);
    let text = assemble::assemble(&code)?;
    if cfg!(debug_assertions) {
        check::waits::check(&text).map_err(Fault::Defect)?;
        check::hazards::check(&text).map_err(Fault::Defect)?;
    }
    let (entry, object) = object::object(func, &text, allocated.used, selected.reads_grid)?;
    let registers = allocated.used;
    Ok(Emitted { entry, selected: selected.code, allocated: allocated.code, code, text, object, registers })
}

/// Packs operations and allocates registers. Pairs need adjacent registers, so that code which fits only without them has none.
fn allocated(code: &mut Code, machine: &Machine, threads: u32) -> Result<Allocated, Fault> {
    let paired = pairs::pack(code);
    let spills =
        |allocated: &Allocated| allocated.code.order.iter().any(|b| allocated.code.insts(*b).iter().any(|i| i.added));
    let first = allocate::allocate(&paired, machine, threads);
    match first {
        Ok(allocated) if !spills(&allocated) || paired.len() == code.len() => {
            *code = paired;
            return Ok(allocated);
        }
        Ok(_) | Err(_) => {}
    }
    let plain = allocate::allocate(code, machine, threads);
    match (first, plain) {
        (Ok(first), Ok(plain)) if first.code.len() >= plain.code.len() => Ok(plain),
        (Ok(first), _) => {
            *code = paired;
            Ok(first)
        }
        (Err(_), plain) => plain,
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
