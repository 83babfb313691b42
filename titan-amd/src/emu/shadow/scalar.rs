//! Which bits of the result of a scalar instruction are undefined, and whether the condition code is.

use super::super::scalars::Value;
use super::{and, any, difference, or, select, sum};

/// The sources of a scalar instruction: two operands, the old value of the destination, and the condition code as 0 or 1.
pub(crate) type Sources = [Value; 4];

/// The shadow of the result, from sources of this width; bits above the result's width have no meaning.
pub(crate) type ScalarShadow = fn(x: Sources) -> u64;

const fn every(undefined: bool) -> u64 {
    if undefined { u64::MAX } else { 0 }
}

/// A shift by the lowest bits of the second source.
fn shifted([a, b, ..]: Sources, distance: u64, f: impl Fn(u64, u64) -> u64) -> u64 {
    if b.shadow & distance != 0 { u64::MAX } else { f(a.shadow, b.bits & distance) }
}

#[expect(clippy::cast_possible_truncation, reason = "a register")]
const fn i(x: u64) -> i64 {
    (x as u32).cast_signed() as i64
}

/// A field of bits, whose offset and width lie in the second source: `f` takes it from the shadow.
fn field([a, b, ..]: Sources, f: fn(u64, u64) -> u64) -> u64 {
    if b.shadow & 0x7F_003F != 0 { u64::MAX } else { f(a.shadow, b.bits) }
}

/// A bit that is set or reset.
fn bit([a, _, d, _]: Sources, distance: u64) -> u64 {
    if a.shadow & distance != 0 { u64::MAX } else { d.shadow & !(1 << (a.bits & distance)) }
}

