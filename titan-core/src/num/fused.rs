//! `a · b + c`, rounded once.
//!
//! Where code is not compiled for an instruction, std calls the C library, and that of mingw, which programs for `x86_64-pc-windows-gnu` are
//! linked with, rounds twice. For this target the result is computed here. Whatever has to agree with GPUs to the last bit calls this module
//! instead of `mul_add`.
//!
//! Deliberately absent: other roundings than that to the nearest, and halves, whose products are exact in wider types.

/// Whether std's `mul_add` may round twice.
const TWICE: bool = cfg!(all(windows, target_env = "gnu"));

/// The types of [`fma`].
pub trait Fused: Copy {
    /// `self · b + c`, rounded once, by an instruction or a library.
    fn by_std(self, b: Self, c: Self) -> Self;
    /// The same without either.
    fn by_hand(self, b: Self, c: Self) -> Self;
}

/// `a · b + c`, rounded once.
#[inline(always)]
pub fn fma<F: Fused>(a: F, b: F, c: F) -> F {
    if TWICE { a.by_hand(b, c) } else { a.by_std(b, c) }
}

impl Fused for f32 {
    #[inline(always)]
    fn by_std(self, b: f32, c: f32) -> f32 {
        self.mul_add(b, c)
    }

    fn by_hand(self, b: f32, c: f32) -> f32 {
        single(self, b, c)
    }
}

impl Fused for f64 {
    #[inline(always)]
    fn by_std(self, b: f64, c: f64) -> f64 {
        self.mul_add(b, c)
    }

    fn by_hand(self, b: f64, c: f64) -> f64 {
        double(self, b, c)
    }
}

/// The product is exact in `f64`, and a sum that is rounded to an odd last bit may be rounded again.
#[expect(clippy::cast_possible_truncation, reason = "this is what rounds")]
fn single(a: f32, b: f32, c: f32) -> f32 {
    let (product, c) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + c;
    // What the sum lacks, by Knuth's two-sum.
    let part = sum - product;
    let lost = (product - (sum - part)) + (c - part);
    let bits = sum.to_bits();
    if lost == 0.0 || !lost.is_finite() || bits & 1 == 1 {
        return sum as f32;
    }
    let away = (lost > 0.0) == (sum > 0.0);
    f64::from_bits(if away { bits + 1 } else { bits - 1 }) as f32
}

/// In integers of 128 bits.
fn double(a: f64, b: f64, c: f64) -> f64 {
    if !a.is_finite() || !b.is_finite() || a == 0.0 || b == 0.0 {
        return a * b + c;
    }
    if !c.is_finite() {
        return c;
    }
    if c == 0.0 {
        // A product that is rounded to zero keeps its sign.
        return a * b;
    }
    let ((x, ex), (y, ey), (z, ez)) = (parts(a), parts(b), parts(c));
    // Both begin in one of the two bits below the sign of an `i128`, which is room for a carry.
    let product =
        Term { digits: signed((x * y) << 20, a.is_sign_negative() != b.is_sign_negative()), exponent: ex + ey - 20 };
    let c = Term { digits: signed(z << 73, c.is_sign_negative()), exponent: ez - 73 };
    let (large, small) = if product.exponent > c.exponent { (product, c) } else { (c, product) };
    let distance = large.exponent.abs_diff(small.exponent);
    // Digits that are shifted out are lost only where the others are far above them: that there were some is enough.
    let kept = small.digits.unsigned_abs().checked_shr(distance).unwrap_or(0);
    let is_exact = kept.checked_shl(distance) == Some(small.digits.unsigned_abs());
    let sum = large.digits + signed(kept | u128::from(!is_exact), small.digits < 0);
    let size = rounded(sum.unsigned_abs(), large.exponent);
    if sum < 0 { -size } else { size }
}

/// A number: `digits · 2^exponent`.
struct Term {
    digits: i128,
    exponent: i32,
}

/// A number below 2^127 with its sign.
fn signed(size: u128, negative: bool) -> i128 {
    if negative { -(size as i128) } else { size as i128 }
}

/// The 53 digits of a finite number other than zero, the first of them a one, and the power of two of the last.
fn parts(x: f64) -> (u128, i32) {
    let (exponent, fraction) = ((x.to_bits() >> 52 & 0x7FF) as i32, x.to_bits() & ((1 << 52) - 1));
    if exponent > 0 {
        return (u128::from(fraction | 1 << 52), exponent - 1075);
    }
    let missing = fraction.leading_zeros() as i32 - 11;
    (u128::from(fraction << missing), -1074 - missing)
}

/// The number nearest to `digits · 2^exponent`, that with an even last digit of two.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most 2^53, and the last digit is at least -1074"
)]
fn rounded(digits: u128, exponent: i32) -> f64 {
    let length = 128 - digits.leading_zeros() as i32;
    // The power of two of the last digit that is kept.
    let last = (exponent + length - 53).max(-1074);
    let kept = match last - exponent {
        dropped @ 1..128 => {
            let (kept, rest, half) = (digits >> dropped, digits & ((1 << dropped) - 1), 1 << (dropped - 1));
            kept + u128::from(rest > half || (rest == half && kept & 1 == 1))
        }
        none @ ..1 => digits << -none,
        _ => 0,
    };
    // A carry into another digit is one into the exponent.
    let bits = if kept < 1 << 52 { kept as u64 } else { (kept as u64) - (1 << 52) + (((last + 1075) as u64) << 52) };
    f64::from_bits(bits.min(f64::INFINITY.to_bits()))
}
