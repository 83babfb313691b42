//! Matrix multiply-accumulate: `mma(a, b, c)` is `a · b + c`, for tiles of rank 2, and for batches, of rank 3.

use half::{bf16, f16};

use super::elem::{Cast, Elem};
use super::pipeline::SmemRef;
use super::sealed::Sealed;
use super::shape::{D2, D3, Shape, product};
use super::storage::{e4m3, e5m2, tf32};
use super::tile::Tile;

/// `c[m, n] + Σ_k a[m, k] · b[k, n]`; of rank 3, for every batch. Products are exact, sums accumulate in `C`'s type or
/// better, `i32` wraps. The operands `a` and `b` are tiles in registers or in shared memory.
#[must_use]
pub fn mma<A, B, C>(a: A, b: B, c: C) -> Tile<C::Elem, C::Shape>
where
    A: MmaOperand,
    B: MmaOperand,
    C: MmaOperand + MmaAccumulator<<A::Shape as MmaShapes<B::Shape>>::Product>,
    A::Elem: MmaTypes<B::Elem, C::Elem>,
    A::Shape: MmaShapes<B::Shape>,
{
    product_of(a.registers(), b.registers(), c.registers())
}

/// An operand of `mma`: a tile in registers or in shared memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an operand of `mma`",
    label = "not a tile",
    note = "operands are tiles in registers, `Tile`, or in a stage, as `stage.a()`"
)]
pub trait MmaOperand {
    /// The element type of the operand.
    type Elem: Elem;
    /// The shape of the operand.
    type Shape: Shape;

    #[doc(hidden)]
    fn registers(self) -> Tile<Self::Elem, Self::Shape>;
}

impl<T: Elem, S: Shape> MmaOperand for Tile<T, S> {
    type Elem = T;
    type Shape = S;

    fn registers(self) -> Self {
        self
    }
}

impl<T: Elem, S: Shape> MmaOperand for SmemRef<'_, T, S> {
    type Elem = T;
    type Shape = S;

    fn registers(self) -> Tile<T, S> {
        self.load()
    }
}

fn product_of<A, B, C, SA, SB, SC>(a: Tile<A, SA>, b: Tile<B, SB>, c: Tile<C, SC>) -> Tile<C, SC>
where
    A: MmaTypes<B, C>,
    B: Elem,
    C: Elem,
    SA: MmaShapes<SB>,
    SB: Shape,
    SC: Shape,
{
    let (a, b): (Vec<_>, Vec<_>) =
        (a.values().iter().map(|x| x.left()).collect(), b.values().iter().map(|x| A::right(*x)).collect());
    let mut sums: Vec<_> = c.values().iter().map(|x| A::start(*x)).collect();
    let [_, m, n, k] = SA::MNK.map(|x| product(&[x]));
    for (row, sums) in sums.chunks_mut(n).enumerate() {
        let b = &b[row / m * k * n..];
        for (x, b) in a[row * k..][..k].iter().zip(b.chunks(n)) {
            for (sum, y) in sums.iter_mut().zip(b) {
                *sum = A::step(*sum, *x, *y);
            }
        }
    }
    Tile::new(sums.into_iter().map(A::end).collect())
}

/// Shapes `[M, K]` and `[K, N]`, or both with one more batch axis in front.
#[diagnostic::on_unimplemented(
    message = "`mma` cannot multiply a tile of `{Self}` by one of `{SB}`",
    label = "these shapes do not fit together",
    note = "`mma(a, b, c)` takes `a` of [M, K], `b` of [K, N] and `c` of [M, N]; `.t()` transposes an operand"
)]
pub trait MmaShapes<SB>: Shape {
    /// The shape of the product.
    type Product: Shape;
    /// The extents: batches, M, N, K.
    #[doc(hidden)]
    const MNK: [i32; 4];
}

#[diagnostic::do_not_recommend]
impl<const M: i32, const N: i32, const K: i32> MmaShapes<D2<K, N>> for D2<M, K> {
    type Product = D2<M, N>;
    const MNK: [i32; 4] = [1, M, N, K];
}

#[diagnostic::do_not_recommend]
impl<const Z: i32, const M: i32, const N: i32, const K: i32> MmaShapes<D3<Z, K, N>> for D3<Z, M, K> {
    type Product = D3<Z, M, N>;
    const MNK: [i32; 4] = [Z, M, N, K];
}

/// An accumulator to which a product of shape `P` is added: a tile of that shape. It is a trait of the whole tile, so that rustc does not
/// infer the shape of an accumulator that is written, and reports another shape as one mistake.
#[diagnostic::on_unimplemented(
    message = "`mma` cannot add a product of shape `{P}` to the accumulator `{Self}`",
    label = "the accumulator does not have the shape of the product",
    note = "the accumulator has the rows of `a` and the columns of `b`: give it the shape `{P}`"
)]
pub trait MmaAccumulator<P>: Sealed {}

