//! Vector instructions against Rust: to the bit where IEEE 754 or integers decide, within a stated bound elsewhere.

use crate::harness::records;
use half::f16;
use titan_amd::emu::Options;
use titan_core::num::fma;
use titan_sim::engine::Rng;

/// What a result is compared as.
#[derive(Clone, Copy, Debug, PartialEq)]
enum As {
    /// Bits.
    Bits,
    /// Numbers; every NaN is one.
    F32,
    F16,
    F64,
    /// Numbers that differ by so many units in the last place.
    Near(u64),
    /// The same of `f16`.
    NearHalf(u64),
    /// The same of `f64`.
    NearWide(u64),
}
use As::{Bits, F16, F32, F64, Near, NearHalf, NearWide};

/// Mnemonic; registers of the result and the sources (capitals are pairs); kind of values; how results compare; the
/// reference, of the sources and the destination's old value.
type Row = (&'static str, &'static str, char, As, fn([u64; 4]) -> u64);

fn u(x: u64) -> u32 {
    x as u32
}
fn s(x: u64) -> i32 {
    x as i32
}
fn f(x: u64) -> f32 {
    f32::from_bits(x as u32)
}
fn d(x: u64) -> f64 {
    f64::from_bits(x)
}
fn h(x: u64) -> f64 {
    f16::from_bits(x as u16).to_f64()
}
fn of(x: f32) -> u64 {
    x.to_bits().into()
}
fn si(x: i32) -> u64 {
    x.cast_unsigned().into()
}
fn ofh(x: f64) -> u64 {
    f16::from_f64(x).to_bits().into()
}
fn s24(x: u64) -> i64 {
    i64::from(s(x << 8) >> 8)
}
fn halves(x: [u64; 4], each: fn([u64; 4]) -> u64) -> u64 {
    let part = |at: u32| each(x.map(|v| v >> at & 0xFFFF)) & 0xFFFF;
    part(0) | part(16) << 16
}
fn i16s(x: u64) -> i64 {
    i64::from(x as i16)
}
fn bytes(x: u64) -> [u8; 4] {
    u(x).to_le_bytes()
}
/// Flushes what hardware flushes always.
fn flushed(x: f32) -> f32 {
    if x.is_subnormal() { 0_f32.copysign(x) } else { x }
}
/// Signalling NaNs become quiet, quiet ones lose against numbers.
fn signalling(x: f32) -> bool {
    x.is_nan() && x.to_bits() & 0x40_0000 == 0
}
fn min32(a: f32, b: f32) -> f32 {
    if signalling(a) || signalling(b) {
        f32::NAN
    } else if a == b {
        if a.is_sign_negative() { a } else { b }
    } else {
        a.min(b)
    }
}
fn max32(a: f32, b: f32) -> f32 {
    if signalling(a) || signalling(b) { f32::NAN } else { -min32(-a, -b) }
}
fn med(mut x: [i64; 3]) -> i64 {
    x.sort_unstable();
    x[1]
}
/// A number and the power of two that make it: `x = m * 2^e` with `0.5 <= |m| < 1`.
fn frexp(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    let (x, shift) = if x.is_subnormal() { (x * 2_f64.powi(64), -64) } else { (x, 0) };
    let exponent = (x.to_bits() >> 52 & 0x7FF) as i32 - 1022;
    (f64::from_bits(x.to_bits() & !(0x7FF << 52) | 1022 << 52), exponent + shift)
}

