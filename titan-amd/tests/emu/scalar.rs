//! Scalar instructions against Rust: results, and the bit that they leave in `scc`.

use crate::harness::over_words;
use crate::support::depth::tries;

/// The value and `scc`, from two sources and the old `scc`; `None` leaves `scc` alone.
type Reference = fn(u64, u64, bool) -> (u64, Option<bool>);

fn s(x: u64) -> i32 {
    x as i32
}

fn u(x: u64) -> u32 {
    x as u32
}

fn nonzero(x: u64) -> (u64, Option<bool>) {
    (x, Some(x != 0))
}

fn word(x: u32) -> (u64, Option<bool>) {
    nonzero(x.into())
}

fn signed(x: i32) -> u64 {
    x.cast_unsigned().into()
}

/// Mnemonic, registers of the result and of the sources.
const TWO: &[(&str, [u8; 3], Reference)] = &[
    ("s_add_u32", [1, 1, 1], |a, b, _| {
        let (r, c) = u(a).overflowing_add(u(b));
        (r.into(), Some(c))
    }),
    ("s_sub_u32", [1, 1, 1], |a, b, _| {
        let (r, c) = u(a).overflowing_sub(u(b));
        (r.into(), Some(c))
    }),
    ("s_add_i32", [1, 1, 1], |a, b, _| {
        let (r, o) = s(a).overflowing_add(s(b));
        (signed(r), Some(o))
    }),
    ("s_sub_i32", [1, 1, 1], |a, b, _| {
        let (r, o) = s(a).overflowing_sub(s(b));
        (signed(r), Some(o))
    }),
    ("s_addc_u32", [1, 1, 1], |a, b, c| {
        let r = u64::from(u(a)) + u64::from(u(b)) + u64::from(c);
        (r & 0xFFFF_FFFF, Some(r >> 32 != 0))
    }),
    ("s_subb_u32", [1, 1, 1], |a, b, c| {
        let r = i64::from(u(a)) - i64::from(u(b)) - i64::from(c);
        (r as u64 & 0xFFFF_FFFF, Some(r < 0))
    }),
    ("s_min_i32", [1, 1, 1], |a, b, _| (signed(s(a).min(s(b))), Some(s(a) < s(b)))),
    ("s_min_u32", [1, 1, 1], |a, b, _| (u(a).min(u(b)).into(), Some(u(a) < u(b)))),
    ("s_max_i32", [1, 1, 1], |a, b, _| (signed(s(a).max(s(b))), Some(s(a) >= s(b)))),
    ("s_max_u32", [1, 1, 1], |a, b, _| (u(a).max(u(b)).into(), Some(u(a) >= u(b)))),
    ("s_cselect_b32", [1, 1, 1], |a, b, c| (if c { u(a) } else { u(b) }.into(), None)),
    ("s_cselect_b64", [2, 2, 2], |a, b, c| (if c { a } else { b }, None)),
    ("s_and_b32", [1, 1, 1], |a, b, _| word(u(a) & u(b))),
    ("s_and_b64", [2, 2, 2], |a, b, _| nonzero(a & b)),
    ("s_or_b64", [2, 2, 2], |a, b, _| nonzero(a | b)),
    ("s_xor_b32", [1, 1, 1], |a, b, _| word(u(a) ^ u(b))),
    ("s_andn2_b64", [2, 2, 2], |a, b, _| nonzero(a & !b)),
    ("s_orn2_b32", [1, 1, 1], |a, b, _| word(u(a) | !u(b))),
    ("s_nand_b32", [1, 1, 1], |a, b, _| word(!(u(a) & u(b)))),
    ("s_nor_b64", [2, 2, 2], |a, b, _| nonzero(!(a | b))),
    ("s_xnor_b64", [2, 2, 2], |a, b, _| nonzero(!(a ^ b))),
    ("s_lshl_b32", [1, 1, 1], |a, b, _| word(u(a) << (b & 31))),
    ("s_lshl_b64", [2, 2, 1], |a, b, _| nonzero(a << (b & 63))),
    ("s_lshr_b32", [1, 1, 1], |a, b, _| word(u(a) >> (b & 31))),
    ("s_lshr_b64", [2, 2, 1], |a, b, _| nonzero(a >> (b & 63))),
    ("s_ashr_i32", [1, 1, 1], |a, b, _| nonzero(signed(s(a) >> (b & 31)))),
    ("s_ashr_i64", [2, 2, 1], |a, b, _| nonzero((a.cast_signed() >> (b & 63)).cast_unsigned())),
    ("s_bfm_b32", [1, 1, 1], |a, b, _| ((((1_u64 << (a & 31)) - 1) << (b & 31)) & 0xFFFF_FFFF, None)),
    ("s_mul_i32", [1, 1, 1], |a, b, _| (u(a).wrapping_mul(u(b)).into(), None)),
    ("s_mul_hi_u32", [1, 1, 1], |a, b, _| ((u64::from(u(a)) * u64::from(u(b))) >> 32, None)),
    ("s_mul_hi_i32", [1, 1, 1], |a, b, _| {
        (((i64::from(s(a)) * i64::from(s(b))) >> 32).cast_unsigned() & 0xFFFF_FFFF, None)
    }),
    ("s_bfe_u32", [1, 1, 1], |a, b, _| {
        let width = (b >> 16 & 0x7F).min(32);
        nonzero(u64::from(u(a)) >> (b & 31) & ((1 << width) - 1))
    }),
    ("s_bfe_i32", [1, 1, 1], |a, b, _| {
        let (width, at) = ((b >> 16 & 0x7F).min(32) as u32, (b & 31) as u32);
        if width == 0 {
            return nonzero(0);
        }
        let wide = i64::from(s(a)) >> at << (64 - width) >> (64 - width);
        nonzero(wide.cast_unsigned() & 0xFFFF_FFFF)
    }),
    ("s_absdiff_i32", [1, 1, 1], |a, b, _| nonzero(u64::from(s(a).wrapping_sub(s(b)).unsigned_abs()))),
    ("s_lshl1_add_u32", [1, 1, 1], |a, b, _| shifted(1, a, b)),
    ("s_lshl4_add_u32", [1, 1, 1], |a, b, _| shifted(4, a, b)),
    ("s_pack_ll_b32_b16", [1, 1, 1], |a, b, _| (a & 0xFFFF | (b & 0xFFFF) << 16, None)),
    ("s_pack_lh_b32_b16", [1, 1, 1], |a, b, _| (a & 0xFFFF | b & 0xFFFF_0000, None)),
    ("s_pack_hh_b32_b16", [1, 1, 1], |a, b, _| (a >> 16 & 0xFFFF | b & 0xFFFF_0000, None)),
];

