//! The operands that can be combined, and the shape of the result.
//!
//! | left | right | result |
//! |---|---|---|
//! | scalar `T` | scalar `T` | scalar |
//! | `Tile<T, S>` | `Tile<T, S>`, scalar `T` | tile of shape `S`; also mirrored |
//! | `Tile<T, D2<M, N>>` | `Row<T, N>`, `Col<T, M>` | tile `D2<M, N>`; also mirrored |
//! | `Col<T, M>` | `Row<T, N>` | tile `D2<M, N>`; also mirrored |
//! | `Row<T, N>` | `Row<T, N>`, scalar `T` | row; also mirrored; likewise columns |
//! | `Tile<f16, S>`, `Row<f16, N>`, `Col<f16, M>`, `f16`, likewise `bf16` | scalar `f32`, rounded first | as with a scalar `f16`; also mirrored |

use half::{bf16, f16};

use super::elem::{Cast, Elem};
use super::shape::{D1, D2, Shape};
use super::tile::{Col, Operand, Row, Tile};

/// Two operands of one element type whose shapes agree.
#[diagnostic::on_unimplemented(
    message = "`{Self}` and `{R}` do not fit together",
    label = "element types or shapes differ",
    note = "use `.cast::<..>()` to make the element types equal (a literal is `2.0` for floats, `2` for integers, and `2.0f32.cast::<T>()` where a device function is generic in its element), and `.row()`, `.col()` or `.broadcast::<AXIS, N>()` to make the shapes equal"
)]
pub trait Fit<R>: Copy {
    /// The element type of both.
    type Elem: Elem;
    /// The result with elements `U`.
    type Of<U: Elem>: Copy;

    #[doc(hidden)]
    fn join<U: Elem>(self, r: R, f: fn(Self::Elem, Self::Elem) -> U) -> Self::Of<U>;
}

#[diagnostic::do_not_recommend]
impl<T: Elem> Fit<T> for T {
    type Elem = T;
    type Of<U: Elem> = U;

    fn join<U: Elem>(self, r: T, f: fn(T, T) -> U) -> U {
        f(self, r)
    }
}

/// Operands that are broadcast to a tile of one shape.
macro_rules! fit {
    ($([$($g:tt)*] $l:ty, $r:ty => $t:ty, $s:ty;)*) => {$(
        #[diagnostic::do_not_recommend]
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

/// Operands of which one is a row or column and the other the same or a scalar: a row or column again.
macro_rules! fit_lines {
    ($($line:ident)*) => {$(
        fit_lines! { $line: [T: Elem, const N: i32] $line<T, N>, $line<T, N> => T; |l, r| (l.0, r.0) }
        fit_lines! { $line: [T: Elem, const N: i32] $line<T, N>, T => T; |l, r| (l.0, r.spread()) }
        fit_lines! { $line: [T: Elem, const N: i32] T, $line<T, N> => T; |l, r| (l.spread(), r.0) }
        fit_lines! { $line: [const N: i32] $line<f16, N>, f32 => f16; |l, r| (l.0, r.spread()) }
        fit_lines! { $line: [const N: i32] f32, $line<f16, N> => f16; |l, r| (l.spread(), r.0) }
        fit_lines! { $line: [const N: i32] $line<bf16, N>, f32 => bf16; |l, r| (l.0, r.spread()) }
        fit_lines! { $line: [const N: i32] f32, $line<bf16, N> => bf16; |l, r| (l.spread(), r.0) }
    )*};
    ($line:ident: [$($g:tt)*] $l:ty, $r:ty => $t:ty; $along:expr) => {
        #[diagnostic::do_not_recommend]
        impl<$($g)*> Fit<$r> for $l {
            type Elem = $t;
            type Of<U: Elem> = $line<U, N>;

            fn join<U: Elem>(self, r: $r, f: fn($t, $t) -> U) -> $line<U, N> {
                let along: fn($l, $r) -> (Tile<$t, D1<N>>, Tile<$t, D1<N>>) = $along;
                let (l, r) = along(self, r);
                $line(l.zip(r, f))
            }
        }
    };
}
fit_lines! { Row Col }

macro_rules! half_scalars {
    ($($h:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl Fit<f32> for $h {
            type Elem = $h;
            type Of<U: Elem> = U;

            fn join<U: Elem>(self, r: f32, f: fn($h, $h) -> U) -> U {
                f(self, r.cast())
            }
        }

        #[diagnostic::do_not_recommend]
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
