//! Scans along one axis, and extremes with their indices.

use super::folds::{Fold, Max, Min, Prod, Sum, choose};
use super::reduce::Extents;
use crate::rep::Rep;
use crate::simd::{Isa, Loop};
use half::{bf16, f16};
use std::marker::PhantomData;
use titan_core::ir::{ArgOp, Elem, ReduceOp};

/// A reduction with indices: values and `i32` indices of `outer · inner` elements, source.
pub(crate) type ArgReduceFn = fn(&mut [u8], &mut [u8], &[u8], Extents);
/// A scan: source and destination of the same shape.
pub(crate) type ScanFn = fn(Isa, &mut [u8], &[u8], Extents);

/// The number of columns that are scanned together.
const STRIP: usize = 64;

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

/// The order by which an extremum is chosen.
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

/// Any number is better than NaN; otherwise the first of equal or unordered elements is kept.
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
