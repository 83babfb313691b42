//! The functions that vector instructions compute for one lane: functions on bits, found by mnemonic.
//!
//! | module | instructions |
//! |---|---|
//! | `int` | integers, bits, shifts, bytes |
//! | `float` | `f32` and `f64`: IEEE 754, exact to the bit |
//! | `half` | `f16` |
//! | `approx` | reciprocals, roots, exponentials, logarithms, sines |
//! | `convert` | between formats, 8-bit floats among them |
//! | `divide` | the three steps of a division |
//!
//! Source: the pseudocode of each instruction in ISA §12.7 to §12.11. These tables share nothing with the code generator;
//! instructions that are not in them are errors where they are executed.
//!
//! Deliberately absent: source and output modifiers, lanes that look at others, registers (`exec`).

pub(crate) mod approx;
pub(crate) mod convert;
pub(crate) mod divide;
pub(crate) mod float;
pub(crate) mod half;
pub(crate) mod int;

use crate::object::descriptor::FloatMode;

/// The behaviour of floating-point instructions: the wave's `MODE` register.
pub(crate) type Mode = FloatMode;

/// The bits of the result, from the bits of up to three sources.
pub(crate) type LaneFn = fn(Mode, [u64; 3]) -> u64;

/// A comparison of two sources' bits.
pub(crate) type CompareFn = fn(Mode, [u64; 3]) -> bool;

/// Whether subnormal inputs and results are kept, for floats of each width.
#[derive(Clone, Copy)]
pub(crate) struct Denormals {
    pub(crate) inputs: bool,
    pub(crate) results: bool,
}

pub(crate) const fn denormals(m: Mode, bits: u32) -> Denormals {
    let flags = if bits == 32 { m.denorm_32 } else { m.denorm_16_64 };
    Denormals { inputs: flags & 1 != 0, results: flags & 2 != 0 }
}

/// The function of an instruction.
pub(crate) fn function(name: &str) -> Option<LaneFn> {
    let parts = [float::function, half::function, approx::function, convert::function, divide::function, int::function];
    parts.iter().find_map(|part| part(name))
}
