//! Reductions and scans along one axis of a dense tile, seen as `[outer, n, inner]`.
//!
//! Along the last axis (`inner` is 1) a row is folded in [`LANES`] partial results; along another axis, a strip of columns is
//! folded row by row. Both are vector loops. `f16` and `bf16` sums and products accumulate in `f32`.

use super::number::Number;
use crate::rep::{Rep, bf16_from_f32, bf16_to_f32, f16_from_f32, f16_to_f32};
use crate::simd::{Isa, Loop};
use half::{bf16, f16};
use std::marker::PhantomData;
use titan_core::ir::{ArgOp, Elem, ReduceOp};

/// `[outer, n, inner]`.
pub(crate) type Extents = [usize; 3];
/// Source, destination of `outer · inner` elements.
pub(crate) type ReduceFn = fn(Isa, &mut [u8], &[u8], Extents);
/// Values and `i32` indices of `outer · inner` elements, source.
pub(crate) type ArgReduceFn = fn(&mut [u8], &mut [u8], &[u8], Extents);
/// Source and destination of one shape.
pub(crate) type ScanFn = fn(Isa, &mut [u8], &[u8], Extents);

/// The reduction of rows, whole or in parts; of the rows of one operand, or of the products of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowFold {
    /// Whole rows: destination, operands, their extents.
    pub(crate) rows: fn(Isa, &mut [u8], [&[u8]; 2], Extents),
    /// The accumulator of a part of a row.
    pub(crate) part: fn(Isa, [&[u8]; 2]) -> u64,
    /// The accumulator of two parts.
    pub(crate) merge: fn(u64, u64) -> u64,
    /// The result of an accumulator.
    pub(crate) finish: fn(u64, &mut [u8]),
}

const LANES: usize = 64;
const STRIP: usize = 64;

/// How elements are folded.
pub(crate) trait Fold<T> {
    type Acc: Copy;
    const START: Self::Acc;
    fn step(acc: Self::Acc, x: T) -> Self::Acc;
    fn merge(a: Self::Acc, b: Self::Acc) -> Self::Acc;
    fn finish(acc: Self::Acc) -> T;
}

struct Sum;
struct Prod;
struct Max;
struct Min;

macro_rules! folds {
    ($($t:ident { $($op:ident $start:expr, $method:ident;)* })*) => {$($(
        impl Fold<$t> for $op {
            type Acc = $t;
            const START: $t = $start;
            #[inline(always)]
            fn step(acc: $t, x: $t) -> $t {
                Number::$method(acc, x)
            }
            #[inline(always)]
            fn merge(a: $t, b: $t) -> $t {
                Number::$method(a, b)
            }
            #[inline(always)]
            fn finish(acc: $t) -> $t {
                acc
            }
        }
    )*)*};
}
macro_rules! int_folds {
    ($($t:ident)*) => {
        folds! { $($t { Sum 0, add; Prod 1, mul; Max $t::MIN, max; Min $t::MAX, min; })* }
    };
}
folds! { f64 { Sum 0.0, add; Prod 1.0, mul; } f32 { Sum 0.0, add; Prod 1.0, mul; } }
int_folds! { i64 i32 i16 i8 u64 u32 u16 u8 }

/// Extremes of floats are those of integers in the same order, with NaN beyond the last: one short step, where comparing
/// floats takes many, one waiting for the other.
macro_rules! float_extremes {
    ($($t:ident $key:ident;)*) => {$(
        float_extremes! { @ $t $key Max $key::MIN, max }
        float_extremes! { @ $t $key Min $key::MAX, min }
    )*};
    (@ $t:ident $key:ident $op:ident $none:expr, $method:ident) => {
        impl Fold<$t> for $op {
            type Acc = $key;
            const START: $key = $none;
            #[inline(always)]
            fn step(acc: $key, x: $t) -> $key {
                let bits = x.to_bits().cast_signed();
                let key = bits ^ ((bits >> ($key::BITS - 1)) & $key::MAX);
                Number::$method(acc, if x.is_nan() { $none } else { key })
            }
            #[inline(always)]
            fn merge(a: $key, b: $key) -> $key {
                Number::$method(a, b)
            }
            #[inline(always)]
            fn finish(acc: $key) -> $t {
                let bits = acc ^ ((acc >> ($key::BITS - 1)) & $key::MAX);
                // The key of no number is that of a NaN.
                $t::from_bits(bits.cast_unsigned())
            }
        }
    };
}
float_extremes! { f32 i32; f64 i64; }

