//! What the operators of a kernel become: `a + b` is `ops::add(a, b)`, for scalars too.
//!
//! Comparisons of tiles give masks, arithmetic on scalars has one meaning on every device, and because [`Fit`] is our own
//! trait, so are the words when two operands do not fit together.

use super::arith::{Arith, Bitwise, Integral};
use super::elem::{Bits, Comparable, Int, Num};
pub use super::fit::Fit;
use super::shape::Shape;
use super::tile::{Col, Row, Tile};

// Written out, not made by a macro, because rustc shows these signatures to everyone whose operands do not fit. The result
// is a parameter of its own because then rustc reports a misfit once; as a projection in the signature, it would report it
// again where it normalizes the signature.

/// `l + r`.
#[must_use]
pub fn add<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<<L as Fit<R>>::Elem> = O>,
    L::Elem: Num,
{
    l.join(r, Arith::plus)
}

/// `l - r`.
#[must_use]
pub fn sub<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<<L as Fit<R>>::Elem> = O>,
    L::Elem: Num,
{
    l.join(r, Arith::minus)
}

/// `l * r`.
#[must_use]
pub fn mul<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<<L as Fit<R>>::Elem> = O>,
    L::Elem: Num,
{
    l.join(r, Arith::times)
}

/// `l / r`; of integers, toward zero, and 0 if `r` is 0.
#[must_use]
pub fn div<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<<L as Fit<R>>::Elem> = O>,
    L::Elem: Num,
{
    l.join(r, Arith::over)
}

/// `l % r`; `l` if `r` is 0.
#[must_use]
pub fn rem<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<<L as Fit<R>>::Elem> = O>,
    L::Elem: Int,
{
    l.join(r, Integral::remainder)
}

/// `l & r`.
#[must_use]
pub fn and<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<<L as Fit<R>>::Elem> = O>,
    L::Elem: Bits,
{
    l.join(r, Bitwise::and)
}

/// `l | r`.
#[must_use]
pub fn or<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<<L as Fit<R>>::Elem> = O>,
    L::Elem: Bits,
{
    l.join(r, Bitwise::or)
}

/// `l ^ r`.
#[must_use]
pub fn xor<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<<L as Fit<R>>::Elem> = O>,
    L::Elem: Bits,
{
    l.join(r, Bitwise::xor)
}

/// `l << r`; 0 if `r` is not within the width.
#[must_use]
pub fn shl<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<<L as Fit<R>>::Elem> = O>,
    L::Elem: Int,
{
    l.join(r, Integral::shifted_left)
}

/// `l >> r`; only copies of the sign, or 0, if `r` is not within the width.
#[must_use]
pub fn shr<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<<L as Fit<R>>::Elem> = O>,
    L::Elem: Int,
{
    l.join(r, Integral::shifted_right)
}

/// `l.max(r)`: NaN loses, −0 is less than +0.
#[must_use]
pub fn max<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<<L as Fit<R>>::Elem> = O>,
    L::Elem: Num,
{
    l.join(r, Arith::greater)
}

/// `l.min(r)`: NaN loses, −0 is less than +0.
#[must_use]
pub fn min<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<<L as Fit<R>>::Elem> = O>,
    L::Elem: Num,
{
    l.join(r, Arith::lesser)
}

/// `l < r`.
#[must_use]
pub fn lt<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<bool> = O>,
    L::Elem: Num,
{
    l.join(r, |a, b| a < b)
}

/// `l <= r`.
#[must_use]
pub fn le<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<bool> = O>,
    L::Elem: Num,
{
    l.join(r, |a, b| a <= b)
}

/// `l > r`.
#[must_use]
pub fn gt<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<bool> = O>,
    L::Elem: Num,
{
    l.join(r, |a, b| a > b)
}

/// `l >= r`.
#[must_use]
pub fn ge<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<bool> = O>,
    L::Elem: Num,
{
    l.join(r, |a, b| a >= b)
}

/// `l == r`.
#[must_use]
pub fn eq<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<bool> = O>,
    L::Elem: Comparable,
{
    l.join(r, |a, b| a == b)
}

/// `l != r`.
#[must_use]
pub fn ne<L, R, O>(l: L, r: R) -> O
where
    L: Fit<R, Of<bool> = O>,
    L::Elem: Comparable,
{
    l.join(r, |a, b| a != b)
}

macro_rules! assigning {
    ($($op:ident $name:ident $bound:ident;)*) => {$(
        #[doc = concat!("`l = ", stringify!($op), "(l, r)`.")]
        pub fn $name<L, R>(l: &mut L, r: R)
        where
            L: Fit<R, Of<<L as Fit<R>>::Elem> = L>,
            L::Elem: $bound,
        {
            *l = $op(*l, r);
        }
    )*};
}
assigning! {
    add add_assign Num;
    sub sub_assign Num;
    mul mul_assign Num;
    div div_assign Num;
    rem rem_assign Int;
    and and_assign Bits;
    or or_assign Bits;
    xor xor_assign Bits;
    shl shl_assign Int;
    shr shr_assign Int;
}

/// `x.clamp(lo, hi)`: `min(max(x, lo), hi)`, where Rust's methods panic on inverted bounds.
#[must_use]
pub fn clamp<X, A, B>(x: X, lo: A, hi: B) -> X
where
    X: Fit<A, Of<<X as Fit<A>>::Elem> = X> + Fit<B, Of<<X as Fit<B>>::Elem> = X>,
    <X as Fit<A>>::Elem: Num,
    <X as Fit<B>>::Elem: Num,
{
    min(max(x, lo), hi)
}

/// What `-x` and `x.abs()` take: scalars, tiles, rows and columns with arithmetic.
#[diagnostic::on_unimplemented(message = "`-` does not apply to `{Self}`", label = "needs arithmetic elements")]
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
#[diagnostic::on_unimplemented(message = "`!` does not apply to `{Self}`", label = "needs `bool` or integers")]
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

macro_rules! lines {
    ($($line:ident)*) => {$(
        impl<T: Num, const N: i32> Signed for $line<T, N> {
            fn minus_it(self) -> Self {
                $line(self.0.minus_it())
            }
            fn without_sign(self) -> Self {
                $line(self.0.without_sign())
            }
        }

        impl<T: Bits, const N: i32> Complement for $line<T, N> {
            fn flipped(self) -> Self {
                $line(self.0.flipped())
            }
        }
    )*};
}
lines! { Row Col }

/// `-x`; integers wrap.
#[must_use]
pub fn neg<T: Signed>(x: T) -> T {
    x.minus_it()
}

/// `!x`.
#[must_use]
pub fn not<T: Complement>(x: T) -> T {
    x.flipped()
}

/// `x.abs()`; the least integer wraps to itself, where Rust's method would panic in debug builds.
#[must_use]
pub fn abs<T: Signed>(x: T) -> T {
    x.without_sign()
}