#[diagnostic::do_not_recommend]
impl<T: Elem, S: Shape> MmaAccumulator<S> for Tile<T, S> {}

#[diagnostic::do_not_recommend]
impl<T: Elem, S: Shape> MmaAccumulator<Nothing> for Tile<T, S> {}

/// A type that no operand has. Because it has impls too, rustc does not infer a shape or the type of the accumulator from the only legal
/// combination, so that a mistake is reported as an illegal combination, with TITAN's message, and not as one wrong argument.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub enum Nothing {}

#[diagnostic::do_not_recommend]
impl<const M: i32, const K: i32> MmaShapes<Nothing> for D2<M, K> {
    type Product = Self;
    const MNK: [i32; 4] = [0; 4];
}

#[diagnostic::do_not_recommend]
impl<const Z: i32, const M: i32, const K: i32> MmaShapes<Nothing> for D3<Z, M, K> {
    type Product = Self;
    const MNK: [i32; 4] = [0; 4];
}

macro_rules! nothing {
    ($($t:ident)*) => {$(
        #[diagnostic::do_not_recommend]
        impl MmaTypes<$t, Nothing> for $t {
            type Sum = Option<Nothing>;

            fn left(self) -> Self::Sum {
                None
            }
            fn right(_: $t) -> Self::Sum {
                None
            }
            fn start(c: Nothing) -> Self::Sum {
                match c {}
            }
            fn step(sum: Self::Sum, _: Self::Sum, _: Self::Sum) -> Self::Sum {
                sum
            }
            fn end(_: Self::Sum) -> Nothing {
                unreachable!("there is no accumulator to start with")
            }
        }
    )*};
}
nothing! { f16 bf16 tf32 f32 e4m3 e5m2 i8 f64 }

/// The triples of element types that `mma` takes.
#[diagnostic::on_unimplemented(
    message = "`mma` does not take the element types `({Self}, {B}, {C})`",
    label = "not a legal (a, b, accumulator) triple",
    note = "the legal triples are (f16, f16, f32), (bf16, bf16, f32), (tf32, tf32, f32), (f32, f32, f32), \
            (e4m3|e5m2, e4m3|e5m2, f32), (i8, i8, i32), (f64, f64, f64)"
)]
pub trait MmaTypes<B, C>: Elem {
    /// The type in which sums are computed: at least as precise as `C`.
    #[doc(hidden)]
    type Sum: Copy;

    #[doc(hidden)]
    fn left(self) -> Self::Sum;
    #[doc(hidden)]
    fn right(b: B) -> Self::Sum;
    #[doc(hidden)]
    fn start(c: C) -> Self::Sum;
    /// `sum + a * b`, the product exact.
    #[doc(hidden)]
    fn step(sum: Self::Sum, a: Self::Sum, b: Self::Sum) -> Self::Sum;
    #[doc(hidden)]
    fn end(sum: Self::Sum) -> C;
}

macro_rules! triples {
    ($($a:ident $b:ident $c:ident in $sum:ident: $step:expr;)*) => {$(
        #[diagnostic::do_not_recommend]
        impl MmaTypes<$b, $c> for $a {
            type Sum = $sum;

            fn left(self) -> $sum {
                self.cast()
            }
            fn right(b: $b) -> $sum {
                b.cast()
            }
            fn start(c: $c) -> $sum {
                c.cast()
            }
            fn step(sum: $sum, a: $sum, b: $sum) -> $sum {
                $step(sum, a, b)
            }
            fn end(sum: $sum) -> $c {
                sum.cast()
            }
        }
    )*};
}
triples! {
    f16 f16 f32 in f64: exact_in_f64;
    bf16 bf16 f32 in f64: exact_in_f64;
    tf32 tf32 f32 in f64: exact_in_f64;
    f32 f32 f32 in f64: exact_in_f64;
    e4m3 e4m3 f32 in f64: exact_in_f64;
    e4m3 e5m2 f32 in f64: exact_in_f64;
    e5m2 e4m3 f32 in f64: exact_in_f64;
    e5m2 e5m2 f32 in f64: exact_in_f64;
    i8 i8 i32 in i32: |sum: i32, a: i32, b: i32| sum.wrapping_add(a * b);
    f64 f64 f64 in f64: |sum: f64, a: f64, b: f64| titan_core::num::fma(a, b, sum);
}

/// The product of two `f32` has at most 48 bits.
fn exact_in_f64(sum: f64, a: f64, b: f64) -> f64 {
    sum + a * b
}
