//! Operations on integers and bits.

use super::{CompareFn, LaneFn, Mode};

#[expect(clippy::cast_possible_truncation, reason = "a register of 32 bits")]
pub(crate) const fn u(x: u64) -> u32 {
    x as u32
}

pub(crate) const fn i(x: u64) -> i32 {
    u(x).cast_signed()
}

#[expect(clippy::cast_possible_truncation, reason = "the lower half of a register")]
pub(crate) const fn h(x: u64) -> u16 {
    x as u16
}

const fn ih(x: u64) -> i16 {
    h(x).cast_signed()
}

const fn of(x: i32) -> u64 {
    x.cast_unsigned() as u64
}

const fn of_h(x: i16) -> u64 {
    x.cast_unsigned() as u64
}

/// The low 24 bits, sign-extended or not.
const fn i24(x: u64) -> i64 {
    (i(x) << 8 >> 8) as i64
}

const fn u24(x: u64) -> u64 {
    x & 0xFF_FFFF
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the named half of a product")]
const fn low(x: i64) -> u64 {
    x as u32 as u64
}

const fn bytes(x: u64) -> [u8; 4] {
    u(x).to_le_bytes()
}

/// The sum of absolute differences of bytes; if `masked`, bytes whose reference is zero are left out.
fn sad(a: u64, b: u64, masked: bool) -> u32 {
    let pairs = bytes(a).into_iter().zip(bytes(b));
    pairs.filter(|(_, r)| !masked || *r != 0).map(|(x, y)| u32::from(x.abs_diff(y))).sum()
}

/// ISA §12.11, `V_PERM_B32`.
fn perm(a: u64, b: u64, selector: u64) -> u64 {
    let data = (a << 32 | b & 0xFFFF_FFFF).to_le_bytes();
    let sign = |byte: u8| if byte & 0x80 != 0 { 0xFF } else { 0 };
    let pick = bytes(selector).map(|s| match s {
        0..=7 => data[usize::from(s)],
        8..=11 => sign(data[usize::from(2 * (s - 8) + 1)]),
        12 => 0,
        _ => 0xFF,
    });
    u32::from_le_bytes(pick).into()
}

pub(crate) fn bfe_u(x: u64, at: u64, width: u64) -> u64 {
    let (at, width) = (at & 31, width & 31);
    u64::from(u(x)) >> at & ((1 << width) - 1)
}

pub(crate) fn bfe_i(x: u64, at: u64, width: u64) -> u64 {
    let (at, width) = (at & 31, width & 31);
    if width == 0 {
        return 0;
    }
    // Bits beyond the register are copies of its sign.
    let shifted = i64::from(i(x)) >> at;
    low(shifted << (64 - width) >> (64 - width))
}

/// The position from the top of the first bit that differs from the sign; −1 if there is none.
fn ffbh_i(x: i32) -> u64 {
    let n = (x ^ (x >> 31)).leading_zeros();
    u64::from(if n == 32 { u32::MAX } else { n })
}

fn med<T: Ord>(a: T, b: T, c: T) -> T {
    let mut all = [a, b, c];
    all.sort();
    let [_, middle, _] = all;
    middle
}

/// Applies a function to both halves of packed integers.
fn halves(x: [u64; 3], f: impl Fn(u16, u16) -> u16) -> u64 {
    let each = |s: u32| u64::from(f(h(x[0] >> s), h(x[1] >> s))) << s;
    each(0) | each(16)
}

/// The dot product of packed integers with this number of bits, added to a sum, which may saturate.
fn dot(x: [u64; 3], bits: u32, signed: bool) -> i64 {
    let part = |v: u64, at: u32| {
        let raw = (v >> at & ((1 << bits) - 1)).cast_signed();
        if signed { raw << (64 - bits) >> (64 - bits) } else { raw }
    };
    (0..32 / bits).map(|n| part(x[0], n * bits) * part(x[1], n * bits)).sum()
}

fn dot_i(x: [u64; 3], bits: u32) -> u64 {
    low(dot(x, bits, true) + i64::from(i(x[2])))
}

fn dot_u(x: [u64; 3], bits: u32) -> u64 {
    low(dot(x, bits, false) + i64::from(u(x[2])))
}

fn lerp(x: [u64; 3]) -> u64 {
    let [a, b, c] = x.map(bytes);
    #[expect(clippy::cast_possible_truncation, reason = "an average of two bytes")]
    let each = |n: usize| ((u16::from(a[n]) + u16::from(b[n]) + u16::from(c[n] & 1)) >> 1) as u8;
    u32::from_le_bytes([each(0), each(1), each(2), each(3)]).into()
}

fn sad16(x: [u64; 3]) -> u64 {
    let each = |s: u32| u32::from(h(x[0] >> s).abs_diff(h(x[1] >> s)));
    u64::from(u(x[2]).wrapping_add(each(0)).wrapping_add(each(16)))
}

/// The function of a mnemonic.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(crate) fn function(name: &str) -> Option<LaneFn> {
    Some(match name {
        "v_mov_b32" | "v_mov_b64" | "v_accvgpr_read_b32" | "v_accvgpr_write_b32" | "v_accvgpr_mov_b32" => |_, x| x[0],
        "v_not_b32" => |_, x| u64::from(!u(x[0])),
        "v_bfrev_b32" => |_, x| u64::from(u(x[0]).reverse_bits()),
        "v_ffbh_u32" => |_, x| u64::from(if u(x[0]) == 0 { u32::MAX } else { u(x[0]).leading_zeros() }),
        "v_ffbl_b32" => |_, x| u64::from(if u(x[0]) == 0 { u32::MAX } else { u(x[0]).trailing_zeros() }),
        "v_ffbh_i32" => |_, x| ffbh_i(i(x[0])),
        "v_sat_pk_u8_i16" => |_, x| {
            let sat = |v: u64| of_h(ih(v).clamp(0, 255));
            sat(x[0]) | sat(x[0] >> 16) << 8
        },
        "v_add_u32" | "v_add_i32" => |_, x| u64::from(u(x[0]).wrapping_add(u(x[1]))),
        "v_sub_u32" | "v_sub_i32" => |_, x| u64::from(u(x[0]).wrapping_sub(u(x[1]))),
        "v_subrev_u32" => |_, x| u64::from(u(x[1]).wrapping_sub(u(x[0]))),
        "v_mul_i32_i24" => |_, x| low(i24(x[0]) * i24(x[1])),
        "v_mul_hi_i32_i24" => |_, x| low((i24(x[0]) * i24(x[1])) >> 32),
        "v_mul_u32_u24" => |_, x| u64::from(u(u24(x[0]) * u24(x[1]))),
        "v_mul_hi_u32_u24" => |_, x| (u24(x[0]) * u24(x[1])) >> 32,
        "v_mad_i32_i24" => |_, x| low(i24(x[0]) * i24(x[1]) + i64::from(i(x[2]))),
        "v_mad_u32_u24" => |_, x| u64::from(u((u24(x[0]) * u24(x[1])).wrapping_add(x[2]))),
        "v_mul_lo_u32" => |_, x| u64::from(u(x[0]).wrapping_mul(u(x[1]))),
        "v_mul_hi_u32" => |_, x| (u64::from(u(x[0])) * u64::from(u(x[1]))) >> 32,
        "v_mul_hi_i32" => |_, x| low((i64::from(i(x[0])) * i64::from(i(x[1]))) >> 32),
        "v_min_i32" => |_, x| of(i(x[0]).min(i(x[1]))),
        "v_max_i32" => |_, x| of(i(x[0]).max(i(x[1]))),
        "v_min_u32" => |_, x| u64::from(u(x[0]).min(u(x[1]))),
        "v_max_u32" => |_, x| u64::from(u(x[0]).max(u(x[1]))),
        "v_min3_i32" => |_, x| of(i(x[0]).min(i(x[1])).min(i(x[2]))),
        "v_max3_i32" => |_, x| of(i(x[0]).max(i(x[1])).max(i(x[2]))),
        "v_med3_i32" => |_, x| of(med(i(x[0]), i(x[1]), i(x[2]))),
        "v_min3_u32" => |_, x| u64::from(u(x[0]).min(u(x[1])).min(u(x[2]))),
        "v_max3_u32" => |_, x| u64::from(u(x[0]).max(u(x[1])).max(u(x[2]))),
        "v_med3_u32" => |_, x| u64::from(med(u(x[0]), u(x[1]), u(x[2]))),
        "v_lshrrev_b32" => |_, x| u64::from(u(x[1]) >> (x[0] & 31)),
        "v_ashrrev_i32" => |_, x| of(i(x[1]) >> (x[0] & 31)),
        "v_lshlrev_b32" => |_, x| u64::from(u(x[1]) << (x[0] & 31)),
        "v_lshlrev_b64" => |_, x| x[1] << (x[0] & 63),
        "v_lshrrev_b64" => |_, x| x[1] >> (x[0] & 63),
        "v_ashrrev_i64" => |_, x| (x[1].cast_signed() >> (x[0] & 63)).cast_unsigned(),
        "v_and_b32" => |_, x| x[0] & x[1],
        "v_or_b32" => |_, x| x[0] | x[1],
        "v_xor_b32" => |_, x| x[0] ^ x[1],
        "v_xnor_b32" => |_, x| u64::from(!u(x[0] ^ x[1])),
        "v_and_or_b32" => |_, x| x[0] & x[1] | x[2],
        "v_or3_b32" => |_, x| x[0] | x[1] | x[2],
        "v_bfi_b32" => |_, x| x[0] & x[1] | u64::from(!u(x[0])) & x[2],
        "v_bfm_b32" => |_, x| u64::from(((1_u32 << (x[0] & 31)) - 1) << (x[1] & 31)),
        "v_bfe_u32" => |_, x| bfe_u(x[0], x[1], x[2]),
        "v_bfe_i32" => |_, x| bfe_i(x[0], x[1], x[2]),
        "v_lshl_add_u32" => |_, x| u64::from((u(x[0]) << (x[1] & 31)).wrapping_add(u(x[2]))),
        "v_add_lshl_u32" => |_, x| u64::from(u(x[0]).wrapping_add(u(x[1])) << (x[2] & 31)),
        "v_lshl_or_b32" => |_, x| u64::from(u(x[0]) << (x[1] & 31)) | x[2],
        "v_add3_u32" => |_, x| u64::from(u(x[0]).wrapping_add(u(x[1])).wrapping_add(u(x[2]))),
        "v_xad_u32" => |_, x| u64::from(u(x[0] ^ x[1]).wrapping_add(u(x[2]))),
        "v_lshl_add_u64" => |_, x| (x[0] << (x[1] & 7)).wrapping_add(x[2]),
        "v_alignbit_b32" => |_, x| u64::from(u((x[0] << 32 | x[1] & 0xFFFF_FFFF) >> (x[2] & 31))),
        "v_alignbyte_b32" => |_, x| u64::from(u((x[0] << 32 | x[1] & 0xFFFF_FFFF) >> (8 * (x[2] & 3)))),
        "v_perm_b32" => |_, x| perm(x[0], x[1], x[2]),
        "v_bcnt_u32_b32" => |_, x| u64::from(u(x[0]).count_ones().wrapping_add(u(x[1]))),
        "v_lerp_u8" => |_, x| lerp(x),
        "v_sad_u8" => |_, x| u64::from(sad(x[0], x[1], false).wrapping_add(u(x[2]))),
        "v_sad_hi_u8" => |_, x| u64::from((sad(x[0], x[1], false) << 16).wrapping_add(u(x[2]))),
        "v_sad_u16" => |_, x| sad16(x),
        "v_sad_u32" => |_, x| u64::from(u(x[0]).abs_diff(u(x[1])).wrapping_add(u(x[2]))),
        "v_msad_u8" => |_, x| u64::from(sad(x[0], x[1], true).wrapping_add(u(x[2]))),
        "v_add_u16" | "v_add_i16" => |_, x| h(x[0]).wrapping_add(h(x[1])).into(),
        "v_sub_u16" | "v_sub_i16" => |_, x| h(x[0]).wrapping_sub(h(x[1])).into(),
        "v_subrev_u16" => |_, x| h(x[1]).wrapping_sub(h(x[0])).into(),
        "v_mul_lo_u16" => |_, x| h(x[0]).wrapping_mul(h(x[1])).into(),
        "v_lshlrev_b16" => |_, x| (h(x[1]) << (x[0] & 15)).into(),
        "v_lshrrev_b16" => |_, x| (h(x[1]) >> (x[0] & 15)).into(),
        "v_ashrrev_i16" => |_, x| of_h(ih(x[1]) >> (x[0] & 15)),
        "v_max_u16" => |_, x| h(x[0]).max(h(x[1])).into(),
        "v_min_u16" => |_, x| h(x[0]).min(h(x[1])).into(),
        "v_max_i16" => |_, x| of_h(ih(x[0]).max(ih(x[1]))),
        "v_min_i16" => |_, x| of_h(ih(x[0]).min(ih(x[1]))),
        "v_min3_i16" => |_, x| of_h(ih(x[0]).min(ih(x[1])).min(ih(x[2]))),
        "v_max3_i16" => |_, x| of_h(ih(x[0]).max(ih(x[1])).max(ih(x[2]))),
        "v_med3_i16" => |_, x| of_h(med(ih(x[0]), ih(x[1]), ih(x[2]))),
        "v_min3_u16" => |_, x| h(x[0]).min(h(x[1])).min(h(x[2])).into(),
        "v_max3_u16" => |_, x| h(x[0]).max(h(x[1])).max(h(x[2])).into(),
        "v_med3_u16" => |_, x| med(h(x[0]), h(x[1]), h(x[2])).into(),
        "v_mad_u16" | "v_mad_i16" | "v_mad_legacy_u16" | "v_mad_legacy_i16" => {
            |_, x| h(x[0]).wrapping_mul(h(x[1])).wrapping_add(h(x[2])).into()
        }
        "v_mad_u32_u16" => |_, x| u64::from((u32::from(h(x[0])) * u32::from(h(x[1]))).wrapping_add(u(x[2]))),
        "v_mad_i32_i16" => |_, x| of((i32::from(ih(x[0])) * i32::from(ih(x[1]))).wrapping_add(i(x[2]))),
        "v_pk_mul_lo_u16" => |_, x| halves(x, u16::wrapping_mul),
        "v_pk_add_u16" | "v_pk_add_i16" => |_, x| halves(x, u16::wrapping_add),
        "v_pk_sub_u16" | "v_pk_sub_i16" => |_, x| halves(x, u16::wrapping_sub),
        "v_pk_lshlrev_b16" => |_, x| halves(x, |a, b| b << (a & 15)),
        "v_pk_lshrrev_b16" => |_, x| halves(x, |a, b| b >> (a & 15)),
        "v_pk_ashrrev_i16" => |_, x| halves(x, |a, b| (b.cast_signed() >> (a & 15)).cast_unsigned()),
        "v_pk_max_u16" => |_, x| halves(x, u16::max),
        "v_pk_min_u16" => |_, x| halves(x, u16::min),
        "v_pk_max_i16" => |_, x| halves(x, |a, b| a.cast_signed().max(b.cast_signed()).cast_unsigned()),
        "v_pk_min_i16" => |_, x| halves(x, |a, b| a.cast_signed().min(b.cast_signed()).cast_unsigned()),
        "v_pk_mad_u16" | "v_pk_mad_i16" => |_, x| {
            let each = |s: u32| u64::from(h(x[0] >> s).wrapping_mul(h(x[1] >> s)).wrapping_add(h(x[2] >> s))) << s;
            each(0) | each(16)
        },
        "v_dot2c_i32_i16" | "v_dot2_i32_i16" => |_, x| dot_i(x, 16),
        "v_dot4c_i32_i8" | "v_dot4_i32_i8" => |_, x| dot_i(x, 8),
        "v_dot8c_i32_i4" | "v_dot8_i32_i4" => |_, x| dot_i(x, 4),
        "v_dot2_u32_u16" => |_, x| dot_u(x, 16),
        "v_dot4_u32_u8" => |_, x| dot_u(x, 8),
        "v_dot8_u32_u4" => |_, x| dot_u(x, 4),
        _ => return None,
    })
}

