//! The commonest `f32` instructions for all threads of a warp at once: products without matrix instructions consist of them.
//!
//! Each function computes what the one of [`float`](super::float) does for a thread, in a loop without branches and calls, which the compiler turns into
//! vector instructions.
//!
//! Deliberately absent: modifiers other than rounding to nearest, which kernels use rarely.

use super::format::sum_error;
use super::{Mode, lo};
use crate::emu::mma::Lanes;
use crate::emu::ty::Ty;

/// The function of an instruction on the operands of all threads of a warp.
pub(crate) type WarpFn = fn([&Lanes; 3]) -> Lanes;

const NAN: u32 = 0x7FFF_FFFF;

/// The function for all threads at once, if the instruction has one.
pub(crate) fn function(op: &str, ty: Ty, mode: Mode) -> Option<WarpFn> {
    if ty != Ty::F32 || mode != Mode::default() {
        return None;
    }
    Some(match op {
        "add" => |operands| each(operands, |a, b, _| a + b),
        "sub" => |operands| each(operands, |a, b, _| a - b),
        "mul" => |operands| each(operands, |a, b, _| a * b),
        "fma" => |operands| each(operands, fma),
        _ => return None,
    })
}

#[inline]
fn each([a, b, c]: [&Lanes; 3], f: impl Fn(f32, f32, f32) -> f32) -> Lanes {
    let mut out = [0; 32];
    let number = |bits: u64| f32::from_bits(lo(bits));
    for (((out, a), b), c) in out.iter_mut().zip(a).zip(b).zip(c) {
        let result = f(number(*a), number(*b), number(*c));
        *out = u64::from(if result.is_nan() { NAN } else { result.to_bits() });
    }
    out
}

/// `a · b + c`, rounded once.
///
/// The product is exact in f64, and the sum of it and `c` has an error that two-sum finds exactly. Where there is one, the last bit of the sum is made
/// odd, in the direction of the error if it was even. That number lies strictly on the side of each boundary between results of f32 on which the exact
/// sum lies, as boundaries have at most 25 significant bits and are even in f64: so the last rounding is that of the exact sum (Boldo and
/// Melquiond, "Emulation of a FMA and correctly rounded sums", 2008). A sum of f64 that is not exact is not zero, and an infinite or undefined
/// one has an undefined error, which is not greater than zero.
#[expect(clippy::cast_possible_truncation, reason = "rounding to f32 is the purpose")]
#[inline]
fn fma(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    let error = sum_error(product, c, sum);
    let bits = sum.to_bits();
    let moves = u64::from(error.abs() > 0.0) & !bits & 1;
    // One step away from zero if the error has the sign of the sum, else one step towards it.
    let towards_zero = (error.to_bits() ^ bits) >> 63;
    let odd = bits.wrapping_add(moves).wrapping_sub(2 * (moves & towards_zero));
    f64::from_bits(odd) as f32
}
