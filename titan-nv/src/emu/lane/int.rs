//! Integer instructions.
//!
//! Division by zero gives all ones, and the remainder is the dividend. The manual calls the result machine-specific, so a kernel that
//! depends on it is wrong; one that computes and discards it is not.

use super::{LaneFn, Mode, halves, lo};
use crate::emu::ty::Ty;

/// The value of `x` as two's complement of `bits` bits.
#[inline]
pub(crate) const fn signed(x: u64, bits: u32) -> i64 {
    (x << (64 - bits)).cast_signed() >> (64 - bits)
}

#[inline]
pub(crate) const fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// Makes a function for each width from a function on `u64` whose upper bits are arbitrary.
macro_rules! wrapping {
    ($ty:expr, $f:expr) => {{
        const F: fn(u64, u64, u64) -> u64 = $f;
        Some(match $ty.bits() {
            16 => |_: Mode, a, b, c| F(a, b, c) & 0xFFFF,
            32 => |_: Mode, a, b, c| F(a, b, c) & 0xFFFF_FFFF,
            64 => |_: Mode, a, b, c| F(a, b, c),
            _ => return None,
        })
    }};
}

/// Makes a function for each integer type from a function on the operands' values as `i128`; the result is truncated to the type.
macro_rules! valued {
    ($ty:expr, $f:expr) => {{
        const F: fn(i128, i128, i128) -> i128 = $f;
        Some(match $ty {
            Ty::U16 => |_: Mode, a, b, c| cut(F(u(a), u(b), u(c)), 16),
            Ty::U32 => |_: Mode, a, b, c| cut(F(u(a), u(b), u(c)), 32),
            Ty::U64 => |_: Mode, a, b, c| cut(F(u(a), u(b), u(c)), 64),
            Ty::S16 => |_: Mode, a, b, c| cut(F(s(a, 16), s(b, 16), s(c, 16)), 16),
            Ty::S32 => |_: Mode, a, b, c| cut(F(s(a, 32), s(b, 32), s(c, 32)), 32),
            Ty::S64 => |_: Mode, a, b, c| cut(F(s(a, 64), s(b, 64), s(c, 64)), 64),
            Ty::U16x2 => |_: Mode, a, b, c| halves(|a, b, c| cut(F(u(a), u(b), u(c)), 16), a, b, c),
            Ty::S16x2 => |_: Mode, a, b, c| halves(|a, b, c| cut(F(s(a, 16), s(b, 16), s(c, 16)), 16), a, b, c),
            _ => return None,
        })
    }};
}

#[inline]
const fn u(x: u64) -> i128 {
    x as i128
}