fn shifted(n: u32, a: u64, b: u64) -> (u64, Option<bool>) {
    let r = (u64::from(u(a)) << n) + u64::from(u(b));
    (r & 0xFFFF_FFFF, Some(r >> 32 != 0))
}

const ONE: &[(&str, [u8; 2], Reference)] = &[
    ("s_not_b32", [1, 1], |a, _, _| word(!u(a))),
    ("s_not_b64", [2, 2], |a, _, _| nonzero(!a)),
    ("s_brev_b32", [1, 1], |a, _, _| (u(a).reverse_bits().into(), None)),
    ("s_brev_b64", [2, 2], |a, _, _| (a.reverse_bits(), None)),
    ("s_bcnt0_i32_b32", [1, 1], |a, _, _| word(u(a).count_zeros())),
    ("s_bcnt1_i32_b64", [1, 2], |a, _, _| word(a.count_ones())),
    ("s_ff1_i32_b32", [1, 1], |a, _, _| (if u(a) == 0 { u32::MAX } else { u(a).trailing_zeros() }.into(), None)),
    ("s_ff0_i32_b64", [1, 2], |a, _, _| (if a == u64::MAX { u32::MAX } else { a.trailing_ones() }.into(), None)),
    ("s_flbit_i32_b32", [1, 1], |a, _, _| (if u(a) == 0 { u32::MAX } else { u(a).leading_zeros() }.into(), None)),
    ("s_flbit_i32_b64", [1, 2], |a, _, _| (if a == 0 { u32::MAX } else { a.leading_zeros() }.into(), None)),
    ("s_flbit_i32", [1, 1], |a, _, _| {
        let x = if s(a) < 0 { !u(a) } else { u(a) };
        (if x == 0 { u32::MAX } else { x.leading_zeros() }.into(), None)
    }),
    ("s_sext_i32_i8", [1, 1], |a, _, _| (signed((a as i8).into()), None)),
    ("s_sext_i32_i16", [1, 1], |a, _, _| (signed((a as i16).into()), None)),
    ("s_abs_i32", [1, 1], |a, _, _| word(s(a).unsigned_abs())),
    ("s_mov_b64", [2, 2], |a, _, _| (a, None)),
];

