//! The functions that scalar instructions compute: functions on bits, found by mnemonic.
//!
//! Source: the pseudocode of ISA §12.1 to §12.4.

/// Computes the result and the new condition code, if it is set, from the sources, the destination's old value and the condition code.
pub(crate) type ScalarFn = fn(a: u64, b: u64, d: u64, scc: bool) -> (u64, Option<bool>);

#[expect(clippy::cast_possible_truncation, reason = "a register")]
const fn u(x: u64) -> u32 {
    x as u32
}

const fn i(x: u64) -> i32 {
    u(x).cast_signed()
}

fn of(x: u32) -> u64 {
    x.into()
}

fn is(x: i32) -> u64 {
    x.cast_unsigned().into()
}

/// A result whose condition code is whether it is not zero.
fn test(x: u64) -> (u64, Option<bool>) {
    (x, Some(x != 0))
}

fn none(x: u64) -> (u64, Option<bool>) {
    (x, None)
}

fn signed((x, overflow): (i32, bool)) -> (u64, Option<bool>) {
    (is(x), Some(overflow))
}

fn carry((x, out): (u32, bool)) -> (u64, Option<bool>) {
    (of(x), Some(out))
}

/// The offset and the width in one source.
fn field(b: u64) -> (u64, u64) {
    (b & 63, b >> 16 & 127)
}

pub(crate) fn bfe_u32(a: u64, b: u64) -> u64 {
    let (at, width) = (b & 31, field(b).1);
    let rest = of(u(a)) >> at;
    if width >= 32 { rest } else { rest & ((1 << width) - 1) }
}

pub(crate) fn bfe_i32(a: u64, b: u64) -> u64 {
    let (at, width) = (b & 31, field(b).1.min(32));
    if width == 0 { 0 } else { of(u(((i64::from(i(a)) >> at) << (64 - width) >> (64 - width)).cast_unsigned())) }
}

pub(crate) fn bfe_u64(a: u64, b: u64) -> u64 {
    let (at, width) = field(b);
    let rest = a >> at;
    if width >= 64 { rest } else { rest & ((1 << width) - 1) }
}

pub(crate) fn bfe_i64(a: u64, b: u64) -> u64 {
    let (at, width) = field(b);
    let width = width.min(64);
    if width == 0 { 0 } else { ((a.cast_signed() >> at) << (64 - width) >> (64 - width)).cast_unsigned() }
}

/// A position, or −1 if there is none.
fn position(n: u32, bits: u32) -> u64 {
    of(if n == bits { u32::MAX } else { n })
}

/// For each group of four bits: all of them if one is set.
fn wqm(x: u64) -> u64 {
    (0..16).filter(|n| x >> (4 * n) & 15 != 0).fold(0, |all, n| all | 15 << (4 * n))
}

fn quadmask(x: u64) -> u64 {
    (0..16).filter(|n| x >> (4 * n) & 15 != 0).fold(0, |all, n| all | 1 << n)
}

fn replicate(x: u64) -> u64 {
    (0..32).filter(|n| x >> n & 1 == 1).fold(0, |all, n| all | 3 << (2 * n))
}

fn lshl_add(a: u64, b: u64, n: u32) -> (u64, Option<bool>) {
    let sum = (of(u(a)) << n) + of(u(b));
    (of(u(sum)), Some(sum >> 32 != 0))
}

fn sign16(x: u64) -> i32 {
    i(x) << 16 >> 16
}

