//! Sums, sums of products and extremes of rows of `f32`, in explicit vectors: the compiler does not vectorize them
//! reliably, and the speed of norms and softmaxes depends on them.

use super::number::Number;
use super::reduce::{Extents, RowFold};
use crate::simd::Isa;
use pulp::{Simd, WithSimd};

/// The reduction of a row.
trait RowOp {
    /// The initial value of the accumulator.
    const START: f32;
    /// Adds a vector to the accumulator; `b` is the second operand, if there is one.
    fn step<S: Simd>(simd: S, acc: S::f32s, a: S::f32s, b: S::f32s) -> S::f32s;
    /// Combines two accumulators.
    fn merge<S: Simd>(simd: S, x: S::f32s, y: S::f32s) -> S::f32s;
    /// Adds one element to the accumulator.
    fn step_one(acc: f32, a: f32, b: f32) -> f32;
    /// Combines the elements of an accumulator.
    fn fold<S: Simd>(simd: S, acc: S::f32s) -> f32;
    /// Corrects results for which the steps are wrong.
    fn finish(acc: f32, row: &[f32]) -> f32;
}

struct Sum;
struct Dot;
struct Max;
struct Min;

macro_rules! sums {
    ($($name:ident: $a:ident $b:ident $simd:ident => $term:expr, $one:expr;)*) => {$(
        impl RowOp for $name {
            // The neutral element: `0.0 + -0.0` is `0.0`.
            const START: f32 = -0.0;
            #[inline(always)]
            fn step<S: Simd>($simd: S, acc: S::f32s, $a: S::f32s, $b: S::f32s) -> S::f32s {
                $simd.add_f32s(acc, $term)
            }
            #[inline(always)]
            fn merge<S: Simd>(simd: S, x: S::f32s, y: S::f32s) -> S::f32s {
                simd.add_f32s(x, y)
            }
            #[inline(always)]
            fn step_one(acc: f32, $a: f32, $b: f32) -> f32 {
                acc + $one
            }
            #[inline(always)]
            fn fold<S: Simd>(simd: S, acc: S::f32s) -> f32 {
                simd.reduce_sum_f32s(acc)
            }
            #[inline(always)]
            fn finish(acc: f32, _: &[f32]) -> f32 {
                acc
            }
        }
    )*};
}
sums! {
    Sum: a _b simd => a, a;
    Dot: a b simd => simd.mul_f32s(a, b), a * b;
}

macro_rules! extremes {
    ($($name:ident $none:ident $vector:ident $fold:ident $better:ident $zero:literal;)*) => {$(
        impl RowOp for $name {
            const START: f32 = f32::$none;
            #[inline(always)]
            fn step<S: Simd>(simd: S, acc: S::f32s, a: S::f32s, _: S::f32s) -> S::f32s {
                // Machines differ in the treatment of NaN as an operand, so it is replaced.
                let number = simd.equal_f32s(a, a);
                simd.$vector(acc, simd.select_f32s(number, a, simd.splat_f32s(Self::START)))
            }
            #[inline(always)]
            fn merge<S: Simd>(simd: S, x: S::f32s, y: S::f32s) -> S::f32s {
                simd.$vector(x, y)
            }
            #[inline(always)]
            fn step_one(acc: f32, a: f32, _: f32) -> f32 {
                Number::$better(acc, a)
            }
            #[inline(always)]
            fn fold<S: Simd>(simd: S, acc: S::f32s) -> f32 {
                simd.$fold(acc)
            }
            fn finish(acc: f32, row: &[f32]) -> f32 {
                if acc == Self::START && row.iter().all(|x| x.is_nan()) {
                    return f32::NAN;
                }
                if acc == 0.0 {
                    // The vectors take either of two zeros.
                    let has_better = row.iter().any(|x| x.to_bits() == f32::to_bits($zero));
                    return if has_better { $zero } else { -$zero };
                }
                acc
            }
        }
    )*};
}
extremes! {
    Max NEG_INFINITY max_f32s reduce_max_f32s max 0.0;
    Min INFINITY min_f32s reduce_min_f32s min -0.0;
}

struct Rows<'a, O> {
    dst: &'a mut [f32],
    args: [&'a [f32]; 2],
    n: usize,
    op: std::marker::PhantomData<O>,
}