/// An instruction, how many registers an operand of it is, and what it says.
type Test = (&'static str, u8, fn(u64, u64) -> bool);

const TESTS: &[Test] = &[
    ("s_cmp_eq_i32", 1, |a, b| u(a) == u(b)),
    ("s_cmp_lg_u32", 1, |a, b| u(a) != u(b)),
    ("s_cmp_gt_i32", 1, |a, b| s(a) > s(b)),
    ("s_cmp_ge_i32", 1, |a, b| s(a) >= s(b)),
    ("s_cmp_lt_i32", 1, |a, b| s(a) < s(b)),
    ("s_cmp_le_i32", 1, |a, b| s(a) <= s(b)),
    ("s_cmp_gt_u32", 1, |a, b| u(a) > u(b)),
    ("s_cmp_ge_u32", 1, |a, b| u(a) >= u(b)),
    ("s_cmp_lt_u32", 1, |a, b| u(a) < u(b)),
    ("s_cmp_le_u32", 1, |a, b| u(a) <= u(b)),
    ("s_cmp_eq_u64", 2, |a, b| a == b),
    ("s_cmp_lg_u64", 2, |a, b| a != b),
    ("s_bitcmp0_b32", 1, |a, b| u(a) >> (b & 31) & 1 == 0),
    ("s_bitcmp1_b32", 1, |a, b| u(a) >> (b & 31) & 1 == 1),
];

const VALUES: &[u64] = &[
    0,
    1,
    0xFFFF_FFFF,
    0x8000_0000,
    0x7FFF_FFFF,
    u64::MAX,
    1 << 63,
    0x0123_4567_89AB_CDEF,
    31,
    0x0008_0004,
    0x0020_0010,
    0x0000_0001_0000_0000,
    0xFFFF_FF80,
    0x0007_001E,
];

fn set(code: u32, value: u64) -> String {
    format!("s_mov_b32 s{code}, {:#x}\ns_mov_b32 s{}, {:#x}\n", value & 0xFFFF_FFFF, code + 1, value >> 32)
}

fn name(code: u32, n: u8) -> String {
    if n == 1 { format!("s{code}") } else { format!("s[{code}:{}]", code + 1) }
}

/// The two words of `s[20:21]` and `scc`, after `line`.
fn result(line: &str, a: u64, b: u64, scc: bool) -> (u64, bool) {
    let body = format!(
        "{}{}{}s_cmp_eq_u32 s0, s{}\n{line}\ns_cselect_b32 s22, 1, 0
        v_mov_b32_e32 v4, s20\nv_mov_b32_e32 v5, s21\nv_mov_b32_e32 v6, s22
        v_cmp_eq_u32_e32 vcc, 1, v2\ns_nop 1\nv_cndmask_b32_e32 v4, v4, v5, vcc
        v_cmp_eq_u32_e32 vcc, 2, v2\ns_nop 1\nv_cndmask_b32_e32 v4, v4, v6, vcc",
        set(16, a),
        set(18, b),
        set(20, 0),
        // Equal to itself, different from a number that no pointer has.
        if scc { 0 } else { 21 },
    );
    let got = over_words(&body, &[0; 3]).unwrap_or_else(|e| panic!("{line}: {e}"));
    (u64::from(got[0]) | u64::from(got[1]) << 32, got[2] == 1)
}

/// The second operands beside a first one: all, or in the quick depth every third.
fn second(turn: usize) -> impl Iterator<Item = &'static u64> {
    VALUES.iter().skip(turn % tries(3, 1)).step_by(tries(3, 1))
}

#[test]
fn results_and_conditions_are_those_of_rust() {
    for (turn, (op, [d, n, m], f)) in TWO.iter().enumerate() {
        for (i, a) in VALUES.iter().enumerate() {
            for b in second(turn + i) {
                let scc = (a ^ b) & 2 != 0;
                let line = format!("{op} {}, {}, {}", name(20, *d), name(16, *n), name(18, *m));
                let (value, flag) = f(*a, *b, scc);
                assert_eq!(result(&line, *a, *b, scc), (value, flag.unwrap_or(scc)), "{line}: {a:#x} {b:#x}");
            }
        }
    }
    for (op, [d, n], f) in ONE {
        for a in VALUES {
            let line = format!("{op} {}, {}", name(20, *d), name(16, *n));
            let (value, flag) = f(*a, 0, true);
            assert_eq!(result(&line, *a, 0, true), (value, flag.unwrap_or(true)), "{line}: {a:#x}");
        }
    }
}

#[test]
fn comparisons_set_the_condition() {
    for (turn, (op, n, f)) in TESTS.iter().enumerate() {
        for (i, a) in VALUES.iter().enumerate() {
            for b in second(turn + i) {
                let line = format!("{op} {}, {}", name(16, *n), name(18, *n));
                assert_eq!(result(&line, *a, *b, false).1, f(*a, *b), "{line}: {a:#x} {b:#x}");
            }
        }
    }
}