const ROWS: &[Row] = &[
    // Integers of 32 bits.
    ("v_add_u32_e32", "dab", 'i', Bits, |x| u(x[0]).wrapping_add(u(x[1])).into()),
    ("v_sub_u32_e32", "dab", 'i', Bits, |x| u(x[0]).wrapping_sub(u(x[1])).into()),
    ("v_subrev_u32_e32", "dab", 'i', Bits, |x| u(x[1]).wrapping_sub(u(x[0])).into()),
    ("v_add_i32", "dab clamp", 'i', Bits, |x| si(s(x[0]).saturating_add(s(x[1])))),
    ("v_sub_i32", "dab clamp", 'i', Bits, |x| si(s(x[0]).saturating_sub(s(x[1])))),
    ("v_add_u32_e64", "dab clamp", 'i', Bits, |x| u(x[0]).saturating_add(u(x[1])).into()),
    ("v_sub_u32_e64", "dab clamp", 'i', Bits, |x| u(x[0]).saturating_sub(u(x[1])).into()),
    ("v_mul_lo_u32", "dab", 'i', Bits, |x| u(x[0]).wrapping_mul(u(x[1])).into()),
    ("v_mul_hi_u32", "dab", 'i', Bits, |x| (u64::from(u(x[0])) * u64::from(u(x[1]))) >> 32),
    ("v_mul_hi_i32", "dab", 'i', Bits, |x| ((i64::from(s(x[0])) * i64::from(s(x[1]))) >> 32) as u64 & 0xFFFF_FFFF),
    ("v_mul_i32_i24_e32", "dab", 'i', Bits, |x| (s24(x[0]) * s24(x[1])) as u64 & 0xFFFF_FFFF),
    ("v_mul_hi_i32_i24_e32", "dab", 'i', Bits, |x| ((s24(x[0]) * s24(x[1])) >> 32) as u64 & 0xFFFF_FFFF),
    ("v_mul_u32_u24_e32", "dab", 'i', Bits, |x| ((x[0] & 0xFF_FFFF) * (x[1] & 0xFF_FFFF)) & 0xFFFF_FFFF),
    ("v_mad_u32_u24", "dabc", 'i', Bits, |x| {
        ((x[0] & 0xFF_FFFF) * (x[1] & 0xFF_FFFF) + u64::from(u(x[2]))) & 0xFFFF_FFFF
    }),
    ("v_mad_i32_i24", "dabc", 'i', Bits, |x| (s24(x[0]) * s24(x[1]) + i64::from(s(x[2]))) as u64 & 0xFFFF_FFFF),
    ("v_min_i32_e32", "dab", 'i', Bits, |x| si(s(x[0]).min(s(x[1])))),
    ("v_max_i32_e32", "dab", 'i', Bits, |x| si(s(x[0]).max(s(x[1])))),
    ("v_min_u32_e32", "dab", 'i', Bits, |x| u(x[0]).min(u(x[1])).into()),
    ("v_max_u32_e32", "dab", 'i', Bits, |x| u(x[0]).max(u(x[1])).into()),
    ("v_min3_i32", "dabc", 'i', Bits, |x| si(s(x[0]).min(s(x[1])).min(s(x[2])))),
    ("v_max3_u32", "dabc", 'i', Bits, |x| u(x[0]).max(u(x[1])).max(u(x[2])).into()),
    ("v_med3_i32", "dabc", 'i', Bits, |x| med([s(x[0]).into(), s(x[1]).into(), s(x[2]).into()]) as u64 & 0xFFFF_FFFF),
    ("v_med3_u32", "dabc", 'i', Bits, |x| med([u(x[0]).into(), u(x[1]).into(), u(x[2]).into()]) as u64),
    ("v_lshrrev_b32_e32", "dab", 'i', Bits, |x| (u(x[1]) >> (x[0] & 31)).into()),
    ("v_ashrrev_i32_e32", "dab", 'i', Bits, |x| si(s(x[1]) >> (x[0] & 31))),
    ("v_lshlrev_b32_e32", "dab", 'i', Bits, |x| (u(x[1]) << (x[0] & 31)).into()),
    ("v_and_b32_e32", "dab", 'i', Bits, |x| x[0] & x[1]),
    ("v_or_b32_e32", "dab", 'i', Bits, |x| x[0] | x[1]),
    ("v_xor_b32_e32", "dab", 'i', Bits, |x| x[0] ^ x[1]),
    ("v_xnor_b32_e32", "dab", 'i', Bits, |x| (!u(x[0] ^ x[1])).into()),
    ("v_not_b32_e32", "da", 'i', Bits, |x| (!u(x[0])).into()),
    ("v_bfrev_b32_e32", "da", 'i', Bits, |x| u(x[0]).reverse_bits().into()),
    ("v_ffbh_u32_e32", "da", 'i', Bits, |x| if u(x[0]) == 0 { u32::MAX } else { u(x[0]).leading_zeros() }.into()),
    ("v_ffbl_b32_e32", "da", 'i', Bits, |x| if u(x[0]) == 0 { u32::MAX } else { u(x[0]).trailing_zeros() }.into()),
    ("v_ffbh_i32_e32", "da", 'i', Bits, |x| {
        let v = if s(x[0]) < 0 { !u(x[0]) } else { u(x[0]) };
        if v == 0 { u32::MAX } else { v.leading_zeros() }.into()
    }),
    ("v_bcnt_u32_b32", "dab", 'i', Bits, |x| u(x[0]).count_ones().wrapping_add(u(x[1])).into()),
    ("v_bfe_u32", "dabc", 'i', Bits, |x| u64::from(u(x[0])) >> (x[1] & 31) & ((1 << (x[2] & 31)) - 1)),
    ("v_bfe_i32", "dabc", 'i', Bits, |x| {
        let width = x[2] & 31;
        if width == 0 {
            return 0;
        }
        let field = (i64::from(s(x[0])) >> (x[1] & 31)) << (64 - width) >> (64 - width);
        field as u64 & 0xFFFF_FFFF
    }),
    ("v_bfi_b32", "dabc", 'i', Bits, |x| x[0] & x[1] | !x[0] & x[2] & 0xFFFF_FFFF),
    ("v_bfm_b32", "dab", 'i', Bits, |x| (((1_u64 << (x[0] & 31)) - 1) << (x[1] & 31)) & 0xFFFF_FFFF),
    ("v_alignbit_b32", "dabc", 'i', Bits, |x| (x[0] << 32 | x[1]) >> (x[2] & 31) & 0xFFFF_FFFF),
    ("v_alignbyte_b32", "dabc", 'i', Bits, |x| (x[0] << 32 | x[1]) >> (8 * (x[2] & 3)) & 0xFFFF_FFFF),
    ("v_perm_b32", "dabc", 'i', Bits, |x| {
        let all = (x[0] << 32 | x[1]).to_le_bytes();
        let sign = |i: usize| if all[i] & 0x80 != 0 { 0xFF } else { 0 };
        let pick = bytes(x[2]).map(|n| match n {
            0..=7 => all[usize::from(n)],
            8..=11 => sign([1, 3, 5, 7][usize::from(n - 8)]),
            12 => 0,
            13.. => 0xFF,
        });
        u32::from_le_bytes(pick).into()
    }),
    ("v_lshl_add_u32", "dabc", 'i', Bits, |x| (u(x[0]) << (x[1] & 31)).wrapping_add(u(x[2])).into()),
    ("v_add_lshl_u32", "dabc", 'i', Bits, |x| (u(x[0]).wrapping_add(u(x[1])) << (x[2] & 31)).into()),
    ("v_add3_u32", "dabc", 'i', Bits, |x| u(x[0]).wrapping_add(u(x[1])).wrapping_add(u(x[2])).into()),
    ("v_lshl_or_b32", "dabc", 'i', Bits, |x| (u(x[0]) << (x[1] & 31) | u(x[2])).into()),
    ("v_and_or_b32", "dabc", 'i', Bits, |x| x[0] & x[1] | x[2]),
    ("v_or3_b32", "dabc", 'i', Bits, |x| x[0] | x[1] | x[2]),
    ("v_xad_u32", "dabc", 'i', Bits, |x| u(x[0] ^ x[1]).wrapping_add(u(x[2])).into()),
    ("v_sad_u8", "dabc", 'i', Bits, |x| {
        let sum: u32 = bytes(x[0]).iter().zip(bytes(x[1])).map(|(a, b)| u32::from(a.abs_diff(b))).sum();
        sum.wrapping_add(u(x[2])).into()
    }),
    ("v_sad_u32", "dabc", 'i', Bits, |x| u(x[0]).abs_diff(u(x[1])).wrapping_add(u(x[2])).into()),
    ("v_lerp_u8", "dabc", 'i', Bits, |x| {
        let (a, b, c) = (bytes(x[0]), bytes(x[1]), bytes(x[2]));
        let mean = |i: usize| ((u32::from(a[i]) + u32::from(b[i]) + u32::from(c[i] & 1)) >> 1) as u8;
        u32::from_le_bytes([mean(0), mean(1), mean(2), mean(3)]).into()
    }),
    // Integers of 64 and 16 bits.
    ("v_lshlrev_b64", "DaB", 'i', Bits, |x| x[1] << (x[0] & 63)),
    ("v_lshrrev_b64", "DaB", 'i', Bits, |x| x[1] >> (x[0] & 63)),
    ("v_ashrrev_i64", "DaB", 'i', Bits, |x| (x[1].cast_signed() >> (x[0] & 63)).cast_unsigned()),
    ("v_lshl_add_u64", "DAbC", 'i', Bits, |x| (x[0] << (x[1] & 7)).wrapping_add(x[2])),
    ("v_mov_b64_e32", "DA", 'i', Bits, |x| x[0]),
    ("v_add_u16_e32", "dab", 'i', Bits, |x| u64::from((x[0] as u16).wrapping_add(x[1] as u16))),
    ("v_mul_lo_u16_e32", "dab", 'i', Bits, |x| u64::from((x[0] as u16).wrapping_mul(x[1] as u16))),
    ("v_max_i16_e32", "dab", 'i', Bits, |x| i16s(x[0]).max(i16s(x[1])) as u64 & 0xFFFF),
    ("v_min_u16_e32", "dab", 'i', Bits, |x| (x[0] & 0xFFFF).min(x[1] & 0xFFFF)),
    ("v_ashrrev_i16_e32", "dab", 'i', Bits, |x| (i16s(x[1]) >> (x[0] & 15)) as u64 & 0xFFFF),
    ("v_mad_u32_u16", "dabc", 'i', Bits, |x| ((x[0] & 0xFFFF) * (x[1] & 0xFFFF) + u64::from(u(x[2]))) & 0xFFFF_FFFF),
    ("v_mad_i32_i16", "dabc", 'i', Bits, |x| (i16s(x[0]) * i16s(x[1]) + i64::from(s(x[2]))) as u64 & 0xFFFF_FFFF),
    // Packed.
    ("v_pk_add_i16", "dab clamp", 'i', Bits, |x| halves(x, |x| (x[0] as i16).saturating_add(x[1] as i16) as u64)),
    ("v_pk_sub_u16", "dab clamp", 'i', Bits, |x| halves(x, |x| (x[0] as u16).saturating_sub(x[1] as u16).into())),
    ("v_pk_mad_u16", "dabc", 'i', Bits, |x| halves(x, |x| x[0] * x[1] + x[2])),
    ("v_pk_max_i16", "dab", 'i', Bits, |x| halves(x, |x| i16s(x[0]).max(i16s(x[1])) as u64)),
    ("v_pk_lshlrev_b16", "dab", 'i', Bits, |x| halves(x, |x| x[1] << (x[0] & 15))),
    ("v_pk_add_f16", "dab", 'h', Bits, |x| halves(x, |x| ofh(h(x[0]) + h(x[1])))),
    ("v_pk_mul_f16", "dab", 'h', Bits, |x| halves(x, |x| ofh(h(x[0]) * h(x[1])))),
    ("v_dot4_u32_u8", "dabc", 'i', Bits, |x| {
        let sum: u32 = bytes(x[0]).iter().zip(bytes(x[1])).map(|(a, b)| u32::from(*a) * u32::from(b)).sum();
        sum.wrapping_add(u(x[2])).into()
    }),
    ("v_dot2_i32_i16", "dabc", 'i', Bits, |x| {
        let sum = i16s(x[0]) * i16s(x[1]) + i16s(x[0] >> 16) * i16s(x[1] >> 16) + i64::from(s(x[2]));
        sum as u64 & 0xFFFF_FFFF
    }),
    ("v_dot8_u32_u4", "dabc", 'i', Bits, |x| {
        let sum: u64 = (0..8).map(|i| (x[0] >> (4 * i) & 15) * (x[1] >> (4 * i) & 15)).sum();
        (sum + u64::from(u(x[2]))) & 0xFFFF_FFFF
    }),
    // f32.
    ("v_add_f32_e32", "dab", 'f', F32, |x| of(f(x[0]) + f(x[1]))),
    ("v_sub_f32_e32", "dab", 'f', F32, |x| of(f(x[0]) - f(x[1]))),
    ("v_subrev_f32_e32", "dab", 'f', F32, |x| of(f(x[1]) - f(x[0]))),
    ("v_mul_f32_e32", "dab", 'f', F32, |x| of(f(x[0]) * f(x[1]))),
    ("v_fma_f32", "dabc", 'f', F32, |x| of(fma(f(x[0]), f(x[1]), f(x[2])))),
    ("v_fmac_f32_e32", "dab", 'f', F32, |x| of(fma(f(x[0]), f(x[1]), f(x[3])))),
    ("v_min_f32_e32", "dab", 'f', F32, |x| of(min32(f(x[0]), f(x[1])))),
    ("v_max_f32_e32", "dab", 'f', F32, |x| of(max32(f(x[0]), f(x[1])))),
    ("v_min3_f32", "dabc", 'f', F32, |x| of(min32(min32(f(x[0]), f(x[1])), f(x[2])))),
    ("v_max3_f32", "dabc", 'f', F32, |x| of(max32(max32(f(x[0]), f(x[1])), f(x[2])))),
    ("v_mul_legacy_f32", "dab", 'f', F32, |x| if f(x[0]) == 0.0 || f(x[1]) == 0.0 { 0 } else { of(f(x[0]) * f(x[1])) }),
    ("v_trunc_f32_e32", "da", 'f', F32, |x| of(f(x[0]).trunc())),
    ("v_ceil_f32_e32", "da", 'f', F32, |x| of(f(x[0]).ceil())),
    ("v_rndne_f32_e32", "da", 'f', F32, |x| of(f(x[0]).round_ties_even())),
    ("v_floor_f32_e32", "da", 'f', F32, |x| of(f(x[0]).floor())),
    ("v_ldexp_f32", "dab", 'e', F32, |x| of((f64::from(f(x[0])) * 2_f64.powi(s(x[1]))) as f32)),
    ("v_frexp_mant_f32_e32", "da", 'f', F32, |x| of(frexp(f(x[0]).into()).0 as f32)),
    ("v_frexp_exp_i32_f32_e32", "da", 'f', Bits, |x| si(frexp(f(x[0]).into()).1)),
    ("v_pk_fma_f32", "DABC", 'f', Bits, |x| {
        let part = |at: u32| of(fma(f(x[0] >> at), f(x[1] >> at), f(x[2] >> at)));
        part(0) | part(32) << 32
    }),
    ("v_pk_add_f32", "DAB", 'f', Bits, |x| of(f(x[0]) + f(x[1])) | of(f(x[0] >> 32) + f(x[1] >> 32)) << 32),
    // f64.
    ("v_add_f64", "DAB", 'd', F64, |x| (d(x[0]) + d(x[1])).to_bits()),
    ("v_mul_f64", "DAB", 'd', F64, |x| (d(x[0]) * d(x[1])).to_bits()),
    ("v_fma_f64", "DABC", 'd', F64, |x| fma(d(x[0]), d(x[1]), d(x[2])).to_bits()),
    ("v_fmac_f64_e32", "DAB", 'd', F64, |x| fma(d(x[0]), d(x[1]), d(x[3])).to_bits()),
    ("v_trunc_f64_e32", "DA", 'd', F64, |x| d(x[0]).trunc().to_bits()),
    ("v_ceil_f64_e32", "DA", 'd', F64, |x| d(x[0]).ceil().to_bits()),
    ("v_rndne_f64_e32", "DA", 'd', F64, |x| d(x[0]).round_ties_even().to_bits()),
    ("v_floor_f64_e32", "DA", 'd', F64, |x| d(x[0]).floor().to_bits()),
    ("v_frexp_mant_f64_e32", "DA", 'd', F64, |x| frexp(d(x[0])).0.to_bits()),
    ("v_frexp_exp_i32_f64_e32", "dA", 'd', Bits, |x| si(frexp(d(x[0])).1)),
    // f16.
    ("v_add_f16_e32", "dab", 'h', F16, |x| ofh(h(x[0]) + h(x[1]))),
    ("v_sub_f16_e32", "dab", 'h', F16, |x| ofh(h(x[0]) - h(x[1]))),
    ("v_mul_f16_e32", "dab", 'h', F16, |x| ofh(h(x[0]) * h(x[1]))),
    ("v_trunc_f16_e32", "da", 'h', F16, |x| ofh(h(x[0]).trunc())),
    ("v_rndne_f16_e32", "da", 'h', F16, |x| ofh(h(x[0]).round_ties_even())),
    ("v_pack_b32_f16", "dab", 'h', Bits, |x| x[0] & 0xFFFF | (x[1] & 0xFFFF) << 16),
    // Conversions.
    ("v_cvt_f32_i32_e32", "da", 'i', F32, |x| of(s(x[0]) as f32)),
    ("v_cvt_f32_u32_e32", "da", 'i', F32, |x| of(u(x[0]) as f32)),
    ("v_cvt_i32_f32_e32", "da", 'f', Bits, |x| si(f(x[0]) as i32)),
    ("v_cvt_u32_f32_e32", "da", 'f', Bits, |x| u64::from(f(x[0]) as u32)),
    ("v_cvt_rpi_i32_f32_e32", "da", 'f', Bits, |x| si((f64::from(f(x[0])) + 0.5).floor() as i32)),
    ("v_cvt_flr_i32_f32_e32", "da", 'f', Bits, |x| si(f(x[0]).floor() as i32)),
    ("v_cvt_f16_f32_e32", "da", 'f', F16, |x| f16::from_f32(f(x[0])).to_bits().into()),
    ("v_cvt_f32_f16_e32", "da", 'h', F32, |x| of(h(x[0]) as f32)),
    ("v_cvt_f64_f32_e32", "Da", 'f', F64, |x| f64::from(f(x[0])).to_bits()),
    ("v_cvt_f32_f64_e32", "dA", 'd', F32, |x| of(d(x[0]) as f32)),
    ("v_cvt_f64_i32_e32", "Da", 'i', F64, |x| f64::from(s(x[0])).to_bits()),
    ("v_cvt_f64_u32_e32", "Da", 'i', F64, |x| f64::from(u(x[0])).to_bits()),
    ("v_cvt_i32_f64_e32", "dA", 'd', Bits, |x| si(d(x[0]) as i32)),
    ("v_cvt_u32_f64_e32", "dA", 'd', Bits, |x| u64::from(d(x[0]) as u32)),
    ("v_cvt_f32_ubyte0_e32", "da", 'i', F32, |x| of(bytes(x[0])[0].into())),
    ("v_cvt_f32_ubyte3_e32", "da", 'i', F32, |x| of(bytes(x[0])[3].into())),
    ("v_cvt_f16_i16_e32", "da", 'i', F16, |x| ofh(i16s(x[0]) as f64)),
    ("v_cvt_i16_f16_e32", "da", 'h', Bits, |x| u64::from((h(x[0]) as i16).cast_unsigned())),
    ("v_cvt_u16_f16_e32", "da", 'h', Bits, |x| u64::from(h(x[0]) as u16)),
    ("v_cvt_pk_u16_u32", "dab", 'i', Bits, |x| u64::from(u(x[0]).min(0xFFFF) | u(x[1]).min(0xFFFF) << 16)),
    ("v_cvt_pk_i16_i32", "dab", 'i', Bits, |x| {
        let near = |v: u64| u64::from((s(v).clamp(-32768, 32767) as i16).cast_unsigned());
        near(x[0]) | near(x[1]) << 16
    }),
    // Approximations: the emulator's own bound is half a unit; hardware's is one unit, by the manual.
    ("v_rcp_f32_e32", "da", 'f', Near(1), |x| of((1.0 / f64::from(f(x[0]))) as f32)),
    ("v_rsq_f32_e32", "da", 'f', Near(1), |x| of((1.0 / f64::from(f(x[0])).sqrt()) as f32)),
    ("v_sqrt_f32_e32", "da", 'f', Near(1), |x| of(f(x[0]).sqrt())),
    ("v_exp_f32_e32", "da", 'f', Near(1), |x| of(flushed(f64::from(flushed(f(x[0]))).exp2() as f32))),
    ("v_log_f32_e32", "da", 'f', Near(1), |x| of(flushed(f64::from(flushed(f(x[0]))).log2() as f32))),
    ("v_rcp_f64_e32", "DA", 'd', NearWide(1 << 24), |x| (1.0 / d(x[0])).to_bits()),
    ("v_sqrt_f64_e32", "DA", 'd', NearWide(1 << 24), |x| d(x[0]).sqrt().to_bits()),
    ("v_rcp_f16_e32", "da", 'h', NearHalf(1), |x| ofh(1.0 / h(x[0]))),
    ("v_sqrt_f16_e32", "da", 'h', NearHalf(1), |x| ofh(h(x[0]).sqrt())),
    ("v_exp_f16_e32", "da", 'h', NearHalf(1), |x| ofh(h(x[0]).exp2())),
];