macro_rules! half_folds {
    ($($t:ident $to:ident $from:ident;)*) => {$(
        half_folds! { @ $t $to $from: Sum Prod Max Min }
    )*};
    (@ $t:ident $to:ident $from:ident: $($op:ident)*) => {$(
        impl Fold<$t> for $op {
            type Acc = <$op as Fold<f32>>::Acc;
            const START: Self::Acc = <$op as Fold<f32>>::START;
            #[inline(always)]
            fn step(acc: Self::Acc, x: $t) -> Self::Acc {
                <$op as Fold<f32>>::step(acc, $to(x))
            }
            #[inline(always)]
            fn merge(a: Self::Acc, b: Self::Acc) -> Self::Acc {
                <$op as Fold<f32>>::merge(a, b)
            }
            #[inline(always)]
            fn finish(acc: Self::Acc) -> $t {
                $from(<$op as Fold<f32>>::finish(acc))
            }
        }
    )*};
}
half_folds! { f16 f16_to_f32 f16_from_f32; bf16 bf16_to_f32 bf16_from_f32; }

/// Folds in `N` partial results what of the row fills them all; gives the result and the rest of the row.
#[inline(always)]
fn fold_lanes<T: Copy, O: Fold<T>, const N: usize>(row: &[T]) -> (O::Acc, &[T]) {
    let (chunks, rest) = row.as_chunks::<N>();
    if chunks.is_empty() {
        return (O::START, rest);
    }
    let mut lanes = [O::START; N];
    for chunk in chunks {
        for i in 0..N {
            lanes[i] = O::step(lanes[i], chunk[i]);
        }
    }
    let mut eight = [O::START; 8];
    for part in lanes.as_chunks::<8>().0 {
        for i in 0..8 {
            eight[i] = O::merge(eight[i], part[i]);
        }
    }
    (eight.into_iter().fold(O::START, O::merge), rest)
}

#[inline(always)]
fn fold_row<T: Copy, O: Fold<T>>(row: &[T]) -> O::Acc {
    let (long, rest) = fold_lanes::<T, O, LANES>(row);
    let (short, rest) = fold_lanes::<T, O, 8>(rest);
    rest.iter().fold(O::merge(long, short), |acc, x| O::step(acc, *x))
}

#[inline(always)]
fn fold_strip<T: Copy, O: Fold<T>>(dst: &mut [T], src: &[T], n: usize, inner: usize) {
    let mut acc = [O::START; STRIP];
    let acc = &mut acc[..dst.len()];
    for i in 0..n {
        for (a, x) in acc.iter_mut().zip(&src[i * inner..]) {
            *a = O::step(*a, *x);
        }
    }
    for (d, a) in dst.iter_mut().zip(acc) {
        *d = O::finish(*a);
    }
}

struct ReduceLoop<'a, T, O> {
    dst: &'a mut [T],
    src: &'a [T],
    extents: Extents,
    op: PhantomData<O>,
}

impl<T: Rep, O: Fold<T>> Loop for ReduceLoop<'_, T, O> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let (dst, src, [_, n, inner]) = (self.dst, self.src, self.extents);
        if inner == 1 {
            for (d, row) in dst.iter_mut().zip(src.chunks_exact(n)) {
                *d = O::finish(fold_row::<T, O>(row));
            }
            return;
        }
        for (d, plane) in dst.chunks_exact_mut(inner).zip(src.chunks_exact(n * inner)) {
            for (strip, at) in d.chunks_mut(STRIP).zip((0..).step_by(STRIP)) {
                fold_strip::<T, O>(strip, &plane[at..], n, inner);
            }
        }
    }
}

