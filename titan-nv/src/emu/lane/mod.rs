//! The functions that instructions compute for one thread: pure functions on the bits of registers.
//!
//! A register's bits are a `u64`, zero above its width; results have that property too. Every function takes three operands and
//! ignores those that its instruction does not have. `decode` selects the function of an instruction; here is only the arithmetic, by the
//! definitions in the PTX ISA manual, section "Instruction Set".
//!
//! | module | instructions |
//! |---|---|
//! | [`int`] | integer arithmetic, comparison, shifts, bit fields |
//! | [`format`] | small floating-point formats and rounding in any direction |
//! | [`float`] | f32 and f64 arithmetic and comparison |
//! | [`half`] | f16, bf16 and their pairs |
//! | [`approx`] | the approximating functions, computed with the accuracy of f64 |
//! | [`convert`] | `cvt` |
//! | [`warp`] | sums and products of f32 for all threads of a warp at once |

pub(crate) mod approx;
pub(crate) mod convert;
pub(crate) mod float;
pub(crate) mod format;
pub(crate) mod half;
pub(crate) mod int;
pub(crate) mod warp;

/// The rounding of an inexact result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rnd {
    /// To nearest, ties to even.
    #[default]
    Near,
    /// Towards zero.
    Zero,
    /// Towards negative infinity.
    Down,
    /// Towards positive infinity.
    Up,
    /// To nearest, ties away from zero.
    Away,
}

/// The modifiers of an instruction other than its types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) rnd: Rnd,
    /// Subnormal f32 and f16 operands and results count as zero of the same sign.
    pub(crate) ftz: bool,
    /// Clamp to the range of the destination, or to [0, 1] for floats.
    pub(crate) sat: bool,
    /// Clamp negative results to 0.
    pub(crate) relu: bool,
    /// `min` and `max` give NaN if an operand is NaN.
    pub(crate) nan: bool,
    /// `min` and `max` of magnitudes, with the xor of the signs.
    pub(crate) xorsign: bool,
    /// A parameter of the instruction: a table, a selector.
    pub(crate) aux: u32,
}

/// The function of an instruction on one thread's operands.
pub(crate) type LaneFn = fn(Mode, u64, u64, u64) -> u64;

/// The low 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "the low half is asked for")]
#[inline]
pub(crate) const fn lo(x: u64) -> u32 {
    x as u32
}

/// The low 16 bits.
#[expect(clippy::cast_possible_truncation, reason = "the low quarter is asked for")]
#[inline]
pub(crate) const fn lo16(x: u64) -> u16 {
    x as u16
}

/// Applies a function of one element to both 16-bit halves of packed operands.
#[inline]
pub(crate) fn halves(f: impl Fn(u64, u64, u64) -> u64, a: u64, b: u64, c: u64) -> u64 {
    let low = f(a & 0xFFFF, b & 0xFFFF, c & 0xFFFF);
    let high = f(a >> 16 & 0xFFFF, b >> 16 & 0xFFFF, c >> 16 & 0xFFFF);
    (high & 0xFFFF) << 16 | low & 0xFFFF
}