/// The function of a mnemonic; instructions that also save the mask of lanes are in [`exec_mask`].
#[expect(clippy::too_many_lines, reason = "a table")]
pub(crate) fn function(name: &str) -> Option<ScalarFn> {
    Some(match name {
        "s_add_u32" => |a, b, _, _| carry(u(a).overflowing_add(u(b))),
        "s_sub_u32" => |a, b, _, _| carry(u(a).overflowing_sub(u(b))),
        "s_add_i32" => |a, b, _, _| signed(i(a).overflowing_add(i(b))),
        "s_sub_i32" => |a, b, _, _| signed(i(a).overflowing_sub(i(b))),
        "s_addc_u32" => |a, b, _, c| {
            let sum = of(u(a)) + of(u(b)) + u64::from(c);
            (of(u(sum)), Some(sum >> 32 != 0))
        },
        "s_subb_u32" => |a, b, _, c| {
            let take = of(u(b)) + u64::from(c);
            (of(u(of(u(a)).wrapping_sub(take))), Some(take > of(u(a))))
        },
        "s_min_i32" => |a, b, _, _| (is(i(a).min(i(b))), Some(i(a) < i(b))),
        "s_min_u32" => |a, b, _, _| (of(u(a).min(u(b))), Some(u(a) < u(b))),
        "s_max_i32" => |a, b, _, _| (is(i(a).max(i(b))), Some(i(a) >= i(b))),
        "s_max_u32" => |a, b, _, _| (of(u(a).max(u(b))), Some(u(a) >= u(b))),
        "s_cselect_b32" | "s_cselect_b64" => |a, b, _, c| none(if c { a } else { b }),
        "s_and_b32" | "s_and_b64" => |a, b, _, _| test(a & b),
        "s_or_b32" | "s_or_b64" => |a, b, _, _| test(a | b),
        "s_xor_b32" | "s_xor_b64" => |a, b, _, _| test(a ^ b),
        "s_andn2_b32" | "s_andn2_b64" => |a, b, _, _| test(a & !b),
        "s_orn2_b32" => |a, b, _, _| test(of(u(a | !b))),
        "s_orn2_b64" => |a, b, _, _| test(a | !b),
        "s_nand_b32" => |a, b, _, _| test(of(u(!(a & b)))),
        "s_nand_b64" => |a, b, _, _| test(!(a & b)),
        "s_nor_b32" => |a, b, _, _| test(of(u(!(a | b)))),
        "s_nor_b64" => |a, b, _, _| test(!(a | b)),
        "s_xnor_b32" => |a, b, _, _| test(of(u(!(a ^ b)))),
        "s_xnor_b64" => |a, b, _, _| test(!(a ^ b)),
        "s_lshl_b32" => |a, b, _, _| test(of(u(a) << (b & 31))),
        "s_lshl_b64" => |a, b, _, _| test(a << (b & 63)),
        "s_lshr_b32" => |a, b, _, _| test(of(u(a) >> (b & 31))),
        "s_lshr_b64" => |a, b, _, _| test(a >> (b & 63)),
        "s_ashr_i32" => |a, b, _, _| test(is(i(a) >> (b & 31))),
        "s_ashr_i64" => |a, b, _, _| test((a.cast_signed() >> (b & 63)).cast_unsigned()),
        "s_bfm_b32" => |a, b, _, _| none(of(((1_u32 << (a & 31)) - 1) << (b & 31))),
        "s_bfm_b64" => |a, b, _, _| none(((1_u64 << (a & 63)) - 1) << (b & 63)),
        "s_mul_i32" => |a, b, _, _| none(of(u(a).wrapping_mul(u(b)))),
        "s_mul_hi_u32" => |a, b, _, _| none((of(u(a)) * of(u(b))) >> 32),
        "s_mul_hi_i32" => |a, b, _, _| none(of(u(((i64::from(i(a)) * i64::from(i(b))) >> 32).cast_unsigned()))),
        "s_bfe_u32" => |a, b, _, _| test(bfe_u32(a, b)),
        "s_bfe_i32" => |a, b, _, _| test(bfe_i32(a, b)),
        "s_bfe_u64" => |a, b, _, _| test(bfe_u64(a, b)),
        "s_bfe_i64" => |a, b, _, _| test(bfe_i64(a, b)),
        "s_absdiff_i32" => |a, b, _, _| test(is(i(a).wrapping_sub(i(b)).wrapping_abs())),
        "s_lshl1_add_u32" => |a, b, _, _| lshl_add(a, b, 1),
        "s_lshl2_add_u32" => |a, b, _, _| lshl_add(a, b, 2),
        "s_lshl3_add_u32" => |a, b, _, _| lshl_add(a, b, 3),
        "s_lshl4_add_u32" => |a, b, _, _| lshl_add(a, b, 4),
        "s_pack_ll_b32_b16" => |a, b, _, _| none(a & 0xFFFF | (b & 0xFFFF) << 16),
        "s_pack_lh_b32_b16" => |a, b, _, _| none(a & 0xFFFF | b & 0xFFFF_0000),
        "s_pack_hh_b32_b16" => |a, b, _, _| none(a >> 16 & 0xFFFF | b & 0xFFFF_0000),
        "s_movk_i32" => |a, _, _, _| none(is(sign16(a))),
        "s_cmovk_i32" => |a, _, d, c| none(if c { is(sign16(a)) } else { d }),
        "s_addk_i32" => |a, _, d, _| signed(i(d).overflowing_add(sign16(a))),
        "s_mulk_i32" => |a, _, d, _| none(is(i(d).wrapping_mul(sign16(a)))),
        "s_mov_b32" | "s_mov_b64" => |a, _, _, _| none(a),
        "s_cmov_b32" | "s_cmov_b64" => |a, _, d, c| none(if c { a } else { d }),
        "s_not_b32" => |a, _, _, _| test(of(!u(a))),
        "s_not_b64" => |a, _, _, _| test(!a),
        "s_wqm_b32" => |a, _, _, _| test(of(u(wqm(of(u(a)))))),
        "s_wqm_b64" => |a, _, _, _| test(wqm(a)),
        "s_brev_b32" => |a, _, _, _| none(of(u(a).reverse_bits())),
        "s_brev_b64" => |a, _, _, _| none(a.reverse_bits()),
        "s_bcnt0_i32_b32" => |a, _, _, _| test(of(u(a).count_zeros())),
        "s_bcnt0_i32_b64" => |a, _, _, _| test(of(a.count_zeros())),
        "s_bcnt1_i32_b32" => |a, _, _, _| test(of(u(a).count_ones())),
        "s_bcnt1_i32_b64" => |a, _, _, _| test(of(a.count_ones())),
        "s_ff0_i32_b32" => |a, _, _, _| none(position(u(a).trailing_ones(), 32)),
        "s_ff0_i32_b64" => |a, _, _, _| none(position(a.trailing_ones(), 64)),
        "s_ff1_i32_b32" => |a, _, _, _| none(position(u(a).trailing_zeros(), 32)),
        "s_ff1_i32_b64" => |a, _, _, _| none(position(a.trailing_zeros(), 64)),
        "s_flbit_i32_b32" => |a, _, _, _| none(position(u(a).leading_zeros(), 32)),
        "s_flbit_i32_b64" => |a, _, _, _| none(position(a.leading_zeros(), 64)),
        "s_flbit_i32" => |a, _, _, _| none(position((i(a) ^ (i(a) >> 31)).leading_zeros(), 32)),
        "s_flbit_i32_i64" => |a, _, _, _| {
            let x = a.cast_signed();
            none(position((x ^ (x >> 63)).leading_zeros(), 64))
        },
        "s_sext_i32_i8" => |a, _, _, _| none(is(i(a) << 24 >> 24)),
        "s_sext_i32_i16" => |a, _, _, _| none(is(sign16(a))),
        "s_bitset0_b32" => |a, _, d, _| none(d & !(1 << (a & 31))),
        "s_bitset0_b64" => |a, _, d, _| none(d & !(1 << (a & 63))),
        "s_bitset1_b32" => |a, _, d, _| none(d | 1 << (a & 31)),
        "s_bitset1_b64" => |a, _, d, _| none(d | 1 << (a & 63)),
        "s_quadmask_b32" => |a, _, _, _| test(quadmask(of(u(a)))),
        "s_quadmask_b64" => |a, _, _, _| test(quadmask(a)),
        "s_abs_i32" => |a, _, _, _| test(of(i(a).unsigned_abs())),
        "s_bitreplicate_b64_b32" => |a, _, _, _| none(replicate(of(u(a)))),
        _ => return None,
    })
}

