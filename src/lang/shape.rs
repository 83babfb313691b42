//! Shapes as types: rustc compares them, and reports errors with the kernel's own names.
//!
//! | trait | provides | example |
//! |---|---|---|
//! | [`Shape`] | the extents | `D2<128, 64>` |
//! | [`Axis<AX>`] | the tile without an axis; a scalar for rank 1 | `D2<A, B>` without 1: `Tile<T, D1<A>>` |
//! | [`Insert<AX, N>`] | the shape with one more axis | `D2<A, B>` and 0: `D3<N, A, B>` |

use std::fmt::Debug;

use super::elem::Elem;
use super::sealed::Sealed;
use super::tile::Tile;

/// The shape of a tile: one to four extents, each at least 1.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the shape of a tile",
    note = "shapes are D1<A> to D4<A, B, C, D>"
)]
pub trait Shape: Sealed + Copy + Debug + 'static {
    /// The extents, outermost first; the last axis is contiguous.
    const DIMS: &'static [i32];

    /// The number of elements.
    const LEN: usize = product(Self::DIMS);
}

/// A shape with an axis `AX`, and the result type of a reduction along it.
#[diagnostic::on_unimplemented(
    message = "a tile of shape `{Self}` has no axis {AX}",
    label = "axis out of range",
    note = "axes count from 0, the outermost"
)]
pub trait Axis<const AX: usize>: Shape {
    /// A tile of the other axes; of rank 1, the scalar.
    type Rest<T: Elem>: Copy;

    #[doc(hidden)]
    fn rest<T: Elem>(values: Vec<T>) -> Self::Rest<T>;
}

/// A shape that can take one more axis of extent `N` at position `AX`.
#[diagnostic::on_unimplemented(
    message = "a new axis {AX} cannot be inserted into a tile of shape `{Self}`",
    label = "axis out of range",
    note = "tiles have at most four axes; a new axis has an index from 0 to the rank"
)]
pub trait Insert<const AX: usize, const N: i32>: Shape {
    /// The shape with the new axis.
    type Out: Shape;
}

/// The product of extents.
pub(crate) const fn product(dims: &[i32]) -> usize {
    let (mut n, mut i) = (1, 0);
    while i < dims.len() {
        n *= dims[i].unsigned_abs() as usize;
        i += 1;
    }
    n
}

/// The number of tiles of `b` elements that cover `a`: the quotient rounded up. It is 0 if `b == 0`, as for division.
#[must_use]
pub const fn cdiv(a: i32, b: i32) -> i32 {
    if b == 0 {
        return 0;
    }
    let (quotient, rest) = (a.wrapping_div(b), a.wrapping_rem(b));
    if rest != 0 && (rest < 0) == (b < 0) { quotient + 1 } else { quotient }
}

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident $($n:ident)*;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<$(const $n: i32),*>;

        impl<$(const $n: i32),*> Sealed for $name<$($n),*> {}

        impl<$(const $n: i32),*> Shape for $name<$($n),*> {
            const DIMS: &'static [i32] = &[$($n),*];
        }
    )*};
}
shapes! {
    /// Rank 1.
    D1 A;
    /// Rank 2: rows and columns.
    D2 A B;
    /// Rank 3.
    D3 A B C;
    /// Rank 4.
    D4 A B C D;
}

#[diagnostic::do_not_recommend]
impl<const A: i32> Axis<0> for D1<A> {
    type Rest<T: Elem> = T;

    fn rest<T: Elem>(values: Vec<T>) -> T {
        values[0]
    }
}

macro_rules! axes {
    ($($shape:ident<$($n:ident),*> - $ax:literal = $rest:ident<$($m:ident),*>;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$(const $n: i32),*> Axis<$ax> for $shape<$($n),*> {
            type Rest<T: Elem> = Tile<T, $rest<$($m),*>>;

            fn rest<T: Elem>(values: Vec<T>) -> Self::Rest<T> {
                Tile::new(values)
            }
        }
    )*};
}
axes! {
    D2<A, B> - 0 = D1<B>;
    D2<A, B> - 1 = D1<A>;
    D3<A, B, C> - 0 = D2<B, C>;
    D3<A, B, C> - 1 = D2<A, C>;
    D3<A, B, C> - 2 = D2<A, B>;
    D4<A, B, C, D> - 0 = D3<B, C, D>;
    D4<A, B, C, D> - 1 = D3<A, C, D>;
    D4<A, B, C, D> - 2 = D3<A, B, D>;
    D4<A, B, C, D> - 3 = D3<A, B, C>;
}

macro_rules! inserts {
    ($($shape:ident<$($n:ident),*> + $ax:literal = $out:ident<$($m:ident),*>;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$(const $n: i32,)* const N: i32> Insert<$ax, N> for $shape<$($n),*> {
            type Out = $out<$($m),*>;
        }
    )*};
}
inserts! {
    D1<A> + 0 = D2<N, A>;
    D1<A> + 1 = D2<A, N>;
    D2<A, B> + 0 = D3<N, A, B>;
    D2<A, B> + 1 = D3<A, N, B>;
    D2<A, B> + 2 = D3<A, B, N>;
    D3<A, B, C> + 0 = D4<N, A, B, C>;
    D3<A, B, C> + 1 = D4<A, N, B, C>;
    D3<A, B, C> + 2 = D4<A, B, N, C>;
    D3<A, B, C> + 3 = D4<A, B, C, N>;
}
