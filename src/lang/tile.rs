//! `Tile<T, S>`: an immutable array of constant shape, the value that kernels compute with.
//!
//! `Copy`, so that `x * x + x` needs no `clone`: the handle is copied, not the elements. Elements are in row-major order.

use std::fmt;
use std::marker::PhantomData;
use std::rc::Rc;

use half::{bf16, f16};

use super::arena;
use super::elem::{Cast, Elem, Num, Number};
use super::sealed::Sealed;
use super::shape::{D1, D2, Shape};

/// A value of shape `S` with elements `T`.
pub struct Tile<T, S> {
    handle: arena::Handle,
    /// A tile belongs to one program, hence to one thread.
    of: PhantomData<*const (T, S)>,
}

impl<T, S> Clone for Tile<T, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, S> Copy for Tile<T, S> {}

impl<T, S> Sealed for Tile<T, S> {}

/// A rank-1 tile as the row `[1, N]`: with a tile of shape `[M, N]` it is repeated in every row.
pub struct Row<T, const N: i32>(pub(crate) Tile<T, D1<N>>);

/// A rank-1 tile as the column `[M, 1]`: with a tile of shape `[M, N]` it is repeated in every column.
pub struct Col<T, const M: i32>(pub(crate) Tile<T, D1<M>>);

macro_rules! copy {
    ($($name:ident)*) => {$(
        impl<T, const N: i32> Clone for $name<T, N> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T, const N: i32> Copy for $name<T, N> {}

        impl<T: Elem, const N: i32> fmt::Debug for $name<T, N> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.0).finish()
            }
        }
    )*};
}
copy! { Row Col }

impl<T: Elem, S: Shape> Tile<T, S> {
    /// A tile of these elements, in row-major order.
    pub(crate) fn new(values: Vec<T>) -> Self {
        assert_eq!(values.len(), S::LEN, "a tile has as many elements as its shape says");
        Tile { handle: arena::keep(values), of: PhantomData }
    }

    pub(crate) fn values(self) -> Rc<Vec<T>> {
        arena::values(self.handle)
    }

    /// The elements, in row-major order: for code outside kernels.
    #[must_use]
    pub fn to_vec(self) -> Vec<T> {
        self.values().to_vec()
    }

    /// Every element is `value`.
    #[must_use]
    pub fn full(value: T) -> Self {
        Self::new(vec![value; S::LEN])
    }

    /// Every element is zero (`false`).
    #[must_use]
    pub fn zeros() -> Self {
        Self::full(T::default())
    }

    /// Every element is one.
    #[must_use]
    pub fn ones() -> Self
    where
        T: Num,
    {
        Self::full(T::of_number(Number::Int(1)))
    }

    /// Applies `f` to every element.
    #[must_use]
    pub fn map<U: Elem>(self, f: impl FnMut(T) -> U) -> Tile<U, S> {
        Tile::new(self.values().iter().copied().map(f).collect())
    }

    pub(crate) fn zip<U: Elem>(self, other: Self, mut f: impl FnMut(T, T) -> U) -> Tile<U, S> {
        Tile::new(self.values().iter().zip(other.values().iter()).map(|(a, b)| f(*a, *b)).collect())
    }

    /// Every element as the nearest `U`: see "Casts" in `docs/semantics.md`.
    #[must_use]
    pub fn cast<U: Elem>(self) -> Tile<U, S> {
        self.map(Cast::cast)
    }

    /// The same bits as another element type of the same width.
    #[must_use]
    pub fn bitcast<U: Elem>(self) -> Tile<U, S> {
        self.map(Cast::bitcast)
    }
}

/// `0, 1, …, N − 1`.
#[must_use]
pub fn iota<const N: i32>() -> Tile<i32, D1<N>> {
    Tile::new((0..N).collect())
}