/// A comparison of two sources.
pub(crate) type ScalarTest = fn(a: u64, b: u64) -> bool;

/// The function of a mnemonic that sets only the condition code.
pub(crate) fn compare(name: &str) -> Option<ScalarTest> {
    Some(match name {
        "s_cmp_eq_i32" | "s_cmp_eq_u32" | "s_cmpk_eq_u32" => |a, b| u(a) == u(b),
        "s_cmp_lg_i32" | "s_cmp_lg_u32" | "s_cmpk_lg_u32" => |a, b| u(a) != u(b),
        "s_cmp_gt_i32" => |a, b| i(a) > i(b),
        "s_cmp_ge_i32" => |a, b| i(a) >= i(b),
        "s_cmp_lt_i32" => |a, b| i(a) < i(b),
        "s_cmp_le_i32" => |a, b| i(a) <= i(b),
        "s_cmp_gt_u32" | "s_cmpk_gt_u32" => |a, b| u(a) > u(b),
        "s_cmp_ge_u32" | "s_cmpk_ge_u32" => |a, b| u(a) >= u(b),
        "s_cmp_lt_u32" | "s_cmpk_lt_u32" => |a, b| u(a) < u(b),
        "s_cmp_le_u32" | "s_cmpk_le_u32" => |a, b| u(a) <= u(b),
        "s_cmpk_eq_i32" => |a, b| i(a) == sign16(b),
        "s_cmpk_lg_i32" => |a, b| i(a) != sign16(b),
        "s_cmpk_gt_i32" => |a, b| i(a) > sign16(b),
        "s_cmpk_ge_i32" => |a, b| i(a) >= sign16(b),
        "s_cmpk_lt_i32" => |a, b| i(a) < sign16(b),
        "s_cmpk_le_i32" => |a, b| i(a) <= sign16(b),
        "s_cmp_eq_u64" => |a, b| a == b,
        "s_cmp_lg_u64" => |a, b| a != b,
        "s_bitcmp0_b32" => |a, b| a >> (b & 31) & 1 == 0,
        "s_bitcmp1_b32" => |a, b| a >> (b & 31) & 1 == 1,
        "s_bitcmp0_b64" => |a, b| a >> (b & 63) & 1 == 0,
        "s_bitcmp1_b64" => |a, b| a >> (b & 63) & 1 == 1,
        _ => return None,
    })
}