#[inline]
const fn s(x: u64, bits: u32) -> i128 {
    signed(x, bits) as i128
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the low bits are asked for")]
#[inline]
const fn cut(x: i128, bits: u32) -> u64 {
    x as u64 & mask(bits)
}

/// Arithmetic of two operands, by opcode.
pub(crate) fn arithmetic(op: &str, ty: Ty) -> Option<LaneFn> {
    if matches!(ty, Ty::U16x2 | Ty::S16x2) && !matches!(op, "add" | "min" | "max") {
        return None;
    }
    match op {
        "add" if ty.bits() == 32 && !matches!(ty, Ty::U16x2 | Ty::S16x2) => Some(|_, a, b, _| (a + b) & 0xFFFF_FFFF),
        "add" => valued!(ty, |a, b, _| a + b),
        "sub" => wrapping!(ty, |a, b, _| a.wrapping_sub(b)),
        "div" => valued!(ty, |a, b, _| if b == 0 { -1 } else { a / b }),
        "rem" => valued!(ty, |a, b, _| if b == 0 { a } else { a % b }),
        "min" => valued!(ty, |a, b, _| a.min(b)),
        "max" => valued!(ty, |a, b, _| a.max(b)),
        "abs" => valued!(ty, |a, _, _| a.abs()),
        "neg" => wrapping!(ty, |a, _, _| a.wrapping_neg()),
        "sad" => valued!(ty, |a, b, c| (a - b).abs() + c),
        _ => None,
    }
}

/// `add.sat.s32` and `sub.sat.s32`.
pub(crate) fn saturating(op: &str) -> Option<LaneFn> {
    Some(match op {
        "add" => |_, a, b, _| cut(clamp32(s(a, 32) + s(b, 32)), 32),
        "sub" => |_, a, b, _| cut(clamp32(s(a, 32) - s(b, 32)), 32),
        "mad.hi" => |_, a, b, c| cut(clamp32(((s(a, 32) * s(b, 32)) >> 32) + s(c, 32)), 32),
        _ => return None,
    })
}

fn clamp32(x: i128) -> i128 {
    x.clamp(i32::MIN.into(), i32::MAX.into())
}

/// `mul` and `mad` (which adds `c`), by `lo`, `hi` or `wide`. For `mul`, `c` is 0.
pub(crate) fn multiply(part: &str, ty: Ty) -> Option<LaneFn> {
    match part {
        "lo" => wrapping!(ty, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        "hi" => Some(match ty {
            Ty::U16 => |_, a, b, c| cut(((u(a) * u(b)) >> 16) + u(c), 16),
            Ty::U32 => |_, a, b, c| cut(((u(a) * u(b)) >> 32) + u(c), 32),
            Ty::U64 => |_, a, b, c| high_unsigned(a, b).wrapping_add(c),
            Ty::S16 => |_, a, b, c| cut(((s(a, 16) * s(b, 16)) >> 16) + u(c), 16),
            Ty::S32 => |_, a, b, c| cut(((s(a, 32) * s(b, 32)) >> 32) + u(c), 32),
            Ty::S64 => |_, a, b, c| cut((s(a, 64) * s(b, 64)) >> 64, 64).wrapping_add(c),
            _ => return None,
        }),
        "wide" => Some(match ty {
            Ty::U16 => |_, a, b, c| cut(u(a) * u(b) + u(c), 32),
            Ty::U32 => |_, a, b, c| a.wrapping_mul(b).wrapping_add(c),
            Ty::S16 => |_, a, b, c| cut(s(a, 16) * s(b, 16) + u(c), 32),
            Ty::S32 => |_, a, b, c| signed(a, 32).wrapping_mul(signed(b, 32)).cast_unsigned().wrapping_add(c),
            _ => return None,
        }),
        _ => None,
    }
}

const fn high_unsigned(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// `mul24` and `mad24`: the operands' low 24 bits.
pub(crate) fn multiply24(part: &str, ty: Ty) -> Option<LaneFn> {
    Some(match (part, ty) {
        ("lo", Ty::U32) => |_, a, b, c| cut(u(a & 0xFF_FFFF) * u(b & 0xFF_FFFF) + u(c), 32),
        ("lo", Ty::S32) => |_, a, b, c| cut(s(a, 24) * s(b, 24) + u(c), 32),
        ("hi", Ty::U32) => |_, a, b, c| cut(((u(a & 0xFF_FFFF) * u(b & 0xFF_FFFF)) >> 16) + u(c), 32),
        ("hi", Ty::S32) => |_, a, b, c| cut(((s(a, 24) * s(b, 24)) >> 16) + u(c), 32),
        _ => return None,
    })
}

/// Bitwise operations, on 16, 32 or 64 bits.
pub(crate) fn logic(op: &str, ty: Ty) -> Option<LaneFn> {
    match op {
        "and" => Some(|_, a, b, _| a & b),
        "or" => Some(|_, a, b, _| a | b),
        "xor" => Some(|_, a, b, _| a ^ b),
        "not" => wrapping!(ty, |a, _, _| !a),
        "cnot" => Some(|_, a, _, _| u64::from(a == 0)),
        _ => None,
    }
}

/// Shifts; amounts above the width count as the width.
pub(crate) fn shift(op: &str, ty: Ty) -> Option<LaneFn> {
    match (op, ty.is_signed()) {
        ("shl", _) => wrapping!(ty, |a, n, _| if lo(n) >= 64 { 0 } else { a << lo(n) }),
        ("shr", false) => Some(|_, a, n, _| if lo(n) >= 64 { 0 } else { a >> lo(n) }),
        ("shr", true) => valued!(ty, |a, n, _| a >> amount(n)),
        _ => None,
    }
}

/// A shift amount from a signed register value: amounts are unsigned, so negative values count as large.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 64")]
const fn amount(n: i128) -> u32 {
    if n < 0 || n > 64 { 64 } else { n as u32 }
}

/// `shf.l` and `shf.r`: the 64 bits `b:a`, shifted by `c`, which wraps at 32 or is clamped to it.
pub(crate) fn funnel(left: bool, wrap: bool) -> LaneFn {
    match (left, wrap) {
        (true, true) => |_, a, b, n| lo((b << 32 | a) << (n & 31) >> 32).into(),
        (true, false) => |_, a, b, n| if lo(n) >= 32 { a } else { lo((b << 32 | a) << lo(n) >> 32).into() },
        (false, true) => |_, a, b, n| lo((b << 32 | a) >> (n & 31)).into(),
        (false, false) => |_, a, b, n| lo((b << 32 | a) >> lo(n).min(32)).into(),
    }
}

/// Instructions that count and find bits; the result is 32 bits wide, except that of `brev`.
pub(crate) fn bits(op: &str, ty: Ty) -> Option<LaneFn> {
    Some(match (op, ty.bits()) {
        ("popc", _) => |_, a, _, _| a.count_ones().into(),
        ("clz", 32) => |_, a, _, _| (a.leading_zeros() - 32).into(),
        ("clz", 64) => |_, a, _, _| a.leading_zeros().into(),
        ("brev", 32) => |_, a, _, _| lo(a).reverse_bits().into(),
        ("brev", 64) => |_, a, _, _| a.reverse_bits(),
        ("bfind", 32) if ty.is_signed() => |m, a, _, _| find(m, signed(a, 32), 31),
        ("bfind", 64) if ty.is_signed() => |m, a, _, _| find(m, a.cast_signed(), 63),
        ("bfind", 32) => |m, a, _, _| found(m, a, 31),
        ("bfind", 64) => |m, a, _, _| found(m, a, 63),
        _ => return None,
    })
}

/// The most significant bit that is not the sign.
fn find(m: Mode, a: i64, top: u32) -> u64 {
    let magnitude = if a < 0 { !a } else { a };
    found(m, magnitude.cast_unsigned(), top)
}

/// The most significant set bit, or with `aux` the shift that brings it to the top; all ones if there is none.
fn found(m: Mode, a: u64, top: u32) -> u64 {
    if a == 0 {
        return 0xFFFF_FFFF;
    }
    let at = 63 - a.leading_zeros();
    u64::from(if m.aux == 1 { top - at } else { at })
}

/// `bfe`: `c` bits of `a` from bit `b` on, sign-extended for signed types.
pub(crate) fn extract(ty: Ty) -> Option<LaneFn> {
    Some(match ty {
        Ty::U32 => |_, a, b, c| field(a, b & 0xFF, c & 0xFF, 31, false),
        Ty::S32 => |_, a, b, c| field(a, b & 0xFF, c & 0xFF, 31, true),
        Ty::U64 => |_, a, b, c| field(a, b & 0xFF, c & 0xFF, 63, false),
        Ty::S64 => |_, a, b, c| field(a, b & 0xFF, c & 0xFF, 63, true),
        _ => return None,
    })
}

fn field(a: u64, pos: u64, len: u64, top: u64, sign: bool) -> u64 {
    if len == 0 {
        return 0;
    }
    let fill = sign && a >> (pos + len - 1).min(top) & 1 == 1;
    let there = len.min((top + 1).saturating_sub(pos));
    let kept = mask(u32::try_from(there).unwrap_or(64));
    let value = if there == 0 { 0 } else { a >> pos & kept };
    let all = mask(u32::try_from(top + 1).unwrap_or(64));
    if fill { (value | !kept) & all } else { value }
}

/// `bfi`: `b` with `len` bits of `a` put at `pos`; the last operand is `pos | len << 8`.
pub(crate) fn insert(ty: Ty) -> LaneFn {
    if ty.bits() == 64 { |_, a, b, at| put(a, b, at, 64) } else { |_, a, b, at| put(a, b, at, 32) }
}

fn put(a: u64, b: u64, at: u64, width: u64) -> u64 {
    let (pos, len) = (at & 0xFF, at >> 8 & 0xFF);
    if pos >= width {
        return b;
    }
    let kept = mask(u32::try_from(len.min(width - pos)).unwrap_or(64)) << pos;
    b & !kept | a << pos & kept
}

/// `lop3`: the table `aux` applied to each bit of `a`, `b`, `c`.
pub(crate) fn lop3(m: Mode, a: u64, b: u64, c: u64) -> u64 {
    let minterm = |i: u32| {
        let pick = |x: u64, bit: u32| if i >> bit & 1 == 1 { x } else { !x };
        if m.aux >> i & 1 == 1 { pick(a, 2) & pick(b, 1) & pick(c, 0) } else { 0 }
    };
    (0..8).fold(0, |all, i| all | minterm(i)) & 0xFFFF_FFFF
}

/// `prmt`: bytes of `b:a` by the selectors in `c`. Modes by `aux`: 0 is the default, then f4e, b4e, rc8, ecl, ecr, rc16.
pub(crate) fn permute(m: Mode, a: u64, b: u64, c: u64) -> u64 {
    let pool = b << 32 | a;
    let byte = |i: u64| pool >> (8 * (i & 7)) & 0xFF;
    let by_selector = |i: u64| {
        let sel = c >> (4 * i) & 0xF;
        let value = byte(sel);
        if sel & 8 != 0 { if value & 0x80 != 0 { 0xFF } else { 0 } } else { value }
    };
    let n = c & 3;
    let pick = |i: u64| match m.aux {
        0 => by_selector(i),
        1 => byte(n + i),
        2 => byte(n.wrapping_sub(i)),
        3 => byte(n),
        4 => byte(i.max(n)),
        5 => byte(i.min(n)),
        _ => byte((n & 1) * 2 + (i & 1)),
    };
    (0..4).fold(0, |all, i| all | pick(i) << (8 * i))
}

/// `dp4a`: four products of bytes, added to `c`. `aux` bit 0: `a` is signed, bit 1: `b` is.
pub(crate) fn dot4(m: Mode, a: u64, b: u64, c: u64) -> u64 {
    let part = |x: u64, i: u32, is_signed: bool| {
        let byte = x >> (8 * i) & 0xFF;
        if is_signed { signed(byte, 8) } else { byte.cast_signed() }
    };
    let sum: i64 = (0..4).map(|i| part(a, i, m.aux & 1 != 0) * part(b, i, m.aux & 2 != 0)).sum();
    sum.cast_unsigned().wrapping_add(c) & 0xFFFF_FFFF
}

/// Comparison of integers: 1 if it holds. `lo`, `ls`, `hi`, `hs` are unsigned whatever the type.
pub(crate) fn compare(cmp: &str, ty: Ty) -> Option<LaneFn> {
    let is_signed = ty.is_signed();
    Some(match (cmp, is_signed, ty.bits()) {
        ("eq", ..) => |_, a, b, _| u64::from(a == b),
        ("ne", ..) => |_, a, b, _| u64::from(a != b),
        ("lt" | "lo", false, _) | ("lo", ..) => |_, a, b, _| u64::from(a < b),
        ("le" | "ls", false, _) | ("ls", ..) => |_, a, b, _| u64::from(a <= b),
        ("gt" | "hi", false, _) | ("hi", ..) => |_, a, b, _| u64::from(a > b),
        ("ge" | "hs", false, _) | ("hs", ..) => |_, a, b, _| u64::from(a >= b),
        ("lt", true, 16) => |_, a, b, _| u64::from(signed(a, 16) < signed(b, 16)),
        ("le", true, 16) => |_, a, b, _| u64::from(signed(a, 16) <= signed(b, 16)),
        ("gt", true, 16) => |_, a, b, _| u64::from(signed(a, 16) > signed(b, 16)),
        ("ge", true, 16) => |_, a, b, _| u64::from(signed(a, 16) >= signed(b, 16)),
        ("lt", true, 32) => |_, a, b, _| u64::from(signed(a, 32) < signed(b, 32)),
        ("le", true, 32) => |_, a, b, _| u64::from(signed(a, 32) <= signed(b, 32)),
        ("gt", true, 32) => |_, a, b, _| u64::from(signed(a, 32) > signed(b, 32)),
        ("ge", true, 32) => |_, a, b, _| u64::from(signed(a, 32) >= signed(b, 32)),
        ("lt", true, 64) => |_, a, b, _| u64::from(a.cast_signed() < b.cast_signed()),
        ("le", true, 64) => |_, a, b, _| u64::from(a.cast_signed() <= b.cast_signed()),
        ("gt", true, 64) => |_, a, b, _| u64::from(a.cast_signed() > b.cast_signed()),
        ("ge", true, 64) => |_, a, b, _| u64::from(a.cast_signed() >= b.cast_signed()),
        _ => return None,
    })
}
