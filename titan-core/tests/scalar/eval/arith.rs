//! Integer operations: computed exactly on 128 bits, then truncated by the caller.
//!
//! Deliberately independent of `titan_core::lane`'s folding, which is tested against it.

use super::truncate;
use titan_core::ir::Pred;
use titan_core::lane::{IntBin, IntUn, Ty};

const fn width(ty: Ty) -> u32 {
    match ty {
        Ty::Pred => 1,
        Ty::B16 => 16,
        Ty::B32 => 32,
        Ty::B64 => 64,
    }
}

/// The low `from` bits, sign- or zero-extended.
pub(crate) fn extend(bits: u64, from: u32, signed: bool) -> u64 {
    let up = bits << (64 - from);
    if signed { (up.cast_signed() >> (64 - from)).cast_unsigned() } else { up >> (64 - from) }
}

fn number(ty: Ty, bits: u64, signed: bool) -> i128 {
    let wide = extend(bits, width(ty), signed);
    if signed { wide.cast_signed().into() } else { wide.into() }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the low bits are what is meant")]
const fn low64(x: i128) -> u64 {
    x as u64
}

/// The result of an operation; `None` if its contract excludes the operands.
pub(crate) fn int(op: IntBin, ty: Ty, x: u64, y: u64) -> Option<u64> {
    let ((sx, sy), (ux, uy)) =
        ((number(ty, x, true), number(ty, y, true)), (number(ty, x, false), number(ty, y, false)));
    let amount = || u32::try_from(y).ok().filter(|y| *y < width(ty));
    Some(match op {
        IntBin::Add => x.wrapping_add(y),
        IntBin::Sub => x.wrapping_sub(y),
        IntBin::Mul => x.wrapping_mul(y),
        IntBin::MulHi => u64::try_from((ux.cast_unsigned() * uy.cast_unsigned()) >> width(ty)).ok()?,
        IntBin::DivS => low64(sx.checked_div(sy)?),
        IntBin::DivU => low64(ux.checked_div(uy)?),
        IntBin::RemS => low64(sx.checked_rem(sy)?),
        IntBin::RemU => low64(ux.checked_rem(uy)?),
        IntBin::And => x & y,
        IntBin::Or => x | y,
        IntBin::Xor => x ^ y,
        IntBin::Shl => x << amount()?,
        IntBin::ShrS => low64(sx >> amount()?),
        IntBin::ShrU => low64(ux >> amount()?),
        IntBin::MinS => low64(sx.min(sy)),
        IntBin::MinU => x.min(y),
        IntBin::MaxS => low64(sx.max(sy)),
        IntBin::MaxU => x.max(y),
    })
}

/// The numbers of bits of a word, one by one.
pub(crate) fn int_function(op: IntUn, x: u64) -> u64 {
    let is_set = |bit: u64| x >> bit & 1 == 1;
    match op {
        IntUn::CountOnes => (0..32).map(|bit| u64::from(is_set(bit))).sum(),
        IntUn::LeadingZeros => (0..32).rev().position(is_set).map_or(32, |n| n as u64),
    }
}

/// The full product of two 32-bit numbers.
pub(crate) fn mul_wide(signed: bool, x: u64, y: u64) -> u64 {
    low64(number(Ty::B32, x, signed) * number(Ty::B32, y, signed))
}

pub(crate) fn compare(pred: Pred, signed: bool, ty: Ty, x: u64, y: u64) -> bool {
    let (x, y) = (number(ty, x, signed), number(ty, y, signed));
    match pred {
        Pred::Eq => x == y,
        Pred::Ne => x != y,
        Pred::Lt => x < y,
        Pred::Le => x <= y,
        Pred::Gt => x > y,
        Pred::Ge => x >= y,
    }
}

/// The word composed of these parts of type `ty`: two `b16`, two `b32`, or the low bytes of four `b32`.
pub(crate) fn pack(ty: Ty, parts: &[u64]) -> u64 {
    let bits = if parts.len() == 4 { 8 } else { width(ty) };
    parts.iter().rev().fold(0, |word, part| word << bits | extend(truncate(ty, *part), bits, false))
}