/// The function with `clamp`: the exact result, saturated to the format. `None` if the instruction is not
/// modelled with it.
pub(crate) fn saturating(name: &str) -> Option<LaneFn> {
    fn us(v: i64) -> u64 {
        v.clamp(0, u32::MAX.into()).cast_unsigned()
    }
    fn is(v: i64) -> u64 {
        low(v.clamp(i32::MIN.into(), i32::MAX.into()))
    }
    fn s(x: u64) -> i64 {
        i(x).into()
    }
    fn n(x: u64) -> i64 {
        u(x).into()
    }
    Some(match name {
        "v_add_u32" => |_: Mode, x| us(n(x[0]) + n(x[1])),
        "v_sub_u32" => |_, x| us(n(x[0]) - n(x[1])),
        "v_subrev_u32" => |_, x| us(n(x[1]) - n(x[0])),
        "v_add_i32" => |_, x| is(s(x[0]) + s(x[1])),
        "v_sub_i32" => |_, x| is(s(x[0]) - s(x[1])),
        "v_add_u16" => |_, x| h(x[0]).saturating_add(h(x[1])).into(),
        "v_sub_u16" => |_, x| h(x[0]).saturating_sub(h(x[1])).into(),
        "v_add_i16" => |_, x| of_h(ih(x[0]).saturating_add(ih(x[1]))),
        "v_sub_i16" => |_, x| of_h(ih(x[0]).saturating_sub(ih(x[1]))),
        "v_pk_add_u16" => |_, x| halves(x, u16::saturating_add),
        "v_pk_sub_u16" => |_, x| halves(x, u16::saturating_sub),
        "v_pk_add_i16" => |_, x| halves(x, |a, b| a.cast_signed().saturating_add(b.cast_signed()).cast_unsigned()),
        "v_pk_sub_i16" => |_, x| halves(x, |a, b| a.cast_signed().saturating_sub(b.cast_signed()).cast_unsigned()),
        "v_dot2_i32_i16" => |_, x| is(dot(x, 16, true) + s(x[2])),
        "v_dot4_i32_i8" => |_, x| is(dot(x, 8, true) + s(x[2])),
        "v_dot8_i32_i4" => |_, x| is(dot(x, 4, true) + s(x[2])),
        "v_dot2_u32_u16" => |_, x| us(dot(x, 16, false) + n(x[2])),
        "v_dot4_u32_u8" => |_, x| us(dot(x, 8, false) + n(x[2])),
        "v_dot8_u32_u4" => |_, x| us(dot(x, 4, false) + n(x[2])),
        _ => return None,
    })
}

/// The comparison of integers with the test and the type of a mnemonic.
pub(crate) fn compare(test: &str, ty: &str) -> Option<CompareFn> {
    macro_rules! tests {
        ($read:expr) => {
            match test {
                "f" => |_, _| false,
                "lt" => |_, x| $read(x[0]) < $read(x[1]),
                "eq" => |_, x| $read(x[0]) == $read(x[1]),
                "le" => |_, x| $read(x[0]) <= $read(x[1]),
                "gt" => |_, x| $read(x[0]) > $read(x[1]),
                "ne" => |_, x| $read(x[0]) != $read(x[1]),
                "ge" => |_, x| $read(x[0]) >= $read(x[1]),
                "t" => |_, _| true,
                _ => return None,
            }
        };
    }
    let function: CompareFn = match ty {
        "i16" => tests!(ih),
        "u16" => tests!(h),
        "i32" => tests!(i),
        "u32" => tests!(u),
        "i64" => tests!(u64::cast_signed),
        "u64" => tests!(u64::from),
        _ => return None,
    };
    Some(function)
}