/// Four values of 64 bits for each lane; shared corners first, so that they meet each other.
fn values(kind: char, seed: u64) -> Vec<[u64; 4]> {
    let mut rng = Rng::new(seed);
    let mut one = || {
        let bits = rng.next_u64();
        let pick = rng.below(4);
        match kind {
            'i' if pick == 0 => [0, 1, u64::MAX, 0x8000_0000_8000_0000, 0x7FFF_FFFF_7FFF_FFFF, 31][rng.below(6)],
            'i' => bits >> rng.below(60),
            'f' | 'e' => {
                let corners =
                    [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1e-45, 1e-39, 1.0, f32::MAX, -2.5];
                let words = [bits as u32, (bits >> 32) as u32].map(|w| match pick {
                    0 => corners[rng.below(10)].to_bits(),
                    1 => w,
                    _ => (w as i32 as f32 / 65536.0).to_bits(),
                });
                u64::from(words[0]) | u64::from(words[1]) << 32
            }
            'd' => match pick {
                0 => [0.0, -0.0, f64::INFINITY, f64::NAN, 5e-324, 1.0, f64::MAX, -1.5][rng.below(8)].to_bits(),
                1 => bits,
                _ => (bits.cast_signed() as f64 / 1e12).to_bits(),
            },
            _ => {
                let words = [bits, bits >> 16].map(|w| match pick {
                    0 => [0, 0x8000, 0x7C00, 0x0001, 0x03FF, 0x3C00, 0xFBFF][rng.below(7)],
                    1 if w & 0x7C00 != 0x7C00 => w & 0xFFFF,
                    _ => f16::from_f64(f64::from(w as i16) / 64.0).to_bits().into(),
                });
                words[0] | words[1] << 16
            }
        }
    };
    let mut all: Vec<[u64; 4]> = (0..64).map(|_| [one(), one(), one(), one()]).collect();
    if kind == 'e' {
        all.iter_mut().enumerate().for_each(|(i, v)| v[1] = si(i as i32 * 9 - 280));
    }
    all
}

