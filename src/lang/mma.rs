//! Matrix products: `mma(a, b, c)` is `a · b + c`, of rank 2 and, batch by batch, of rank 3.

use half::{bf16, f16};

use super::elem::Elem;
use super::float::wide;
use super::shape::{D2, D3, Shape, product};
use super::storage::{e4m3, e5m2, tf32};
use super::tile::Tile;

/// `c[m, n] + Σ_k a[m, k] · b[k, n]`; of rank 3, for every batch. Products are exact, sums accumulate in `C`'s type or
/// better, `i32` wraps.
#[must_use]
pub fn mma<A, B, C, SA, SB, SC>(a: Tile<A, SA>, b: Tile<B, SB>, c: Tile<C, SC>) -> Tile<C, SC>
where
    A: MmaTypes<B, C>,
    B: Elem,
    C: Elem,
    SA: MmaShapes<SB, SC>,
    SB: Shape,
    SC: Shape,
{
    let (a, b, c) = (a.values(), b.values(), c.values());
    let [_, m, n, k] = SA::MNK.map(|x| product(&[x]));
    let element = |i: usize| {
        let (batch, row, col) = (i / (m * n), i / n % m, i % n);
        let row = a[(batch * m + row) * k..][..k].iter();
        let col = b[batch * k * n + col..].iter().step_by(n.max(1));
        A::dot(row.copied().zip(col.copied()), c[i])
    };
    Tile::new((0..SC::LEN).map(element).collect())
}

/// Shapes `[M, K]`, `[K, N]`, `[M, N]`, or all three with one more batch axis in front.
#[diagnostic::on_unimplemented(
    message = "`mma` cannot multiply `{Self}` by `{SB}` into `{SC}`",
    label = "these shapes do not fit together",
    note = "`mma(a, b, c)` takes `a` of [M, K], `b` of [K, N] and `c` of [M, N]; `.t()` transposes an operand"
)]
pub trait MmaShapes<SB, SC>: Shape {
    /// Batches, M, N, K.
    #[doc(hidden)]
    const MNK: [i32; 4];
}

impl<const M: i32, const N: i32, const K: i32> MmaShapes<D2<K, N>, D2<M, N>> for D2<M, K> {
    const MNK: [i32; 4] = [1, M, N, K];
}

impl<const Z: i32, const M: i32, const N: i32, const K: i32> MmaShapes<D3<Z, K, N>, D3<Z, M, N>>
    for D3<Z, M, K>
{
    const MNK: [i32; 4] = [Z, M, N, K];
}

/// The triples of element types that `mma` takes.
#[diagnostic::on_unimplemented(
    message = "`mma` does not take the element types `({Self}, {B}, {C})`",
    label = "not a legal (a, b, accumulator) triple",
    note = "legal: (f16, f16, f32), (bf16, bf16, f32), (tf32, tf32, f32), (f32, f32, f32), \
            (e4m3|e5m2, e4m3|e5m2, f32), (i8, i8, i32), (f64, f64, f64)"
)]
pub trait MmaTypes<B, C>: Elem {
    #[doc(hidden)]
    fn dot(pairs: impl Iterator<Item = (Self, B)>, c: C) -> C;
}

macro_rules! floats {
    ($($a:ident $b:ident)*) => {$(
        impl MmaTypes<$b, f32> for $a {
            #[expect(clippy::cast_possible_truncation, reason = "the one rounding of the sum")]
            fn dot(pairs: impl Iterator<Item = ($a, $b)>, c: f32) -> f32 {
                pairs.fold(f64::from(c), |sum, (a, b)| sum + wide(a) * wide(b)) as f32
            }
        }
    )*};
}
floats! { f16 f16 bf16 bf16 tf32 tf32 f32 f32 e4m3 e4m3 e4m3 e5m2 e5m2 e4m3 e5m2 e5m2 }

impl MmaTypes<f64, f64> for f64 {
    fn dot(pairs: impl Iterator<Item = (f64, f64)>, c: f64) -> f64 {
        pairs.fold(c, |sum, (a, b)| a.mul_add(b, sum))
    }
}

impl MmaTypes<i8, i32> for i8 {
    fn dot(pairs: impl Iterator<Item = (i8, i8)>, c: i32) -> i32 {
        pairs.fold(c, |sum, (a, b)| sum.wrapping_add(i32::from(a) * i32::from(b)))
    }
}