fn reduce_tile<T: Rep, O: Fold<T>>(isa: Isa, dst: &mut [u8], src: &[u8], extents: Extents) {
    let (dst, src) = (bytemuck::cast_slice_mut(dst), bytemuck::cast_slice(src));
    isa.run(ReduceLoop::<T, O> { dst, src, extents, op: PhantomData });
}

struct RowLoop<'a, T, O: Fold<T>> {
    row: &'a [T],
    acc: &'a mut O::Acc,
}

impl<T: Rep, O: Fold<T>> Loop for RowLoop<'_, T, O> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        *self.acc = fold_row::<T, O>(self.row);
    }
}

fn whole_rows<T: Rep, O: Fold<T>>(isa: Isa, dst: &mut [u8], [src, _]: [&[u8]; 2], extents: Extents) {
    reduce_tile::<T, O>(isa, dst, src, extents);
}

fn row_part<T: Rep, O: Fold<T>>(isa: Isa, [row, _]: [&[u8]; 2]) -> u64
where
    O::Acc: Rep,
{
    let mut acc = O::START;
    isa.run(RowLoop::<T, O> { row: bytemuck::cast_slice(row), acc: &mut acc });
    acc.to_bits()
}

fn row_merge<T: Rep, O: Fold<T>>(a: u64, b: u64) -> u64
where
    O::Acc: Rep,
{
    O::merge(Rep::from_bits(a), Rep::from_bits(b)).to_bits()
}

fn row_finish<T: Rep, O: Fold<T>>(acc: u64, out: &mut [u8])
where
    O::Acc: Rep,
{
    bytemuck::cast_slice_mut::<u8, T>(out)[0] = O::finish(Rep::from_bits(acc));
}

struct ScanLoop<'a, T, O> {
    dst: &'a mut [T],
    src: &'a [T],
    extents: Extents,
    op: PhantomData<O>,
}

impl<T: Rep, O: Fold<T>> Loop for ScanLoop<'_, T, O> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let [_, n, inner] = self.extents;
        for (d, plane) in self.dst.chunks_exact_mut(n * inner).zip(self.src.chunks_exact(n * inner)) {
            for first in (0..inner).step_by(STRIP) {
                let width = STRIP.min(inner - first);
                let mut acc = [O::START; STRIP];
                for i in 0..n {
                    let at = i * inner + first;
                    for ((a, d), x) in acc.iter_mut().zip(&mut d[at..at + width]).zip(&plane[at..at + width]) {
                        *a = O::step(*a, *x);
                        *d = O::finish(*a);
                    }
                }
            }
        }
    }
}

fn scan_tile<T: Rep, O: Fold<T>>(isa: Isa, dst: &mut [u8], src: &[u8], extents: Extents) {
    let (dst, src) = (bytemuck::cast_slice_mut(dst), bytemuck::cast_slice(src));
    isa.run(ScanLoop::<T, O> { dst, src, extents, op: PhantomData });
}

/// Which of two elements is the better one.
trait Better<T> {
    fn better(x: T, than: T) -> bool;
}

struct ArgMax;
struct ArgMin;

impl<T: Rep> Better<T> for ArgMax {
    #[inline(always)]
    fn better(x: T, than: T) -> bool {
        x > than
    }
}

impl<T: Rep> Better<T> for ArgMin {
    #[inline(always)]
    fn better(x: T, than: T) -> bool {
        x < than
    }
}

