//! Whether the result of a comparison is undefined.
//!
//! Integers are compared by the smallest and the largest values that their shadows allow: `x < y` is decided if the largest x is less than
//! the smallest y, or if the smallest x is no less than the largest y. So the sign of a word whose other bits are undefined can be tested.

/// Whether a comparison of two values with these shadows is undefined.
pub(crate) type CompareShadow = fn(x: [u64; 2], s: [u64; 2]) -> bool;

/// The smallest and the largest value that a shadow allows. Signed numbers are compared as unsigned ones with the sign bit changed.
const fn range(x: u64, s: u64, bits: u32, signed: bool) -> (u64, u64) {
    let mask = super::ones(bits);
    let x = if signed { x ^ 1 << (bits - 1) } else { x } & mask;
    (x & !s, (x | s) & mask)
}

/// `x < y`.
const fn less(x: [u64; 2], s: [u64; 2], bits: u32, signed: bool) -> bool {
    let (a, b) = (range(x[0], s[0], bits, signed), range(x[1], s[1], bits, signed));
    !(a.1 < b.0 || a.0 >= b.1)
}

/// `x = y`: decided if the two differ in a bit that is defined in both.
pub(crate) const fn equal(x: [u64; 2], s: [u64; 2], bits: u32) -> bool {
    let (shadow, mask) = (s[0] | s[1], super::ones(bits));
    shadow & mask != 0 && (x[0] ^ x[1]) & !shadow & mask == 0
}

const fn swapped([a, b]: [u64; 2]) -> [u64; 2] {
    [b, a]
}

const fn signed16(x: u64) -> u64 {
    ((x << 48).cast_signed() >> 48).cast_unsigned()
}

/// The rule for integers of a type such as `u32`, by the test: `lt`, `eq`, ….
pub(crate) fn integers(test: &str, ty: &str) -> Option<CompareShadow> {
    macro_rules! rules {
        ($bits:literal, $signed:literal) => {
            match test {
                "f" | "t" => |_, _| false,
                "eq" | "ne" => |x, s| equal(x, s, $bits),
                "lt" | "ge" => |x, s| less(x, s, $bits, $signed),
                "gt" | "le" => |x, s| less(swapped(x), swapped(s), $bits, $signed),
                _ => return None,
            }
        };
    }
    let rule: CompareShadow = match ty {
        "i16" => rules!(16, true),
        "u16" => rules!(16, false),
        "i32" => rules!(32, true),
        "u32" => rules!(32, false),
        "i64" => rules!(64, true),
        "u64" => rules!(64, false),
        _ => return None,
    };
    Some(rule)
}

/// The rule of a vector comparison such as `v_cmp_lt_u32`, if it has one of its own.
pub(crate) fn vector(name: &str) -> Option<CompareShadow> {
    let rest = name.strip_prefix("v_cmpx_").or_else(|| name.strip_prefix("v_cmp_"))?;
    let (test, ty) = rest.split_once('_')?;
    match test {
        // Always false or true.
        "f" | "tru" => Some(|_, _| false),
        _ => integers(test, ty),
    }
}

/// The rule of a scalar comparison such as `s_cmp_lt_u32` or `s_bitcmp1_b32`, if it has one of its own.
pub(crate) fn scalar(name: &str) -> Option<CompareShadow> {
    match name {
        "s_bitcmp0_b32" | "s_bitcmp1_b32" => {
            return Some(|x, s| s[1] & 31 != 0 || s[0] >> (x[1] & 31) & 1 == 1);
        }
        "s_bitcmp0_b64" | "s_bitcmp1_b64" => {
            return Some(|x, s| s[1] & 63 != 0 || s[0] >> (x[1] & 63) & 1 == 1);
        }
        // Their second operand has 16 bits, with a sign or not.
        "s_cmpk_eq_u32" | "s_cmpk_lg_u32" => return Some(|x, s| equal(x, s, 32)),
        "s_cmpk_eq_i32" | "s_cmpk_lg_i32" => return Some(|x, s| equal([x[0], signed16(x[1])], s, 32)),
        _ => {}
    }
    let (test, ty) = name.strip_prefix("s_cmp_")?.split_once('_')?;
    integers(if test == "lg" { "ne" } else { test }, ty)
}
