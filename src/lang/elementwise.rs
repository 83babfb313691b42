//! Methods of tiles that work element by element, and `select`.

use half::{bf16, f16};

use super::elem::{Elem, Int, Num};
use super::fit::Fit;
use super::float::Float;
use super::shape::Shape;
use super::tile::{Col, Operand, Row, Tile};

macro_rules! of_floats {
    ($($(#[$doc:meta])* $name:ident)*) => {
        // The bounds are written at the methods, so that rustc's errors about them have TITAN's messages.
        impl<T: Elem, S: Shape> Tile<T, S> {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(self) -> Self
                where
                    T: Float,
                {
                    self.map(<T as Float>::$name)
                }
            )*

            /// Natural logarithm; the same as [`Tile::ln`].
            #[must_use]
            pub fn log(self) -> Self
            where
                T: Float,
            {
                self.ln()
            }

            /// A mask of the elements that are NaN.
            #[must_use]
            pub fn is_nan(self) -> Tile<bool, S>
            where
                T: Float,
            {
                self.map(T::missing)
            }

            /// A mask of the elements that are infinities.
            #[must_use]
            pub fn is_infinite(self) -> Tile<bool, S>
            where
                T: Float,
            {
                self.map(Float::is_infinite)
            }

            /// A mask of the elements that are neither NaN nor infinities.
            #[must_use]
            pub fn is_finite(self) -> Tile<bool, S>
            where
                T: Float,
            {
                self.map(Float::is_finite)
            }

            /// Each element to the power of the other, with the special cases of Rust's `f32::powf`.
            #[must_use]
            pub fn powf(self, other: impl Operand<T, S>) -> Self
            where
                T: Float,
            {
                self.zip(other.spread(), Float::powf)
            }

            /// `self * b + c`, rounded once.
            #[must_use]
            pub fn mul_add(self, b: impl Operand<T, S>, c: impl Operand<T, S>) -> Self
            where
                T: Float,
            {
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
    /// The largest integer that is not greater.
    floor
    /// The smallest integer that is not less.
    ceil
    /// Nearest integer, ties away from zero.
    round
    /// Nearest integer, ties to even.
    round_ties_even
    /// Nearest integer toward zero.
    trunc
}

impl<T: Elem, S: Shape> Tile<T, S> {
    /// The elements without their signs; the least integer wraps to itself.
    #[must_use]
    pub fn abs(self) -> Self
    where
        T: Num,
    {
        self.map(T::magnitude)
    }

    /// 1 with the sign of each element, as Rust's `signum`: 1 for 0.0 and −1 for −0.0, but 0 for an integer 0; NaN for NaN.
    #[must_use]
    pub fn signum(self) -> Self
    where
        T: Num,
    {
        self.map(T::unit_with_sign)
    }

    /// The number of bits of each element that are 1.
    #[must_use]
    pub fn count_ones(self) -> Tile<u32, S>
    where
        T: Int,
    {
        self.map(T::ones)
    }

    /// The number of zeros before the highest bit that is 1; of 0, the width.
    #[must_use]
    pub fn leading_zeros(self) -> Tile<u32, S>
    where
        T: Int,
    {
        self.map(T::zeros_above)
    }

    /// The number of zeros behind the lowest bit that is 1; of 0, the width.
    #[must_use]
    pub fn trailing_zeros(self) -> Tile<u32, S>
    where
        T: Int,
    {
        self.map(T::zeros_below)
    }

    /// The upper half of the product of twice the width: Triton's `umulhi`, CUDA's `__umulhi` and `__mulhi`.
    #[must_use]
    pub fn mul_hi(self, other: impl Operand<T, S>) -> Self
    where
        T: Int,
    {
        self.zip(other.spread(), T::upper_half)
    }

    /// The greater of each two elements. If one is NaN, the other is the result; −0 is less than +0.
    #[must_use]
    pub fn max(self, other: impl Operand<T, S>) -> Self
    where
        T: Num,
    {
        self.zip(other.spread(), T::greater)
    }

    /// The lesser of each two elements. If one is NaN, the other is the result; −0 is less than +0.
    #[must_use]
    pub fn min(self, other: impl Operand<T, S>) -> Self
    where
        T: Num,
    {
        self.zip(other.spread(), T::lesser)
    }

    /// `self.max(lo).min(hi)`.
    #[must_use]
    pub fn clamp(self, lo: impl Operand<T, S>, hi: impl Operand<T, S>) -> Self
    where
        T: Num,
    {
        self.max(lo).min(hi)
    }
}

/// `a` where `mask` holds, `b` elsewhere. Each is a tile, a row, a column or a scalar. A mask that is one `bool` takes one of the two as a
/// whole.
#[must_use]
pub fn select<M, A, B, O>(mask: M, a: A, b: B) -> O
where
    M: Choose<A, B, Of = O>,
{
    mask.choose(a, b)
}

/// A mask, or one `bool`, which can choose between two values.
#[diagnostic::on_unimplemented(
    message = "the first argument of `select` is a mask or one `bool`, not `{Self}`",
    label = "neither a mask nor one `bool`",
    note = "a comparison is a mask of the same shape, as in `x > 0.0`; one of scalars is one `bool`, as in `n != 0`"
)]
pub trait Choose<A, B> {
    /// The result.
    type Of;

    #[doc(hidden)]
    fn choose(self, a: A, b: B) -> Self::Of;
}

impl<S: Shape, A: Beside<B, S>, B> Choose<A, B> for Tile<bool, S> {
    type Of = Tile<A::Elem, S>;

    fn choose(self, a: A, b: B) -> Self::Of {
        let (a, b) = a.spread_both(b);
        let (mask, a, b) = (self.values(), a.values(), b.values());
        Tile::new((0..S::LEN).map(|i| if mask[i] { a[i] } else { b[i] }).collect())
    }
}

impl<A: Fit<B>, B> Choose<A, B> for bool {
    type Of = A::Of<A::Elem>;

    fn choose(self, a: A, b: B) -> Self::Of {
        if self { a.join(b, |a, _| a) } else { a.join(b, |_, b| b) }
    }
}

/// Two values between which a mask of shape `S` can select, and the common element type.
#[diagnostic::on_unimplemented(
    message = "`select` by a mask of shape `{S}` cannot choose between `{Self}` and `{B}`",
    label = "element types or shapes differ",
    note = "use `.cast::<..>()` to make the element types equal, and `.row()`, `.col()` or `.broadcast::<AXIS, N>()` to make the shapes equal"
)]
pub trait Beside<B, S: Shape>: Copy {
    /// The common element type.
    type Elem: Elem;