/// Any number beats NaN, and nothing else equal or unordered beats what came first.
fn arg_reduce_tile<T: Rep, O: Better<T>>(values: &mut [u8], indices: &mut [u8], src: &[u8], [_, n, inner]: Extents) {
    let values: &mut [T] = bytemuck::cast_slice_mut(values);
    let indices: &mut [i32] = bytemuck::cast_slice_mut(indices);
    let src: &[T] = bytemuck::cast_slice(src);
    let is_nan = |x: T| x.partial_cmp(&x).is_none();
    let planes = src.chunks_exact(n * inner);
    for ((values, indices), plane) in values.chunks_exact_mut(inner).zip(indices.chunks_exact_mut(inner)).zip(planes) {
        values.copy_from_slice(&plane[..inner]);
        indices.fill(0);
        for (row, i) in plane.chunks_exact(inner).zip(0i32..) {
            for ((value, index), x) in values.iter_mut().zip(indices.iter_mut()).zip(row) {
                if O::better(*x, *value) || (is_nan(*value) && !is_nan(*x)) {
                    (*value, *index) = (*x, i);
                }
            }
        }
    }
}

/// `Some($make::<T, $op>)` for the representation of an element with arithmetic.
macro_rules! choose {
    ($elem:expr, $make:ident, $op:ty) => {
        match $elem {
            Elem::F64 => Some($make::<f64, $op>),
            Elem::F32 => Some($make::<f32, $op>),
            Elem::F16 => Some($make::<f16, $op>),
            Elem::Bf16 => Some($make::<bf16, $op>),
            Elem::I64 => Some($make::<i64, $op>),
            Elem::I32 => Some($make::<i32, $op>),
            Elem::I16 => Some($make::<i16, $op>),
            Elem::I8 => Some($make::<i8, $op>),
            Elem::U64 => Some($make::<u64, $op>),
            Elem::U32 => Some($make::<u32, $op>),
            Elem::U16 => Some($make::<u16, $op>),
            Elem::U8 => Some($make::<u8, $op>),
            Elem::Tf32 | Elem::E4m3 | Elem::E5m2 | Elem::I4 | Elem::U4 | Elem::Bool => None,
        }
    };
}

/// The reduction of elements of this type.
pub(crate) fn reduce(op: ReduceOp, e: Elem) -> Option<ReduceFn> {
    match op {
        ReduceOp::Sum => choose!(e, reduce_tile, Sum),
        ReduceOp::Prod => choose!(e, reduce_tile, Prod),
        ReduceOp::Max => choose!(e, reduce_tile, Max),
        ReduceOp::Min => choose!(e, reduce_tile, Min),
    }
}

/// The reduction of rows of elements of this type.
pub(crate) fn row_fold(op: ReduceOp, e: Elem) -> Option<RowFold> {
    if e == Elem::F32 {
        match op {
            ReduceOp::Sum => return Some(super::rows::SUM),
            ReduceOp::Max => return Some(super::rows::MAX),
            ReduceOp::Min => return Some(super::rows::MIN),
            ReduceOp::Prod => {}
        }
    }
    let make: Option<fn() -> RowFold> = match op {
        ReduceOp::Sum => choose!(e, fold_rows, Sum),
        ReduceOp::Prod => choose!(e, fold_rows, Prod),
        ReduceOp::Max => choose!(e, fold_rows, Max),
        ReduceOp::Min => choose!(e, fold_rows, Min),
    };
    make.map(|make| make())
}

fn fold_rows<T: Rep, O: Fold<T>>() -> RowFold
where
    O::Acc: Rep,
{
    RowFold {
        rows: whole_rows::<T, O>,
        part: row_part::<T, O>,
        merge: row_merge::<T, O>,
        finish: row_finish::<T, O>,
    }
}

/// The inclusive scan of elements of this type.
pub(crate) fn scan(op: ReduceOp, e: Elem) -> Option<ScanFn> {
    match op {
        ReduceOp::Sum => choose!(e, scan_tile, Sum),
        ReduceOp::Prod => choose!(e, scan_tile, Prod),
        ReduceOp::Max => choose!(e, scan_tile, Max),
        ReduceOp::Min => choose!(e, scan_tile, Min),
    }
}

/// The extremum of elements of this type and its index.
pub(crate) fn arg_reduce(op: ArgOp, e: Elem) -> Option<ArgReduceFn> {
    match op {
        ArgOp::Max => choose!(e, arg_reduce_tile, ArgMax),
        ArgOp::Min => choose!(e, arg_reduce_tile, ArgMin),
    }
}