/// The new mask of lanes, from a source and the old mask.
pub(crate) type MaskFn = fn(s: u64, exec: u64) -> u64;

/// The function of a mnemonic, and whether the destination receives the new mask rather than the old one.
pub(crate) fn exec_mask(name: &str) -> Option<(MaskFn, bool)> {
    Some(match name {
        "s_and_saveexec_b64" => (|s, e| s & e, false),
        "s_or_saveexec_b64" => (|s, e| s | e, false),
        "s_xor_saveexec_b64" => (|s, e| s ^ e, false),
        "s_andn2_saveexec_b64" => (|s, e| s & !e, false),
        "s_orn2_saveexec_b64" => (|s, e| s | !e, false),
        "s_nand_saveexec_b64" => (|s, e| !(s & e), false),
        "s_nor_saveexec_b64" => (|s, e| !(s | e), false),
        "s_xnor_saveexec_b64" => (|s, e| !(s ^ e), false),
        "s_andn1_saveexec_b64" => (|s, e| !s & e, false),
        "s_orn1_saveexec_b64" => (|s, e| !s | e, false),
        "s_andn1_wrexec_b64" => (|s, e| !s & e, true),
        "s_andn2_wrexec_b64" => (|s, e| s & !e, true),
        _ => return None,
    })
}
