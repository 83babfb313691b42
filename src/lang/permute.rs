//! Reordering of the axes of a tile.
//!
//! The order is written as constants, `x.permute::<1, 2, 0>()`, so that the result's shape is known to rustc: one
//! implementation of [`Permuted2`], [`Permuted3`] or [`Permuted4`] for each order there is.

use super::elem::Elem;
use super::shape::{D2, D3, D4, Shape};
use super::tile::Tile;

macro_rules! order {
    ($trait:ident $shape:ident [$($n:ident)*] $($axis:literal)* = $($out:ident)*) => {
        impl<$(const $n: i32),*> $trait<$($axis),*> for $shape<$($n),*> {
            type Out = $shape<$($out),*>;
        }
    };
}

macro_rules! orders {
    ($(#[$doc:meta])* $trait:ident $shape:ident [$($p:ident)*] $extents:tt: $($($axis:literal)* = $($out:ident)*;)*) => {
        $(#[$doc])*
        #[diagnostic::on_unimplemented(
            message = "these are not a permutation of the axes of a tile of shape `{Self}`",
            label = "not a permutation of its axes"
        )]
        pub trait $trait<$(const $p: usize),*>: Shape {
            /// The reordered shape.
            type Out: Shape;
        }
        $(order! { $trait $shape $extents $($axis)* = $($out)* })*
        orders! { method $trait $shape [$($p)*] $extents }
    };
    (method $trait:ident $shape:ident [$($p:ident)*] [$($n:ident)*]) => {
        impl<T: Elem, $(const $n: i32),*> Tile<T, $shape<$($n),*>> {
            /// Axis `i` of the result is the axis of the operand that the `i`-th number names.
            #[must_use]
            pub fn permute<$(const $p: usize),*>(self) -> Tile<T, <$shape<$($n),*> as $trait<$($p),*>>::Out>
            where
                $shape<$($n),*>: $trait<$($p),*>,
            {
                Tile::new(reordered(&self.values(), <$shape<$($n),*> as Shape>::DIMS, &[$($p),*]))
            }
        }
    };
}

orders! {
    /// Orders of two axes.
    Permuted2 D2 [P Q] [A B]: 0 1 = A B; 1 0 = B A;
}
orders! {
    /// Orders of three axes.
    Permuted3 D3 [P Q R] [A B C]:
    0 1 2 = A B C; 0 2 1 = A C B; 1 0 2 = B A C; 1 2 0 = B C A; 2 0 1 = C A B; 2 1 0 = C B A;
}
orders! {
    /// Orders of four axes.
    Permuted4 D4 [P Q R U] [A B C D]:
    0 1 2 3 = A B C D; 0 1 3 2 = A B D C; 0 2 1 3 = A C B D; 0 2 3 1 = A C D B; 0 3 1 2 = A D B C; 0 3 2 1 = A D C B;
    1 0 2 3 = B A C D; 1 0 3 2 = B A D C; 1 2 0 3 = B C A D; 1 2 3 0 = B C D A; 1 3 0 2 = B D A C; 1 3 2 0 = B D C A;
    2 0 1 3 = C A B D; 2 0 3 1 = C A D B; 2 1 0 3 = C B A D; 2 1 3 0 = C B D A; 2 3 0 1 = C D A B; 2 3 1 0 = C D B A;
    3 0 1 2 = D A B C; 3 0 2 1 = D A C B; 3 1 0 2 = D B A C; 3 1 2 0 = D B C A; 3 2 0 1 = D C A B; 3 2 1 0 = D C B A;
}

/// The elements of row-major `values` with extents `dims`, read in another order of the axes.
fn reordered<T: Copy>(values: &[T], dims: &[i32], order: &[usize]) -> Vec<T> {
    let extents: Vec<usize> = dims.iter().map(|d| usize::try_from(*d).unwrap_or(0)).collect();
    let mut strides = vec![1; extents.len()];
    for axis in (1..extents.len()).rev() {
        strides[axis - 1] = strides[axis] * extents[axis];
    }
    let source = |mut i: usize| {
        let mut at = 0;
        for axis in order.iter().rev() {
            at += i % extents[*axis] * strides[*axis];
            i /= extents[*axis];
        }
        values[at]
    };
    (0..values.len()).map(source).collect()
}
