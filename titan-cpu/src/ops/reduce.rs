//! Reductions along one axis of a dense tile, seen as `[outer, n, inner]`.
//!
//! Along the last axis (`inner` is 1), a row is reduced in [`LANES`] partial results; along another axis, a strip of columns is
//! reduced row by row. Both are vector loops.

use super::folds::{Fold, Max, Min, Prod, Sum, choose};
use crate::rep::Rep;
use crate::simd::{Isa, Loop};
use half::{bf16, f16};
use std::marker::PhantomData;
use titan_core::ir::{Elem, ReduceOp};

/// `[outer, n, inner]`.
pub(crate) type Extents = [usize; 3];
/// A reduction: source, and destination of `outer · inner` elements.
pub(crate) type ReduceFn = fn(Isa, &mut [u8], &[u8], Extents);

/// The reduction of rows, whole or in parts; of the rows of one operand, or of the products of two.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowFold {
    /// Reduces whole rows: destination, operands, their extents.
    pub(crate) rows: fn(Isa, &mut [u8], [&[u8]; 2], Extents),
    /// The accumulator of a part of a row.
    pub(crate) part: fn(Isa, [&[u8]; 2]) -> u64,
    /// Combines the accumulators of two parts.
    pub(crate) merge: fn(u64, u64) -> u64,
    /// Converts an accumulator to the result.
    pub(crate) finish: fn(u64, &mut [u8]),
}

const LANES: usize = 64;
const STRIP: usize = 64;

/// Reduces, in `N` partial results, the part of a row that is a multiple of `N`; returns the result and the rest of the row.
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
    RowFold { rows: whole_rows::<T, O>, part: row_part::<T, O>, merge: row_merge::<T, O>, finish: row_finish::<T, O> }
}