/// The rule of a mnemonic, if it has one of its own.
pub(crate) fn function(name: &str) -> Option<ScalarShadow> {
    use super::super::scalar::{bfe_i32, bfe_i64, bfe_u32, bfe_u64};
    Some(match name {
        "s_mov_b32" | "s_mov_b64" | "s_movk_i32" | "s_not_b32" | "s_not_b64" => |[a, ..]| a.shadow,
        "s_brev_b32" => |[a, ..]| a.shadow.reverse_bits() >> 32,
        "s_brev_b64" => |[a, ..]| a.shadow.reverse_bits(),
        "s_and_b32" | "s_and_b64" | "s_nand_b32" | "s_nand_b64" => |[a, b, ..]| and(a.bits, a.shadow, b.bits, b.shadow),
        "s_or_b32" | "s_or_b64" | "s_nor_b32" | "s_nor_b64" => |[a, b, ..]| or(a.bits, a.shadow, b.bits, b.shadow),
        "s_andn2_b32" | "s_andn2_b64" => |[a, b, ..]| and(a.bits, a.shadow, !b.bits, b.shadow),
        "s_orn2_b32" | "s_orn2_b64" => |[a, b, ..]| or(a.bits, a.shadow, !b.bits, b.shadow),
        "s_xor_b32" | "s_xor_b64" | "s_xnor_b32" | "s_xnor_b64" => |[a, b, ..]| a.shadow | b.shadow,
        "s_lshl_b32" => |x| shifted(x, 31, |s, n| s << n),
        "s_lshl_b64" => |x| shifted(x, 63, |s, n| s << n),
        "s_lshr_b32" => |x| shifted(x, 31, |s, n| (s & super::WORD) >> n),
        "s_lshr_b64" => |x| shifted(x, 63, |s, n| s >> n),
        "s_ashr_i32" => |x| shifted(x, 31, |s, n| (i(s) >> n).cast_unsigned()),
        "s_ashr_i64" => |x| shifted(x, 63, |s, n| (s.cast_signed() >> n).cast_unsigned()),
        "s_bfe_u32" => |x| field(x, bfe_u32),
        "s_bfe_i32" => |x| field(x, bfe_i32),
        "s_bfe_u64" => |x| field(x, bfe_u64),
        "s_bfe_i64" => |x| field(x, bfe_i64),
        "s_add_u32" | "s_add_i32" => |[a, b, ..]| sum(a.bits, a.shadow, b.bits, b.shadow),
        "s_addk_i32" => |[a, _, d, _]| sum((i(a.bits << 16) >> 16).cast_unsigned(), 0, d.bits, d.shadow),
        "s_sub_u32" | "s_sub_i32" => |[a, b, ..]| difference(a.bits, a.shadow, b.bits, b.shadow),
        "s_mul_i32" => |[a, b, ..]| super::product(a.bits, a.shadow, b.bits, b.shadow),
        "s_lshl1_add_u32" => |x| lshl_add(x, 1),
        "s_lshl2_add_u32" => |x| lshl_add(x, 2),
        "s_lshl3_add_u32" => |x| lshl_add(x, 3),
        "s_lshl4_add_u32" => |x| lshl_add(x, 4),
        "s_pack_ll_b32_b16" => |[a, b, ..]| a.shadow & 0xFFFF | (b.shadow & 0xFFFF) << 16,
        "s_pack_lh_b32_b16" => |[a, b, ..]| a.shadow & 0xFFFF | b.shadow & 0xFFFF_0000,
        "s_pack_hh_b32_b16" => |[a, b, ..]| a.shadow >> 16 & 0xFFFF | b.shadow & 0xFFFF_0000,
        "s_sext_i32_i8" => |[a, ..]| (i(a.shadow << 24) >> 24).cast_unsigned(),
        "s_sext_i32_i16" => |[a, ..]| (i(a.shadow << 16) >> 16).cast_unsigned(),
        "s_bitset0_b32" | "s_bitset1_b32" => |x| bit(x, 31),
        "s_bitset0_b64" | "s_bitset1_b64" => |x| bit(x, 63),
        "s_cselect_b32" | "s_cselect_b64" => |[a, b, _, c]| {
            let (mask, undefined) = (every(c.bits == 1), every(c.shadow != 0));
            select(mask, undefined, [a.bits, a.shadow], [b.bits, b.shadow])
        },
        "s_cmov_b32" | "s_cmov_b64" | "s_cmovk_i32" => |[a, _, d, c]| {
            let (mask, undefined) = (every(c.bits == 1), every(c.shadow != 0));
            select(mask, undefined, [a.bits, a.shadow], [d.bits, d.shadow])
        },
        _ => return None,
    })
}

fn lshl_add([a, b, ..]: Sources, n: u32) -> u64 {
    sum(a.bits << n, a.shadow << n, b.bits, b.shadow)
}

/// Whether the condition code is undefined that says whether a result is not zero: a one that is defined decides.
pub(crate) const fn is_zero_undefined(bits: u64, shadow: u64) -> bool {
    shadow != 0 && bits & !shadow == 0
}

/// Whether the condition code of a mnemonic says whether its result is not zero.
pub(crate) fn tests_result(name: &str) -> bool {
    let base = name.trim_end_matches("_b32").trim_end_matches("_b64").trim_end_matches("_u32").trim_end_matches("_u64");
    let base = base.trim_end_matches("_i32").trim_end_matches("_i64");
    matches!(
        base,
        "s_and"
            | "s_or"
            | "s_xor"
            | "s_andn2"
            | "s_orn2"
            | "s_nand"
            | "s_nor"
            | "s_xnor"
            | "s_not"
            | "s_lshl"
            | "s_lshr"
            | "s_ashr"
            | "s_bfe"
            | "s_wqm"
            | "s_quadmask"
            | "s_abs"
            | "s_absdiff"
            | "s_bcnt0_i32"
            | "s_bcnt1_i32"
    )
}

/// All bits, if any source is undefined: instructions without a rule of their own.
pub(crate) const fn coarse(x: Sources) -> u64 {
    any(x[0].shadow | x[1].shadow | x[2].shadow | x[3].shadow, u64::MAX)
}
