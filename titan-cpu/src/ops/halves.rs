//! Operations on `f16`, computed in `f32` block by block.
//!
//! A block is widened, computed by the loop of `f32`, and rounded. That is what [`super::number`] does element by element, so that the
//! results are the same; the loops of a block have fewer instructions, above all where the machine converts ([`F16c`]).
//!
//! [`F16c`]: crate::runtime::halves::F16c

use super::elementwise::{Binary, Unary, tile1, tile2};
use crate::rep::{Rep, f16_from_f32, f16_to_f32};
use crate::simd::Isa;
use half::f16;

/// The number of elements of a block.
const BLOCK: usize = 256;

/// Widens elements.
pub(crate) fn widen(isa: Isa, dst: &mut [f32], src: &[f16]) {
    let done = isa.f16c().map_or(0, |f16c| f16c.widen(dst, src));
    let (Some(dst), Some(src)) = (dst.get_mut(done..), src.get(done..)) else { return };
    isa.run(|| dst.iter_mut().zip(src).for_each(|(d, s)| *d = f16_to_f32(*s)));
}

/// Rounds elements to nearest even.
pub(crate) fn round(isa: Isa, dst: &mut [f16], src: &[f32]) {
    let done = isa.f16c().map_or(0, |f16c| f16c.narrow(dst, src));
    let (Some(dst), Some(src)) = (dst.get_mut(done..), src.get(done..)) else { return };
    isa.run(|| dst.iter_mut().zip(src).for_each(|(d, s)| *d = f16_from_f32(*s)));
}

/// The elements of an operand for a block: its own, or the one that stands for all.
fn part<T>(all: &[T], from: usize, n: usize) -> &[T] {
    if all.len() == 1 { all } else { &all[from..from + n] }
}

/// `dst[i] = f(a[i])` in `f32`.
pub(super) fn half1<O: Unary<f32, f32>>(isa: Isa, dst: &mut [u8], [a, _, _]: [&[u8]; 3]) {
    let (dst, a): (&mut [f16], &[f16]) = (bytemuck::cast_slice_mut(dst), bytemuck::cast_slice(a));
    let [mut wide, mut result] = [[0f32; BLOCK]; 2];
    for (at, dst) in dst.chunks_mut(BLOCK).enumerate() {
        let n = dst.len();
        let a = part(a, at * BLOCK, n);
        widen(isa, &mut wide[..a.len()], a);
        let out = bytemuck::cast_slice_mut(&mut result[..n]);
        tile1::<f32, f32, O>(isa, out, [bytemuck::cast_slice(&wide[..a.len()]), &[], &[]]);
        round(isa, dst, &result[..n]);
    }
}

/// `dst[i] = f(a[i], b[i])` in `f32`.
pub(super) fn half2<O: Binary<f32, f32>>(isa: Isa, dst: &mut [u8], [a, b, _]: [&[u8]; 3]) {
    let dst: &mut [f16] = bytemuck::cast_slice_mut(dst);
    let (a, b): (&[f16], &[f16]) = (bytemuck::cast_slice(a), bytemuck::cast_slice(b));
    let [mut left, mut right, mut result] = [[0f32; BLOCK]; 3];
    for (at, dst) in dst.chunks_mut(BLOCK).enumerate() {
        let n = dst.len();
        let [a, b] = [a, b].map(|operand| part(operand, at * BLOCK, n));
        widen(isa, &mut left[..a.len()], a);
        widen(isa, &mut right[..b.len()], b);
        let args = [bytemuck::cast_slice(&left[..a.len()]), bytemuck::cast_slice(&right[..b.len()]), &[]];
        tile2::<f32, f32, O>(isa, bytemuck::cast_slice_mut(&mut result[..n]), args);
        round(isa, dst, &result[..n]);
    }
}

/// Converts from `f16` by way of `f32`, from which `O` converts.
pub(super) fn from_half<R: Rep, O: Unary<f32, R>>(isa: Isa, dst: &mut [u8], [a, _, _]: [&[u8]; 3]) {
    let (dst, a): (&mut [R], &[f16]) = (bytemuck::cast_slice_mut(dst), bytemuck::cast_slice(a));
    let mut wide = [0f32; BLOCK];
    for (at, dst) in dst.chunks_mut(BLOCK).enumerate() {
        let a = part(a, at * BLOCK, dst.len());
        widen(isa, &mut wide[..a.len()], a);
        tile1::<f32, R, O>(isa, bytemuck::cast_slice_mut(dst), [bytemuck::cast_slice(&wide[..a.len()]), &[], &[]]);
    }
}

/// Converts to `f16` by way of `f32`, to which `O` converts.
pub(super) fn to_half<A: Rep, O: Unary<A, f32>>(isa: Isa, dst: &mut [u8], [a, _, _]: [&[u8]; 3]) {
    let (dst, a): (&mut [f16], &[A]) = (bytemuck::cast_slice_mut(dst), bytemuck::cast_slice(a));
    let mut wide = [0f32; BLOCK];
    for (at, dst) in dst.chunks_mut(BLOCK).enumerate() {
        let (n, a) = (dst.len(), part(a, at * BLOCK, dst.len()));
        tile1::<A, f32, O>(isa, bytemuck::cast_slice_mut(&mut wide[..n]), [bytemuck::cast_slice(a), &[], &[]]);
        round(isa, dst, &wide[..n]);
    }
}

/// Converts `f16` to `f32`.
pub(super) fn to_single(isa: Isa, dst: &mut [u8], [a, _, _]: [&[u8]; 3]) {
    let (dst, a): (&mut [f32], &[f16]) = (bytemuck::cast_slice_mut(dst), bytemuck::cast_slice(a));
    match a {
        [one] => dst.fill(f16_to_f32(*one)),
        _ => widen(isa, dst, a),
    }
}

/// Converts `f32` to `f16`.
pub(super) fn from_single(isa: Isa, dst: &mut [u8], [a, _, _]: [&[u8]; 3]) {
    let (dst, a): (&mut [f16], &[f32]) = (bytemuck::cast_slice_mut(dst), bytemuck::cast_slice(a));
    match a {
        [one] => dst.fill(f16_from_f32(*one)),
        _ => round(isa, dst, a),
    }
}