fn line(op: &str, signature: &str) -> String {
    let (letters, tail) = signature.split_once(' ').map_or((signature, String::new()), |(l, t)| (l, format!(" {t}")));
    let register = |c: char| {
        let first = match c.to_ascii_lowercase() {
            'a' => 8,
            'b' => 10,
            'c' => 12,
            _ => 16,
        };
        if c.is_ascii_uppercase() { format!("v[{first}:{}]", first + 1) } else { format!("v{first}") }
    };
    let list: Vec<String> = letters.chars().map(register).collect();
    format!("{op} {}{tail}", list.join(", "))
}

fn near(a: u64, b: u64, bits: u32, ulps: u64) -> bool {
    let magnitude = |x: u64| x & ((1 << (bits - 1)) - 1);
    a >> (bits - 1) == b >> (bits - 1) && magnitude(a).abs_diff(magnitude(b)) <= ulps
}

fn same(how: As, got: u64, want: u64) -> bool {
    match how {
        Bits => got == want,
        F32 => got == want || f(got).is_nan() && f(want).is_nan(),
        F16 => got == want || h(got).is_nan() && h(want).is_nan() && got >> 16 == 0,
        F64 => got == want || d(got).is_nan() && d(want).is_nan(),
        Near(n) => near(got, want, 32, n) || f(got).is_nan() && f(want).is_nan(),
        NearHalf(n) => near(got, want, 16, n) || h(got).is_nan() && h(want).is_nan(),
        NearWide(n) => near(got, want, 64, n) || d(got).is_nan() && d(want).is_nan(),
    }
}

