//! The matrix multiplication of the `gemm` crates, called directly.
//!
//! `gemm-f32` is what the umbrella crate `gemm` calls for `f32`, without its other element types.

use gemm_common::Parallelism;
use rayon::prelude::*;

/// `c = a · bᵀ`, with the rows distributed over the threads of rayon's pool, one call for each thread.
pub(crate) fn dealt(a: &[f32], b: &[f32], c: &mut [f32], n: usize, k: usize) {
    let rows = (c.len() / n).div_ceil(rayon::current_num_threads());
    let parts = c.par_chunks_mut(rows * n).zip(a.par_chunks(rows * k));
    parts.for_each(|(c, a)| product(a, b, c, [n, k], Parallelism::None));
}

/// `c = a · bᵀ` in one call, which takes threads of the same pool by itself.
pub(crate) fn threaded(a: &[f32], b: &[f32], c: &mut [f32], n: usize, k: usize) {
    product(a, b, c, [n, k], Parallelism::Rayon(0));
}

/// The matrices are row-major; for the crate, which is column-major, this is `cᵀ = b · aᵀ`.
#[expect(unsafe_code, reason = "the crate's function takes pointers")]
fn product(a: &[f32], b: &[f32], c: &mut [f32], [n, k]: [usize; 2], threads: Parallelism) {
    let m = c.len() / n;
    assert!(a.len() == m * k && b.len() == n * k && c.len() == m * n, "slices of the matrices' sizes");
    let (row_a, row_c) = (k.cast_signed(), n.cast_signed());
    let gemm = gemm_f32::gemm::f32::get_gemm_fn();
    let (pa, pb, pc) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
    // SAFETY: with these strides the call reads n·k and m·k elements and writes m·n of them, which the slices have, as just
    // checked; `c` is borrowed exclusively.
    unsafe {
        gemm(n, m, k, pc, row_c, 1, false, pb, 1, row_a, pa, row_a, 1, 1.0, 1.0, false, false, false, threads);
    }
}