/// A tile of rank 1, which can become a row or a column.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot become a row or column: only tiles of rank 1 can",
    label = "not of rank 1",
    note = "`.t()` exchanges rows and columns of a tile of rank 2; a reduction such as `.reduce_max::<1>()` makes a vector of it"
)]
pub trait Line {
    #[doc(hidden)]
    type Row;
    #[doc(hidden)]
    type Col;

    #[doc(hidden)]
    fn into_row(self) -> Self::Row;
    #[doc(hidden)]
    fn into_col(self) -> Self::Col;
}

impl<T: Elem, const N: i32> Line for Tile<T, D1<N>> {
    type Row = Row<T, N>;
    type Col = Col<T, N>;

    fn into_row(self) -> Row<T, N> {
        Row(self)
    }

    fn into_col(self) -> Col<T, N> {
        Col(self)
    }
}

impl<T: Elem, S: Shape> Tile<T, S> {
    /// The tile of rank 1 as the row `[1, N]`.
    #[must_use]
    pub fn row(self) -> <Self as Line>::Row
    where
        Self: Line,
    {
        self.into_row()
    }

    /// The tile of rank 1 as the column `[N, 1]`.
    #[must_use]
    pub fn col(self) -> <Self as Line>::Col
    where
        Self: Line,
    {
        self.into_col()
    }
}

/// An operand that can be combined with a tile of shape `S` and element type `T`: such a tile, a row, a column, or a scalar.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be combined with a tile of shape `{S}` and element type `{T}`",
    label = "element types or shapes differ",
    note = "use `.cast::<..>()` to make the element types equal, and `.row()`, `.col()` or `.broadcast::<AXIS, N>()` to make the shapes equal"
)]
pub trait Operand<T, S>: Copy {
    #[doc(hidden)]
    fn spread(self) -> Tile<T, S>;
}

impl<T: Elem, S: Shape> Operand<T, S> for Tile<T, S> {
    fn spread(self) -> Self {
        self
    }
}

impl<T: Elem, S: Shape> Operand<T, S> for T {
    fn spread(self) -> Tile<T, S> {
        Tile::full(self)
    }
}

/// An `f32` scalar with an `f16` or `bf16` tile: the scalar is rounded first.
macro_rules! half_operands {
    ($($t:ident)*) => {$(
        impl<S: Shape> Operand<$t, S> for f32 {
            fn spread(self) -> Tile<$t, S> {
                Tile::full(self.cast())
            }
        }
    )*};
}
half_operands! { f16 bf16 }

impl<T: Elem, const M: i32, const N: i32> Operand<T, D2<M, N>> for Row<T, N> {
    fn spread(self) -> Tile<T, D2<M, N>> {
        self.0.broadcast::<0, M>()
    }
}

impl<T: Elem, const M: i32, const N: i32> Operand<T, D2<M, N>> for Col<T, M> {
    fn spread(self) -> Tile<T, D2<M, N>> {
        self.0.broadcast::<1, N>()
    }
}

impl<T: Elem, S: Shape> fmt::Debug for Tile<T, S> {
    /// Formats the tile as nested lists.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        nested(f, S::DIMS, &self.values(), |x, f| fmt::Debug::fmt(x, f))
    }
}

impl<T: Elem + fmt::Display, S: Shape> fmt::Display for Tile<T, S> {
    /// Formats the tile as nested lists.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        nested(f, S::DIMS, &self.values(), |x, f| fmt::Display::fmt(x, f))
    }
}

fn nested<T>(
    f: &mut fmt::Formatter<'_>,
    dims: &[i32],
    values: &[T],
    one: fn(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    f.write_str("[")?;
    let (n, rest) = (dims[0].unsigned_abs() as usize, &dims[1..]);
    let each = values.len() / n.max(1);
    for (i, part) in values.chunks(each.max(1)).enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        if rest.is_empty() { one(&part[0], f)? } else { nested(f, rest, part, one)? }
    }
    f.write_str("]")
}
