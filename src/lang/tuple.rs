//! Reductions and scans of tuples of tiles by a function, in a fixed order that `docs/semantics.md` defines.

use super::elem::Elem;
use super::shape::Axis;
use super::tile::Tile;

/// A tuple of two to four tiles of one shape, which has an axis `AX`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple of two to four tiles of one shape with an axis {AX}",
    label = "cannot be reduced or scanned by a function alone",
    note = "one tile has a neutral element: `x.reduce::<AX>(init, |a, b| ..)`"
)]
pub trait Tuple<const AX: usize>: Sized {
    /// One element of each tile.
    type Items: Copy;
    /// The tuple without the axis.
    type Rest;
    #[doc(hidden)]
    fn lines(self, f: impl Fn(Vec<Self::Items>) -> Vec<Self::Items>) -> Self;
    #[doc(hidden)]
    fn rest(self, f: impl Fn(Vec<Self::Items>) -> Self::Items) -> Self::Rest;
}

/// The positions of the elements of each line along an axis, lines in order.
fn lines(dims: &[i32], axis: usize) -> Vec<Vec<usize>> {
    let product = |dims: &[i32]| super::shape::product(dims);
    let (n, inner, outer) = (product(&dims[axis..=axis]), product(&dims[axis + 1..]), product(&dims[..axis]));
    let line = |o: usize, i: usize| (0..n).map(|k| (o * n + k) * inner + i).collect();
    (0..outer).flat_map(|o| (0..inner).map(move |i| line(o, i))).collect()
}

macro_rules! tuples {
    ($($($t:ident $tile:ident $n:tt),*;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl<$($t: Elem,)* S: Axis<AX>, const AX: usize> Tuple<AX> for ($(Tile<$t, S>,)*) {
            type Items = ($($t,)*);
            type Rest = ($(S::Rest<$t>,)*);

            fn lines(self, f: impl Fn(Vec<Self::Items>) -> Vec<Self::Items>) -> Self {
                $(let $tile = self.$n.values(); let mut $tile = ($tile.to_vec(), $tile);)*
                for line in lines(S::DIMS, AX) {
                    let items = line.iter().map(|i| ($($tile.1[*i],)*)).collect();
                    for (i, item) in line.into_iter().zip(f(items)) {
                        $($tile.0[i] = item.$n;)*
                    }
                }
                ($(Tile::new($tile.0),)*)
            }

            fn rest(self, f: impl Fn(Vec<Self::Items>) -> Self::Items) -> Self::Rest {
                $(let $tile = self.$n.values();)*
                let one = |line: Vec<usize>| f(line.iter().map(|i| ($($tile[*i],)*)).collect());
                let all: Vec<Self::Items> = lines(S::DIMS, AX).into_iter().map(one).collect();
                ($(S::rest(all.iter().map(|item| item.$n).collect()),)*)
            }
        }
    )*};
}
tuples! {
    A a 0, B b 1;
    A a 0, B b 1, C c 2;
    A a 0, B b 1, C c 2, D d 3;
}

/// In kernels `x.reduce::<AX>(f)`: pairs of neighbours are combined until one is left; the last one passes if it has no neighbour.
#[must_use]
pub fn reduce_tuple<const AX: usize, X: Tuple<AX>>(x: X, f: impl Fn(X::Items, X::Items) -> X::Items) -> X::Rest {
    x.rest(|mut items| {
        while items.len() > 1 {
            items = items.chunks(2).map(|pair| if let [a, b] = pair { f(*a, *b) } else { pair[0] }).collect();
        }
        items[0]
    })
}

/// In kernels `x.scan::<AX>(f)`: for d = 1, 2, 4, …, each element i from d on becomes `f(element i − d, element i)`.
#[must_use]
pub fn scan_tuple<const AX: usize, X: Tuple<AX>>(x: X, f: impl Fn(X::Items, X::Items) -> X::Items) -> X {
    x.lines(|mut items| {
        let mut by = 1;
        while by < items.len() {
            items = (0..items.len()).map(|i| if i < by { items[i] } else { f(items[i - by], items[i]) }).collect();
            by *= 2;
        }
        items
    })
}