impl<O: RowOp> WithSimd for Rows<'_, O> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let [a, b] = self.args;
        let n = 4 * S::F32_LANES;
        if self.n == n
            && let ((a, []), (b, [])) = (S::as_simd_f32s(a), S::as_simd_f32s(b))
        {
            // Rows of four vectors, such as blocks of 32 quantized numbers: there is no loop over a row.
            let rows = a.as_chunks().0.iter().zip(b.as_chunks().0).zip(self.args[0].chunks_exact(n));
            for (d, ((a, b), row)) in self.dst.iter_mut().zip(rows) {
                *d = O::finish(four::<O, S>(simd, a, b), row);
            }
            return;
        }
        for ((d, a), b) in self.dst.iter_mut().zip(a.chunks_exact(self.n)).zip(b.chunks_exact(self.n)) {
            *d = O::finish(row::<O, S>(simd, a, b), a);
        }
    }
}

/// As [`row`], of a row of four vectors.
#[inline(always)]
fn four<O: RowOp, S: Simd>(simd: S, a: &[S::f32s; 4], b: &[S::f32s; 4]) -> f32 {
    let start = simd.splat_f32s(O::START);
    let step = |i: usize| O::step(simd, start, a[i], b[i]);
    O::fold(simd, O::merge(simd, O::merge(simd, step(0), step(1)), O::merge(simd, step(2), step(3))))
}

#[inline(always)]
fn row<O: RowOp, S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    let (a_vectors, a_rest) = S::as_simd_f32s(a);
    let (b_vectors, b_rest) = S::as_simd_f32s(b);
    let (a_fours, a_ones) = a_vectors.as_chunks::<4>();
    let (b_fours, b_ones) = b_vectors.as_chunks::<4>();
    let start = simd.splat_f32s(O::START);
    let (mut p, mut q, mut r, mut s) = (start, start, start, start);
    for (a, b) in a_fours.iter().zip(b_fours) {
        p = O::step(simd, p, a[0], b[0]);
        q = O::step(simd, q, a[1], b[1]);
        r = O::step(simd, r, a[2], b[2]);
        s = O::step(simd, s, a[3], b[3]);
    }
    for (a, b) in a_ones.iter().zip(b_ones) {
        p = O::step(simd, p, *a, *b);
    }
    let all = O::merge(simd, O::merge(simd, p, q), O::merge(simd, r, s));
    a_rest.iter().zip(b_rest).fold(O::fold(simd, all), |acc, (a, b)| O::step_one(acc, *a, *b))
}

fn rows<O: RowOp>(isa: Isa, dst: &mut [u8], [a, b]: [&[u8]; 2], [_, n, _]: Extents) {
    // With one operand, the second one is not used.
    let args = [a, if b.is_empty() { a } else { b }].map(bytemuck::cast_slice);
    isa.with(Rows::<O> { dst: bytemuck::cast_slice_mut(dst), args, n, op: std::marker::PhantomData });
}

fn part<O: RowOp>(isa: Isa, args: [&[u8]; 2]) -> u64 {
    let mut result = [0f32];
    rows::<O>(isa, bytemuck::cast_slice_mut(&mut result), args, [1, args[0].len() / size_of::<f32>(), 1]);
    result[0].to_bits().into()
}

fn merge<O: RowOp>(a: u64, b: u64) -> u64 {
    use crate::rep::Rep;
    let (a, b) = (<f32 as Rep>::from_bits(a), <f32 as Rep>::from_bits(b));
    // NaN stands for a part of a row without a number.
    let (a, b) = if a.is_nan() { (b, a) } else { (a, b) };
    let both = if b.is_nan() && O::START != 0.0 { a } else { O::step_one(a, b, 1.0) };
    both.to_bits().into()
}

fn finish(acc: u64, out: &mut [u8]) {
    use crate::rep::Rep;
    bytemuck::cast_slice_mut::<u8, f32>(out)[0] = <f32 as Rep>::from_bits(acc);
}

const fn fold<O: RowOp>() -> RowFold {
    RowFold { rows: rows::<O>, part: part::<O>, merge: merge::<O>, finish }
}

/// Sums of rows.
pub(crate) const SUM: RowFold = fold::<Sum>();
/// Sums of the products of two rows.
pub(crate) const DOT: RowFold = fold::<Dot>();
/// Greatest elements of rows.
pub(crate) const MAX: RowFold = fold::<Max>();
/// Least elements of rows.
pub(crate) const MIN: RowFold = fold::<Min>();
