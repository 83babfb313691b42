//! Which bits of a result are undefined if some bits of its sources are.
//!
//! A *shadow* has the bits set that are undefined. A rule computes the shadow of a result from the values and shadows of its sources;
//! bits that it does not set are the same whatever the undefined bits of the sources are. Instructions without a rule of their own have
//! the coarsest one: if a bit of a source is undefined, all bits of the result are. Rules are for instructions by which compilers
//! combine, select and discard bits, so that bits that do not matter do not spread:
//!
//! | instructions | rule |
//! |---|---|
//! | moves, selections, permutations of bytes, fields of bits | exact |
//! | and, or, inserts by a mask | exact: a zero, or a one, that is defined decides |
//! | shifts | exact, if the distance is defined |
//! | sums and differences | bits above the lowest undefined one, as far as carries can reach |
//! | products | bits above the lowest undefined one |
//! | comparisons of integers | decided if the smallest and the largest possible values agree |
//! | conversions to packed halves, packed integers | each half by its own sources |
//!
//! Source: Seward and Nethercote, "Using Valgrind to detect undefined value errors with bit-precision" (USENIX 2005), for sums and for
//! comparisons; the others follow from the pseudocode of ISA §12.
//!
//! | module | part |
//! |---|---|
//! | this | vector instructions |
//! | [`compare`] | comparisons |
//! | [`scalar`] | scalar instructions |

pub(crate) mod compare;
pub(crate) mod scalar;

use super::lane::int::{bfe_i, bfe_u};

/// The shadow of a result, from the values and the shadows of up to three sources.
pub(crate) type ShadowFn = fn(x: [u64; 3], s: [u64; 3]) -> u64;

const WORD: u64 = 0xFFFF_FFFF;
const HALF: u64 = 0xFFFF;

