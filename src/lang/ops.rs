//! What the operators of a kernel become: `a + b` is `ops::add(a, b)`, for scalars too.
//!
//! Comparisons of tiles give masks, arithmetic on scalars has one meaning on every device, and because [`Fit`] is our own
//! trait, so are the words when two operands do not fit together.
//!
//! | left | right | result |
//! |---|---|---|
//! | scalar `T` | scalar `T` | scalar |
//! | `Tile<T, S>` | `Tile<T, S>`, scalar `T` | tile of shape `S`; also mirrored |
//! | `Tile<T, D2<M, N>>` | `Row<T, N>`, `Col<T, M>` | tile `D2<M, N>`; also mirrored |
//! | `Col<T, M>` | `Row<T, N>` | tile `D2<M, N>`; also mirrored |
//! | `Tile<f16, S>`, `f16`, likewise `bf16` | scalar `f32`, rounded first | tile, `f16`; also mirrored |

use half::{bf16, f16};

use super::arith::{Arith, Bitwise, Integral};
use super::elem::{Bits, Cast, Comparable, Elem, Int, Num};
use super::shape::{D2, Shape};
use super::tile::{Col, Operand, Row, Tile};

/// Two operands of one element type whose shapes agree.
#[diagnostic::on_unimplemented(
    message = "`{Self}` and `{R}` do not fit together",
    label = "element types or shapes differ",
    note = "use `.cast::<..>()` for one element type; `.row()`, `.col()` or `.broadcast::<AXIS, N>()` for one shape"
)]
pub trait Fit<R>: Copy {
    /// The element type of both.
    type Elem: Elem;
    /// The result with elements `U`.
    type Of<U: Elem>: Copy;

    #[doc(hidden)]
    fn join<U: Elem>(self, r: R, f: fn(Self::Elem, Self::Elem) -> U) -> Self::Of<U>;
}

impl<T: Elem> Fit<T> for T {
    type Elem = T;
    type Of<U: Elem> = U;

    fn join<U: Elem>(self, r: T, f: fn(T, T) -> U) -> U {
        f(self, r)
    }
}

/// Operands that both spread to a tile of one shape.
macro_rules! fit {
    ($([$($g:tt)*] $l:ty, $r:ty => $t:ty, $s:ty;)*) => {$(
        impl<$($g)*> Fit<$r> for $l {
            type Elem = $t;
            type Of<U: Elem> = Tile<U, $s>;

            fn join<U: Elem>(self, r: $r, f: fn($t, $t) -> U) -> Tile<U, $s> {
                Operand::<$t, $s>::spread(self).zip(Operand::<$t, $s>::spread(r), f)
            }
        }
    )*};
}
fit! {
    [T: Elem, S: Shape] Tile<T, S>, Tile<T, S> => T, S;
    [T: Elem, S: Shape] Tile<T, S>, T => T, S;
    [T: Elem, S: Shape] T, Tile<T, S> => T, S;
    [T: Elem, const M: i32, const N: i32] Tile<T, D2<M, N>>, Row<T, N> => T, D2<M, N>;
    [T: Elem, const M: i32, const N: i32] Tile<T, D2<M, N>>, Col<T, M> => T, D2<M, N>;
    [T: Elem, const M: i32, const N: i32] Row<T, N>, Tile<T, D2<M, N>> => T, D2<M, N>;
    [T: Elem, const M: i32, const N: i32] Col<T, M>, Tile<T, D2<M, N>> => T, D2<M, N>;
    [T: Elem, const M: i32, const N: i32] Row<T, N>, Col<T, M> => T, D2<M, N>;
    [T: Elem, const M: i32, const N: i32] Col<T, M>, Row<T, N> => T, D2<M, N>;
    [S: Shape] Tile<f16, S>, f32 => f16, S;
    [S: Shape] f32, Tile<f16, S> => f16, S;
    [S: Shape] Tile<bf16, S>, f32 => bf16, S;
    [S: Shape] f32, Tile<bf16, S> => bf16, S;
}

macro_rules! half_scalars {
    ($($h:ident)*) => {$(
        impl Fit<f32> for $h {
            type Elem = $h;
            type Of<U: Elem> = U;

            fn join<U: Elem>(self, r: f32, f: fn($h, $h) -> U) -> U {
                f(self, r.cast())
            }
        }

        impl Fit<$h> for f32 {
            type Elem = $h;
            type Of<U: Elem> = U;

            fn join<U: Elem>(self, r: $h, f: fn($h, $h) -> U) -> U {
                f(self.cast(), r)
            }
        }
    )*};
}
half_scalars! { f16 bf16 }