    #[doc(hidden)]
    fn spread_both(self, b: B) -> (Tile<Self::Elem, S>, Tile<Self::Elem, S>);
}

macro_rules! arms {
    ($([$($g:tt)*] $a:ty, $b:ty => $t:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<S: Shape, $($g)*> Beside<$b, S> for $a
        where
            $a: Operand<$t, S>,
            $b: Operand<$t, S>,
        {
            type Elem = $t;

            fn spread_both(self, b: $b) -> (Tile<$t, S>, Tile<$t, S>) {
                (self.spread(), b.spread())
            }
        }
    )*};
}
arms! {
    [T: Elem] T, T => T;
    [T: Elem] T, Tile<T, S> => T;
    [T: Elem, const N: i32] T, Row<T, N> => T;
    [T: Elem, const N: i32] T, Col<T, N> => T;
    [T: Elem] Tile<T, S>, T => T;
    [T: Elem] Tile<T, S>, Tile<T, S> => T;
    [T: Elem, const N: i32] Tile<T, S>, Row<T, N> => T;
    [T: Elem, const N: i32] Tile<T, S>, Col<T, N> => T;
    [T: Elem, const N: i32] Row<T, N>, T => T;
    [T: Elem, const N: i32] Row<T, N>, Tile<T, S> => T;
    [T: Elem, const M: i32, const N: i32] Row<T, N>, Row<T, M> => T;
    [T: Elem, const M: i32, const N: i32] Row<T, N>, Col<T, M> => T;
    [T: Elem, const N: i32] Col<T, N>, T => T;
    [T: Elem, const N: i32] Col<T, N>, Tile<T, S> => T;
    [T: Elem, const M: i32, const N: i32] Col<T, N>, Row<T, M> => T;
    [T: Elem, const M: i32, const N: i32] Col<T, N>, Col<T, M> => T;
    // An `f32` scalar with `f16` or `bf16` operands is rounded first.
    [] Tile<f16, S>, f32 => f16;
    [] f32, Tile<f16, S> => f16;
    [const N: i32] Row<f16, N>, f32 => f16;
    [const N: i32] f32, Row<f16, N> => f16;
    [const N: i32] Col<f16, N>, f32 => f16;
    [const N: i32] f32, Col<f16, N> => f16;
    [] Tile<bf16, S>, f32 => bf16;
    [] f32, Tile<bf16, S> => bf16;
    [const N: i32] Row<bf16, N>, f32 => bf16;
    [const N: i32] f32, Row<bf16, N> => bf16;
    [const N: i32] Col<bf16, N>, f32 => bf16;
    [const N: i32] f32, Col<bf16, N> => bf16;
}
