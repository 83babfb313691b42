//! Literals in device functions that are generic in their element: `x * 2.0` for any `T: Float`, `x >> 8` for any `T: Int`.
//!
//! rustc has no literals of a generic type. The macro writes a literal that is an operand of an operator, of `min`, `max`, `clamp`, `powf`, `mul_hi`
//! or of `select`, as one of these types, which fit to the elements of whatever is beside them: rounded once, from all digits of an `f64`.
//!
//! Deliberately absent: two literals as operands of each other, arguments of functions, and initial values of variables. Their type is not that
//! of a neighbour; they are cast, `2.0f32.cast::<T>()`.

use std::ops::Neg;

use super::elem::{Elem, Int, Number};
use super::elementwise::Beside;
use super::fit::Fit;
use super::float::Float;
use super::shape::{D1, Shape};
use super::tile::{Col, Row, Tile};

/// A float literal.
#[derive(Clone, Copy, Debug)]
pub struct FloatLiteral(pub f64);

/// An integer literal.
#[derive(Clone, Copy, Debug)]
pub struct IntLiteral(pub i128);

impl FloatLiteral {
    fn number(self) -> Number {
        Number::Float(self.0)
    }
}

impl IntLiteral {
    fn number(self) -> Number {
        Number::Int(self.0)
    }
}

macro_rules! literals {
    ($($literal:ident $bound:ident)*) => {$(
        impl Neg for $literal {
            type Output = Self;

            fn neg(self) -> Self {
                Self(-self.0)
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: $bound> Fit<$literal> for T {
            type Elem = T;
            type Of<U: Elem> = U;

            fn join<U: Elem>(self, r: $literal, f: fn(T, T) -> U) -> U {
                f(self, T::of_number(r.number()))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: $bound> Fit<T> for $literal {
            type Elem = T;
            type Of<U: Elem> = U;

            fn join<U: Elem>(self, r: T, f: fn(T, T) -> U) -> U {
                f(T::of_number(self.number()), r)
            }
        }

        literals! { @ $literal [T: $bound, S: Shape] Tile<T, S>, Tile<U, S>, |tile| tile, |tile| tile }
        literals! { @ $literal [T: $bound, const N: i32] Row<T, N>, Row<U, N>, |row| row.0, |tile: Tile<U, D1<N>>| Row(tile) }
        literals! { @ $literal [T: $bound, const N: i32] Col<T, N>, Col<U, N>, |col| col.0, |tile: Tile<U, D1<N>>| Col(tile) }

        literals! { & $literal [T: $bound, S: Shape] Tile<T, S> }
        literals! { & $literal [T: $bound, S: Shape] T }
        literals! { & $literal [T: $bound, S: Shape, const N: i32] Row<T, N> }
        literals! { & $literal [T: $bound, S: Shape, const N: i32] Col<T, N> }
    )*};
    // Beside a tile, a row or a column, on either side of an operator.
    (@ $literal:ident [$($g:tt)*] $of:ty, $to:ty, $open:expr, $close:expr) => {
        #[diagnostic::do_not_recommend]
        impl<$($g)*> Fit<$literal> for $of {
            type Elem = T;
            type Of<U: Elem> = $to;

            fn join<U: Elem>(self, r: $literal, f: fn(T, T) -> U) -> $to {
                let (open, close): (fn($of) -> _, fn(_) -> $to) = ($open, $close);
                let tile = open(self);
                close(tile.zip(Tile::full(T::of_number(r.number())), f))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($g)*> Fit<$of> for $literal {
            type Elem = T;
            type Of<U: Elem> = $to;

            fn join<U: Elem>(self, r: $of, f: fn(T, T) -> U) -> $to {
                let (open, close): (fn($of) -> _, fn(_) -> $to) = ($open, $close);
                let tile = open(r);
                close(Tile::full(T::of_number(self.number())).zip(tile, f))
            }
        }
    };
    // Beside another value of `select`.
    (& $literal:ident [$($g:tt)*] $of:ty) => {
        #[diagnostic::do_not_recommend]
        impl<$($g)*> Beside<$literal, S> for $of
        where
            $of: Beside<$of, S, Elem = T>,
        {
            type Elem = T;

            fn spread_both(self, b: $literal) -> (Tile<T, S>, Tile<T, S>) {
                (self.spread_both(self).0, Tile::full(T::of_number(b.number())))
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($g)*> Beside<$of, S> for $literal
        where
            $of: Beside<$of, S, Elem = T>,
        {
            type Elem = T;

            fn spread_both(self, b: $of) -> (Tile<T, S>, Tile<T, S>) {
                (Tile::full(T::of_number(self.number())), b.spread_both(b).0)
            }
        }
    };
}
literals! { FloatLiteral Float IntLiteral Int }