// The result is a parameter of its own because then rustc reports a misfit once; as a projection in the signature, it
// would report it again where it normalizes the signature.
macro_rules! binary {
    ($($(#[$doc:meta])* $name:ident $($assign:ident)?: $bound:ident $f:expr;)*) => {$(
        $(#[$doc])*
        #[must_use]
        #[inline]
        pub fn $name<L, R, O>(l: L, r: R) -> O
        where
            L: Fit<R, Of<<L as Fit<R>>::Elem> = O>,
            <L as Fit<R>>::Elem: $bound,
        {
            l.join(r, $f)
        }

        $(
        #[doc = concat!("`l = ", stringify!($name), "(l, r)`.")]
        #[inline]
        pub fn $assign<L, R>(l: &mut L, r: R)
        where
            L: Fit<R, Of<<L as Fit<R>>::Elem> = L>,
            <L as Fit<R>>::Elem: $bound,
        {
            *l = l.join(r, $f);
        }
        )?
    )*};
}
binary! {
    /// `l + r`.
    add add_assign: Num Arith::plus;
    /// `l - r`.
    sub sub_assign: Num Arith::minus;
    /// `l * r`.
    mul mul_assign: Num Arith::times;
    /// `l / r`; of integers, toward zero, and 0 if `r` is 0.
    div div_assign: Num Arith::over;
    /// `l % r`; `l` if `r` is 0.
    rem rem_assign: Int Integral::remainder;
    /// `l & r`.
    and and_assign: Bits Bitwise::and;
    /// `l | r`.
    or or_assign: Bits Bitwise::or;
    /// `l ^ r`.
    xor xor_assign: Bits Bitwise::xor;
    /// `l << r`; 0 if `r` is not within the width.
    shl shl_assign: Int Integral::shifted_left;
    /// `l >> r`; only copies of the sign, or 0, if `r` is not within the width.
    shr shr_assign: Int Integral::shifted_right;
    /// `l.max(r)`: NaN loses, −0 is less than +0.
    max: Num Arith::greater;
    /// `l.min(r)`: NaN loses, −0 is less than +0.
    min: Num Arith::lesser;
}

macro_rules! comparison {
    ($($(#[$doc:meta])* $name:ident: $bound:ident $f:expr;)*) => {$(
        $(#[$doc])*
        #[must_use]
        #[inline]
        pub fn $name<L, R, O>(l: L, r: R) -> O
        where
            L: Fit<R, Of<bool> = O>,
            <L as Fit<R>>::Elem: $bound,
        {
            l.join(r, $f)
        }
    )*};
}
comparison! {
    /// `l < r`.
    lt: Num |a, b| a < b;
    /// `l <= r`.
    le: Num |a, b| a <= b;
    /// `l > r`.
    gt: Num |a, b| a > b;
    /// `l >= r`.
    ge: Num |a, b| a >= b;
    /// `l == r`.
    eq: Comparable |a, b| a == b;
    /// `l != r`.
    ne: Comparable |a, b| a != b;
}

/// `x.clamp(lo, hi)`: `min(max(x, lo), hi)`, where Rust's methods panic on inverted bounds.
#[must_use]
#[inline]
pub fn clamp<X, A, B>(x: X, lo: A, hi: B) -> X
where
    X: Fit<A, Of<<X as Fit<A>>::Elem> = X> + Fit<B, Of<<X as Fit<B>>::Elem> = X>,
    <X as Fit<A>>::Elem: Num,
    <X as Fit<B>>::Elem: Num,
{
    min(max(x, lo), hi)
}

/// What `-x` and `x.abs()` take: scalars and tiles with arithmetic.
#[diagnostic::on_unimplemented(
    message = "`-` does not apply to `{Self}`",
    label = "needs arithmetic elements"
)]
pub trait Signed: Copy {
    #[doc(hidden)]
    fn minus_it(self) -> Self;
    #[doc(hidden)]
    fn without_sign(self) -> Self;
}

impl<T: Num> Signed for T {
    fn minus_it(self) -> Self {
        self.negated()
    }
    fn without_sign(self) -> Self {
        self.magnitude()
    }
}

impl<T: Num, S: Shape> Signed for Tile<T, S> {
    fn minus_it(self) -> Self {
        self.map(T::negated)
    }
    fn without_sign(self) -> Self {
        self.abs()
    }
}

/// What `!x` takes: scalars and tiles of `bool` and integers.
#[diagnostic::on_unimplemented(
    message = "`!` does not apply to `{Self}`",
    label = "needs `bool` or integers"
)]
pub trait Complement: Copy {
    #[doc(hidden)]
    fn flipped(self) -> Self;
}

impl<T: Bits> Complement for T {
    fn flipped(self) -> Self {
        self.complement()
    }
}

impl<T: Bits, S: Shape> Complement for Tile<T, S> {
    fn flipped(self) -> Self {
        self.map(T::complement)
    }
}

/// `-x`; integers wrap.
#[must_use]
#[inline]
pub fn neg<T: Signed>(x: T) -> T {
    x.minus_it()
}

/// `!x`.
#[must_use]
#[inline]
pub fn not<T: Complement>(x: T) -> T {
    x.flipped()
}

/// `x.abs()`; the least integer wraps to itself, where Rust's method would panic in debug builds.
#[must_use]
#[inline]
pub fn abs<T: Signed>(x: T) -> T {
    x.without_sign()
}
