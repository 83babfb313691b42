//! Conversions between `f16` and `f32` by the instructions of F16C, eight elements at a time, and the loop of products that converts so.

#[cfg(target_arch = "x86_64")]
use crate::ops::narrow::{LANES, all};
#[cfg(target_arch = "x86_64")]
use crate::rep::f16_to_f32;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::{
    __m128i, __m256, _CMP_UNORD_Q, _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128, _mm256_and_ps,
    _mm256_blendv_ps, _mm256_cmp_ps, _mm256_cvtph_ps, _mm256_cvtps_ph, _mm256_loadu_ps, _mm256_or_ps, _mm256_set1_ps,
    _mm256_storeu_ps,
};
use half::f16;

/// The elements of a vector.
#[cfg(target_arch = "x86_64")]
const WIDTH: usize = 8;

/// Proof that the machine has these instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct F16c(());

impl F16c {
    /// Detects the instructions of this machine.
    pub(crate) fn detect() -> Option<F16c> {
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
            return Some(F16c(()));
        }
        None
    }

    /// Converts as many elements as both slices have, but for those behind the last whole vector; returns the number of those converted.
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there is no value of this type"))]
    pub(crate) fn widen(self, dst: &mut [f32], src: &[f16]) -> usize {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a value of this type exists only where the instructions do.
        return unsafe { widen(dst, src) };
        #[cfg(not(target_arch = "x86_64"))]
        0
    }

    /// The products of a row with each of few ([`crate::ops::narrow`]).
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there is no value of this type"))]
    pub(crate) fn products(self, few: &[f32], row: &[f16], sums: &mut [f32]) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        unsafe {
            products(few, row, sums);
        }
    }

    /// The same to `f16`, to nearest even. NaN becomes the quiet one with its sign and no payload.
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "there is no value of this type"))]
    pub(crate) fn narrow(self, dst: &mut [f16], src: &[f32]) -> usize {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        return unsafe { narrow(dst, src) };
        #[cfg(not(target_arch = "x86_64"))]
        0
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx,f16c")]
#[inline]
fn widen(dst: &mut [f32], src: &[f16]) -> usize {
    let (mut to, _) = dst.as_chunks_mut::<WIDTH>();
    let (from, _) = src.as_chunks::<WIDTH>();
    let n = to.len().min(from.len());
    to = &mut to[..n];
    for (to, from) in to.iter_mut().zip(from) {
        // SAFETY: both are arrays of eight elements, and the instructions need no alignment.
        unsafe {
            let halves = _mm_loadu_si128(from.as_ptr().cast::<__m128i>());
            _mm256_storeu_ps(to.as_mut_ptr(), _mm256_cvtph_ps(halves));
        }
    }
    n * WIDTH
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx,f16c")]
fn narrow(dst: &mut [f16], src: &[f32]) -> usize {
    let (mut to, _) = dst.as_chunks_mut::<WIDTH>();
    let (from, _) = src.as_chunks::<WIDTH>();
    let n = to.len().min(from.len());
    to = &mut to[..n];
    for (to, from) in to.iter_mut().zip(from) {
        // SAFETY: as in `widen`.
        unsafe {
            let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(without_payload(_mm256_loadu_ps(from.as_ptr())));
            _mm_storeu_si128(to.as_mut_ptr().cast::<__m128i>(), halves);
        }
    }
    n * WIDTH
}

/// The same numbers, and NaN without payload.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx")]
#[inline]
fn without_payload(x: __m256) -> __m256 {
    let sign = _mm256_and_ps(x, _mm256_set1_ps(-0.0));
    let nan = _mm256_or_ps(sign, _mm256_set1_ps(f32::from_bits(0x7FC0_0000)));
    _mm256_blendv_ps(x, nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
fn products(few: &[f32], row: &[f16], sums: &mut [f32]) {
    let wide = |chunk: &[f16; LANES]| {
        let mut wide = [0f32; LANES];
        // Without a loop, so that the elements stay in registers.
        // SAFETY: both are arrays of two vectors, and the instructions need no alignment.
        unsafe {
            for_vector(&mut wide, chunk, 0);
            for_vector(&mut wide, chunk, WIDTH);
        }
        wide
    };
    all::<f16, true>(few, row, (wide, f16_to_f32), sums);
}

/// Widens the vector at an index.
///
/// # Safety
/// Both arrays have a vector there.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx,f16c")]
#[inline]
unsafe fn for_vector(wide: &mut [f32; LANES], chunk: &[f16; LANES], at: usize) {
    // SAFETY: the caller's.
    unsafe {
        let halves = _mm_loadu_si128(chunk.as_ptr().add(at).cast::<__m128i>());
        _mm256_storeu_ps(wide.as_mut_ptr().add(at), _mm256_cvtph_ps(halves));
    }
}