#[test]
fn results_are_those_of_rust() {
    let mut wrong = Vec::new();
    for (i, (op, signature, kind, how, reference)) in ROWS.iter().enumerate() {
        for seed in 0..4 {
            let values = values(*kind, seed * 1000 + i as u64);
            let words: Vec<u32> = values.iter().flatten().flat_map(|v| [*v as u32, (*v >> 32) as u32]).collect();
            let text = line(op, signature);
            let body = format!("v_mov_b32_e32 v16, v14\nv_mov_b32_e32 v17, v15\n{text}");
            let got = records(&body, (8, 2), &words, &Options::default()).unwrap_or_else(|e| panic!("{text}: {e}"));
            let wide = |c: char| signature.contains(c.to_ascii_uppercase());
            for (lane, (x, got)) in values.iter().zip(got.chunks(2)).enumerate() {
                let mut x = *x;
                for (n, c) in ['a', 'b', 'c', 'd'].into_iter().enumerate() {
                    if !wide(c) {
                        x[n] &= 0xFFFF_FFFF;
                    }
                }
                let got = u64::from(got[0]) | if wide('d') { u64::from(got[1]) << 32 } else { 0 };
                let want = reference(x);
                let nan = |bits: u64| f(bits).is_nan() || f(bits >> 32).is_nan();
                let both_nan = op.starts_with("v_pk") && op.ends_with("f32") && nan(got) && nan(want);
                if !same(*how, got, want) && !both_nan {
                    wrong.push(format!("{text}, lane {lane} of {x:x?}: {got:#x}, not {want:#x}"));
                    break;
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn comparisons_make_masks_and_carries_go_through_them() {
    let words: Vec<u32> = (0..64).flat_map(|i: u32| [i.wrapping_mul(0x9E37_79B9), i << 26, 7, u32::MAX - i]).collect();
    let body = "
        v_cmp_lt_u32_e32 vcc, v8, v9
        s_nop 1
        v_cndmask_b32_e32 v12, v8, v9, vcc
        v_add_co_u32_e32 v13, vcc, v8, v11
        s_nop 1
        v_addc_co_u32_e32 v14, vcc, v9, v10, vcc
        v_cmp_class_f32_e64 s[20:21], v11, v10
        s_nop 1
        v_cndmask_b32_e64 v15, 0, 1, s[20:21]";
    let got = records(body, (4, 4), &words, &Options::default()).unwrap();
    for (x, y) in words.chunks(4).zip(got.chunks(4)) {
        let (low, carry) = x[0].overflowing_add(x[3]);
        let high = x[1].wrapping_add(x[2]).wrapping_add(carry.into());
        // Bits 0 to 2 of the class: not a number, and minus infinity.
        let class = f32::from_bits(x[3]).is_nan() || f32::from_bits(x[3]) == f32::NEG_INFINITY;
        assert_eq!(y, [x[0].max(x[1]), low, high, class.into()], "{x:x?}");
    }
}

#[test]
fn subnormal_numbers_are_flushed_where_the_mode_says_so() {
    let words = vec![1e-40_f32.to_bits(); 64];
    let kept = records("v_add_f32_e32 v9, v8, v8", (1, 1), &words, &Options::default()).unwrap();
    assert_eq!(f32::from_bits(kept[0]), 1e-40_f32 + 1e-40);
    let body = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0\nv_add_f32_e32 v9, v8, v8";
    assert_eq!(records(body, (1, 1), &words, &Options::default()).unwrap()[0], 0);
}
