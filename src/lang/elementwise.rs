//! Methods of tiles that work element by element, and `select`.

use half::{bf16, f16};

use super::elem::{Elem, Num};
use super::float::Float;
use super::shape::Shape;
use super::tile::{Col, Operand, Row, Tile};

macro_rules! of_floats {
    ($($(#[$doc:meta])* $name:ident)*) => {
        impl<T: Float, S: Shape> Tile<T, S> {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(self) -> Self {
                    self.map(<T as Float>::$name)
                }
            )*

            /// Natural logarithm; the same as [`Tile::ln`].
            #[must_use]
            pub fn log(self) -> Self {
                self.ln()
            }

            /// Where the element is NaN.
            #[must_use]
            pub fn is_nan(self) -> Tile<bool, S> {
                self.map(T::missing)
            }

            /// `self * b + c`, rounded once.
            #[must_use]
            pub fn mul_add(self, b: impl Operand<T, S>, c: impl Operand<T, S>) -> Self {
                let (a, b, c) = (self.values(), b.spread().values(), c.spread().values());
                Tile::new((0..S::LEN).map(|i| Float::mul_add(a[i], b[i], c[i])).collect())
            }
        }
    };
}
of_floats! {
    /// e to the power of each element.
    exp
    /// 2 to the power of each element.
    exp2
    /// Natural logarithm.
    ln
    /// Logarithm to base 2.
    log2
    /// Square root, correctly rounded.
    sqrt
    /// 1 over the square root.
    rsqrt
    /// 1 over each element, correctly rounded.
    recip
    /// Sine of angles in radians.
    sin
    /// Cosine of angles in radians.
    cos
    /// Hyperbolic tangent.
    tanh
    /// `1 / (1 + exp(-x))`.
    sigmoid
    /// Error function.
    erf
    /// Greatest integer not above.
    floor
    /// Least integer not below.
    ceil
    /// Nearest integer, ties away from zero.
    round
    /// Nearest integer, ties to even.
    round_ties_even
    /// Nearest integer toward zero.
    trunc
}

impl<T: Num, S: Shape> Tile<T, S> {
    /// The elements without their signs; the least integer wraps to itself.
    #[must_use]
    pub fn abs(self) -> Self {
        self.map(T::magnitude)
    }

    /// The greater of each two elements. NaN loses; −0 is less than +0.
    #[must_use]
    pub fn max(self, other: impl Operand<T, S>) -> Self {
        self.zip(other.spread(), T::greater)
    }

    /// The lesser of each two elements. NaN loses; −0 is less than +0.
    #[must_use]
    pub fn min(self, other: impl Operand<T, S>) -> Self {
        self.zip(other.spread(), T::lesser)
    }

    /// `self.max(lo).min(hi)`.
    #[must_use]
    pub fn clamp(self, lo: impl Operand<T, S>, hi: impl Operand<T, S>) -> Self {
        self.max(lo).min(hi)
    }
}

/// `a` where `mask` holds, `b` elsewhere. Each is a tile, a row, a column or a scalar.
#[must_use]
pub fn select<S, A, B>(mask: Tile<bool, S>, a: A, b: B) -> Tile<A::Elem, S>
where
    S: Shape,
    A: Beside<B> + Operand<<A as Beside<B>>::Elem, S>,
    B: Operand<<A as Beside<B>>::Elem, S>,
{
    let (mask, a, b) = (mask.values(), a.spread().values(), b.spread().values());
    Tile::new((0..S::LEN).map(|i| if mask[i] { a[i] } else { b[i] }).collect())
}

/// Two values that can be the arms of a `select`, and the element type they give.
#[diagnostic::on_unimplemented(
    message = "`select` cannot choose between `{Self}` and `{B}`",
    label = "element types differ",
    note = "use `.cast::<..>()` for one element type"
)]
pub trait Beside<B> {
    /// The common element type.
    type Elem: Elem;
}

impl<T: Elem> Beside<T> for T {
    type Elem = T;
}

/// The two arms in both orders, of one element type.
macro_rules! arms {
    ($([$($g:tt)*] $a:ty, $b:ty;)*) => {$(
        impl<T: Elem, $($g)*> Beside<$b> for $a {
            type Elem = T;
        }
    )*};
}
arms! {
    [S: Shape, R: Shape] Tile<T, S>, Tile<T, R>;
    [S: Shape, const N: i32] Tile<T, S>, Row<T, N>;
    [S: Shape, const N: i32] Tile<T, S>, Col<T, N>;
    [S: Shape] Tile<T, S>, T;
    [S: Shape, const N: i32] Row<T, N>, Tile<T, S>;
    [const M: i32, const N: i32] Row<T, N>, Row<T, M>;
    [const M: i32, const N: i32] Row<T, N>, Col<T, M>;
    [const N: i32] Row<T, N>, T;
    [S: Shape, const N: i32] Col<T, N>, Tile<T, S>;
    [const M: i32, const N: i32] Col<T, N>, Row<T, M>;
    [const M: i32, const N: i32] Col<T, N>, Col<T, M>;
    [const N: i32] Col<T, N>, T;
    [S: Shape] T, Tile<T, S>;
    [const N: i32] T, Row<T, N>;
    [const N: i32] T, Col<T, N>;
}

/// Halves beside an `f32`: the scalar is rounded first.
macro_rules! half_arms {
    ($($h:ident: $([$($g:tt)*] $a:ty;)*)*) => {$($(
        impl<$($g)*> Beside<f32> for $a {
            type Elem = $h;
        }
        impl<$($g)*> Beside<$a> for f32 {
            type Elem = $h;
        }
    )*)*};
}
half_arms! {
    f16: [S: Shape] Tile<f16, S>; [const N: i32] Row<f16, N>; [const N: i32] Col<f16, N>;
    bf16: [S: Shape] Tile<bf16, S>; [const N: i32] Row<bf16, N>; [const N: i32] Col<bf16, N>;
}
