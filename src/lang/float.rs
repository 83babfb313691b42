//! Functions of floats, for scalars as for tiles.
//!
//! All but [`Float::mul_add`] compute in `f64` and round once to the type, so that for `f32` and the halves the result is
//! the correctly rounded one but for rare near-ties. Where Rust's `f32` and `f64` have a method of the same name, that
//! one is called on scalars of these types; it means the same.

use half::{bf16, f16};

use super::elem::{Num, Number, Repr};
use titan_core::num::fma;

macro_rules! methods {
    ($($(#[$doc:meta])* $name:ident $f:expr;)*) => {
        /// A floating-point element type with arithmetic: `f64`, `f32`, `f16`, `bf16`.
        #[diagnostic::on_unimplemented(
            message = "`{Self}` is not a floating-point type with arithmetic",
            label = "needs floats",
            note = "`.cast::<f32>()` first"
        )]
        pub trait Float: Num {
            /// `self * b + c`, rounded once.
            #[must_use]
            fn mul_add(self, b: Self, c: Self) -> Self;

            /// The value to the power of `b`, with the special cases of Rust's `f32::powf`.
            #[must_use]
            fn powf(self, b: Self) -> Self {
                Self::of_number(Number::Float(wide(self).powf(wide(b))))
            }

            /// Whether it is NaN.
            #[must_use]
            fn is_nan(self) -> bool {
                wide(self).is_nan()
            }

            /// Whether it is an infinity.
            #[must_use]
            fn is_infinite(self) -> bool {
                wide(self).is_infinite()
            }

            /// Whether it is neither NaN nor an infinity.
            #[must_use]
            fn is_finite(self) -> bool {
                wide(self).is_finite()
            }
            $(
                $(#[$doc])*
                #[must_use]
                fn $name(self) -> Self {
                    let f: fn(f64) -> f64 = $f;
                    Self::of_number(Number::Float(f(wide(self))))
                }
            )*
        }
    };
}
methods! {
    /// e to the power of the value.
    exp f64::exp;
    /// 2 to the power of the value.
    exp2 f64::exp2;
    /// Natural logarithm.
    ln f64::ln;
    /// Logarithm to base 2.
    log2 f64::log2;
    /// Square root, correctly rounded.
    sqrt f64::sqrt;
    /// 1 over the square root.
    rsqrt |x| x.sqrt().recip();
    /// 1 over the value, correctly rounded.
    recip f64::recip;
    /// Sine of an angle in radians.
    sin sin;
    /// Cosine of an angle in radians.
    cos cos;
    /// Hyperbolic tangent.
    tanh f64::tanh;
    /// `1 / (1 + exp(-x))`.
    sigmoid |x| ((-x).exp() + 1.0).recip();
    /// Error function.
    erf libm::erf;
    /// Greatest integer not above.
    floor f64::floor;
    /// Least integer not below.
    ceil f64::ceil;
    /// Nearest integer, ties away from zero.
    round f64::round;
    /// Nearest integer, ties to even.
    round_ties_even f64::round_ties_even;
    /// Nearest integer toward zero.
    trunc f64::trunc;
    /// The value without its sign.
    abs f64::abs;
}

/// Whether `f64::sin` and `f64::cos` are those of mingw, which reduce angles by 66 bits of π: of large ones, no digit is right.
const REDUCES_BADLY: bool = cfg!(all(windows, target_env = "gnu"));

fn sin(x: f64) -> f64 {
    if REDUCES_BADLY { libm::sin(x) } else { x.sin() }
}

fn cos(x: f64) -> f64 {
    if REDUCES_BADLY { libm::cos(x) } else { x.cos() }
}

/// The value of a float, exactly.
fn wide<T: Repr>(x: T) -> f64 {
    match x.number() {
        Number::Float(x) => x,
        Number::Int(i) => i as f64,
    }
}

#[diagnostic::do_not_recommend]
impl Float for f64 {
    fn mul_add(self, b: Self, c: Self) -> Self {
        fma(self, b, c)
    }
}

#[diagnostic::do_not_recommend]
impl Float for f32 {
    fn mul_add(self, b: Self, c: Self) -> Self {
        fma(self, b, c)
    }
}

macro_rules! halves {
    ($($t:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Float for $t {
            fn mul_add(self, b: Self, c: Self) -> Self {
                // The product is exact.
                Self::of_number(Number::Float(sum_to_odd(f64::from(self) * f64::from(b), f64::from(c))))
            }
        }
    )*};
}
halves! { f16 bf16 }

/// `a + b`, rounded to an `f64` with an odd last bit unless it is exact. Rounding this once more, to a narrower type,
/// gives what rounding the exact sum would: the odd bit remembers on which side of a tie the sum lies.
fn sum_to_odd(a: f64, b: f64) -> f64 {
    let sum = a + b;
    // Knuth's two-sum: `a + b = sum + error`, exactly.
    let a_part = sum - b;
    let error = (a - a_part) + (b - (sum - a_part));
    if error == 0.0 || !error.is_finite() || sum.to_bits() & 1 == 1 {
        return sum;
    }
    if error > 0.0 { sum.next_up() } else { sum.next_down() }
}