/// A mask of the lowest bits.
pub(crate) const fn ones(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// All bits of the mask, if a bit of the shadow is set.
const fn any(s: u64, mask: u64) -> u64 {
    if s == 0 { 0 } else { mask }
}

pub(crate) const fn and(a: u64, sa: u64, b: u64, sb: u64) -> u64 {
    (sa | sb) & (sa | a) & (sb | b)
}

pub(crate) const fn or(a: u64, sa: u64, b: u64, sb: u64) -> u64 {
    (sa | sb) & (sa | !a) & (sb | !b)
}

/// Bits of `x` where the mask is set, and of `y` elsewhere.
pub(crate) const fn select(mask: u64, sm: u64, [x, sx]: [u64; 2], [y, sy]: [u64; 2]) -> u64 {
    let decided = mask & sx | !mask & sy;
    !sm & decided | sm & (x ^ y | sx | sy)
}

/// A sum. A carry into a bit is the larger the larger the operands are: if it is equal for the smallest and for the largest operands that
/// the shadows allow, it is defined.
pub(crate) const fn sum(a: u64, sa: u64, b: u64, sb: u64) -> u64 {
    let least = (a & !sa).wrapping_add(b & !sb);
    let most = (a | sa).wrapping_add(b | sb);
    sa | sb | (least ^ most)
}

/// A difference, by the same argument on borrows.
pub(crate) const fn difference(a: u64, sa: u64, b: u64, sb: u64) -> u64 {
    let least = (a & !sa).wrapping_sub(b | sb);
    let most = (a | sa).wrapping_sub(b & !sb);
    sa | sb | (least ^ most)
}

/// The low bits of a product. If undefined bits of `a` begin at position i, and `b` has j zeros at its end, then the product changes by
/// multiples of 2^(i + j) only.
pub(crate) const fn product(a: u64, sa: u64, b: u64, sb: u64) -> u64 {
    let by_a = if sa == 0 { 64 } else { sa.trailing_zeros() + (b | sb).trailing_zeros() };
    let by_b = if sb == 0 { 64 } else { sb.trailing_zeros() + (a | sa).trailing_zeros() };
    let from = if by_a < by_b { by_a } else { by_b };
    if from >= 64 { 0 } else { u64::MAX << from }
}

/// A shift whose distance has these bits: `f` shifts the shadow.
fn shifted(distance: u64, undefined: u64, mask: u64, f: impl Fn(u64) -> u64) -> u64 {
    if undefined != 0 { mask } else { f(distance) & mask }
}

#[expect(clippy::cast_possible_truncation, reason = "a register")]
const fn i(x: u64) -> i32 {
    (x as u32).cast_signed()
}

fn ashr32(s: u64, n: u64) -> u64 {
    u64::from((i(s) >> n).cast_unsigned())
}

/// ISA §12.11, `V_PERM_B32`: each byte of the result is one of eight, or the sign of one, or a constant.
fn perm(x: [u64; 3], s: [u64; 3]) -> u64 {
    let shadows = (s[0] << 32 | s[1] & WORD).to_le_bytes();
    let byte = |n: u32| {
        let (selector, undefined) = (x[2] >> (8 * n) & 0xFF, s[2] >> (8 * n) & 0xFF);
        let of = |byte: u64| shadows.get(usize::try_from(byte).unwrap_or(usize::MAX)).map_or(0, |s| u64::from(*s));
        let shadow = match selector {
            _ if undefined != 0 => 0xFF,
            n @ 0..=7 => of(n),
            n @ 8..=11 => any(of(2 * (n - 8) + 1) & 0x80, 0xFF),
            _ => 0,
        };
        shadow << (8 * n)
    };
    byte(0) | byte(1) | byte(2) | byte(3)
}

/// Two results of 16 bits, each from one source.
const fn pair(_: [u64; 3], s: [u64; 3]) -> u64 {
    any(s[0], HALF) | any(s[1], HALF) << 16
}

/// A rule for both halves of packed operands.
fn halves(x: [u64; 3], s: [u64; 3], rule: impl Fn([u64; 3], [u64; 3]) -> u64) -> u64 {
    let each = |at: u32| (rule(x.map(|v| v >> at & HALF), s.map(|v| v >> at & HALF)) & HALF) << at;
    each(0) | each(16)
}

/// The sign-extended or zero-extended lowest 24 bits: of their product, only where it begins to be undefined matters.
fn product24(x: [u64; 3], s: [u64; 3]) -> u64 {
    product(x[0] & 0xFF_FFFF, s[0] & 0xFF_FFFF, x[1] & 0xFF_FFFF, s[1] & 0xFF_FFFF)
}

/// The low 24 bits as a signed number.
const fn signed24(x: u64) -> u64 {
    ((i(x) << 8 >> 8) as i64).cast_unsigned()
}

/// The rule of a mnemonic, if it has one of its own.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(crate) fn function(name: &str) -> Option<ShadowFn> {
    Some(match name {
        "v_mov_b32"
        | "v_mov_b64"
        | "v_accvgpr_read_b32"
        | "v_accvgpr_write_b32"
        | "v_accvgpr_mov_b32"
        | "v_not_b32" => |_, s| s[0],
        "v_bfrev_b32" => |_, s| s[0].reverse_bits() >> 32,
        "v_and_b32" => |x, s| and(x[0], s[0], x[1], s[1]),
        "v_or_b32" => |x, s| or(x[0], s[0], x[1], s[1]),
        "v_xor_b32" | "v_xnor_b32" => |_, s| s[0] | s[1],
        "v_and_or_b32" => |x, s| or(x[0] & x[1], and(x[0], s[0], x[1], s[1]), x[2], s[2]),
        "v_or3_b32" => |x, s| or(x[0] | x[1], or(x[0], s[0], x[1], s[1]), x[2], s[2]),
        "v_bfi_b32" => |x, s| select(x[0], s[0], [x[1], s[1]], [x[2], s[2]]) & WORD,
        "v_bfe_u32" => |x, s| if (s[1] | s[2]) & 31 != 0 { WORD } else { bfe_u(s[0], x[1], x[2]) },
        "v_bfe_i32" => |x, s| if (s[1] | s[2]) & 31 != 0 { WORD } else { bfe_i(s[0], x[1], x[2]) },
        "v_lshlrev_b32" => |x, s| shifted(x[0] & 31, s[0] & 31, WORD, |n| s[1] << n),
        "v_lshrrev_b32" => |x, s| shifted(x[0] & 31, s[0] & 31, WORD, |n| s[1] >> n),
        "v_ashrrev_i32" => |x, s| shifted(x[0] & 31, s[0] & 31, WORD, |n| ashr32(s[1], n)),
        "v_lshlrev_b64" => |x, s| shifted(x[0] & 63, s[0] & 63, u64::MAX, |n| s[1] << n),
        "v_lshrrev_b64" => |x, s| shifted(x[0] & 63, s[0] & 63, u64::MAX, |n| s[1] >> n),
        "v_ashrrev_i64" => {
            |x, s| shifted(x[0] & 63, s[0] & 63, u64::MAX, |n| (s[1].cast_signed() >> n).cast_unsigned())
        }
        "v_lshl_or_b32" => |x, s| {
            let shadow = shifted(x[1] & 31, s[1] & 31, WORD, |n| s[0] << n);
            or(x[0] << (x[1] & 31) & WORD, shadow, x[2], s[2])
        },
        "v_alignbit_b32" => |x, s| shifted(x[2] & 31, s[2] & 31, WORD, |n| (s[0] << 32 | s[1] & WORD) >> n),
        "v_alignbyte_b32" => |x, s| shifted(x[2] & 3, s[2] & 3, WORD, |n| (s[0] << 32 | s[1] & WORD) >> (8 * n)),
        "v_perm_b32" => perm,
        "v_add_u32" | "v_add_i32" => |x, s| sum(x[0], s[0], x[1], s[1]) & WORD,
        "v_sub_u32" | "v_sub_i32" => |x, s| difference(x[0], s[0], x[1], s[1]) & WORD,
        "v_subrev_u32" => |x, s| difference(x[1], s[1], x[0], s[0]) & WORD,
        "v_add3_u32" => |x, s| sum(x[0].wrapping_add(x[1]), sum(x[0], s[0], x[1], s[1]), x[2], s[2]) & WORD,
        "v_xad_u32" => |x, s| sum(x[0] ^ x[1], s[0] | s[1], x[2], s[2]) & WORD,
        "v_lshl_add_u32" => |x, s| {
            let shadow = shifted(x[1] & 31, s[1] & 31, WORD, |n| s[0] << n);
            sum(x[0] << (x[1] & 31) & WORD, shadow, x[2], s[2]) & WORD
        },
        "v_add_lshl_u32" => |x, s| shifted(x[2] & 31, s[2] & 31, WORD, |n| (sum(x[0], s[0], x[1], s[1]) & WORD) << n),
        "v_lshl_add_u64" => |x, s| {
            let shadow = shifted(x[1] & 7, s[1] & 7, u64::MAX, |n| s[0] << n);
            sum(x[0] << (x[1] & 7), shadow, x[2], s[2])
        },
        "v_mul_lo_u32" => |x, s| product(x[0], s[0], x[1], s[1]) & WORD,
        "v_mul_i32_i24" | "v_mul_u32_u24" => |x, s| product24(x, s) & WORD,
        "v_mad_u32_u24" => |x, s| {
            let value = (x[0] & 0xFF_FFFF).wrapping_mul(x[1] & 0xFF_FFFF);
            sum(value, product24(x, s), x[2], s[2]) & WORD
        },
        "v_mad_i32_i24" => |x, s| {
            let value = signed24(x[0]).wrapping_mul(signed24(x[1]));
            sum(value, product24(x, s), x[2], s[2]) & WORD
        },
        "v_add_u16" | "v_add_i16" => |x, s| sum(x[0], s[0], x[1], s[1]) & HALF,
        "v_sub_u16" | "v_sub_i16" => |x, s| difference(x[0], s[0], x[1], s[1]) & HALF,
        "v_subrev_u16" => |x, s| difference(x[1], s[1], x[0], s[0]) & HALF,
        "v_mul_lo_u16" => |x, s| product(x[0], s[0], x[1], s[1]) & HALF,
        "v_mad_u16" | "v_mad_i16" | "v_mad_legacy_u16" | "v_mad_legacy_i16" => {
            |x, s| sum(x[0].wrapping_mul(x[1]), product(x[0], s[0], x[1], s[1]), x[2], s[2]) & HALF
        }
        "v_lshlrev_b16" => |x, s| shifted(x[0] & 15, s[0] & 15, HALF, |n| s[1] << n),
        "v_lshrrev_b16" => |x, s| shifted(x[0] & 15, s[0] & 15, HALF, |n| (s[1] & HALF) >> n),
        "v_ashrrev_i16" => |x, s| shifted(x[0] & 15, s[0] & 15, HALF, |n| ashr32(s[1] << 16, n) >> 16),
        "v_cvt_f32_ubyte0" => |_, s| any(s[0] & 0xFF, WORD),
        "v_cvt_f32_ubyte1" => |_, s| any(s[0] & 0xFF00, WORD),
        "v_cvt_f32_ubyte2" => |_, s| any(s[0] & 0xFF_0000, WORD),
        "v_cvt_f32_ubyte3" => |_, s| any(s[0] & 0xFF00_0000, WORD),
        "v_cvt_f32_fp8" | "v_cvt_f32_bf8" => |_, s| any(s[0] & 0xFF, WORD),
        "v_cvt_pk_f32_fp8" | "v_cvt_pk_f32_bf8" => |_, s| any(s[0] & 0xFF, WORD) | any(s[0] & 0xFF00, WORD) << 32,
        "v_cvt_pkrtz_f16_f32"
        | "v_cvt_pknorm_i16_f32"
        | "v_cvt_pknorm_u16_f32"
        | "v_cvt_pknorm_i16_f16"
        | "v_cvt_pknorm_u16_f16"
        | "v_cvt_pk_u16_u32"
        | "v_cvt_pk_i16_i32"
        | "v_pack_b32_f16" => pair,
        "v_sat_pk_u8_i16" => |_, s| any(s[0] & HALF, 0xFF) | any(s[0] >> 16 & HALF, 0xFF) << 8,
        "v_cvt_pk_u8_f32" => |x, s| {
            let at = 8 * (x[1] & 3);
            if s[1] & 3 != 0 { WORD } else { s[2] & !(0xFF << at) | any(s[0], 0xFF) << at }
        },
        "v_pk_add_u16" | "v_pk_add_i16" => |x, s| halves(x, s, |x, s| sum(x[0], s[0], x[1], s[1])),
        "v_pk_sub_u16" | "v_pk_sub_i16" => |x, s| halves(x, s, |x, s| difference(x[0], s[0], x[1], s[1])),
        "v_pk_mul_lo_u16" => |x, s| halves(x, s, |x, s| product(x[0], s[0], x[1], s[1])),
        "v_pk_mad_u16" | "v_pk_mad_i16" => {
            |x, s| halves(x, s, |x, s| sum(x[0].wrapping_mul(x[1]), product(x[0], s[0], x[1], s[1]), x[2], s[2]))
        }
        "v_pk_lshlrev_b16" => |x, s| halves(x, s, |x, s| shifted(x[0] & 15, s[0] & 15, HALF, |n| s[1] << n)),
        "v_pk_lshrrev_b16" => |x, s| halves(x, s, |x, s| shifted(x[0] & 15, s[0] & 15, HALF, |n| s[1] >> n)),
        "v_pk_ashrrev_i16" => {
            |x, s| halves(x, s, |x, s| shifted(x[0] & 15, s[0] & 15, HALF, |n| ashr32(s[1] << 16, n) >> 16))
        }
        "v_pk_max_u16" | "v_pk_min_u16" | "v_pk_max_i16" | "v_pk_min_i16" => {
            |x, s| halves(x, s, |_, s| any(s[0] | s[1], HALF))
        }
        _ => return None,
    })
}
