//! Matrix products on slices: the calls of the matmul crates, or plain loops without them.
//!
//! They run in the calling thread, without parallelism of their own, also where another crate of the program asks for their
//! feature `rayon`: a thread that took part in a pool could begin a task that waits for this launch.

#[cfg(feature = "matmul")]
use gemm_common::Parallelism;

/// A matrix in a slice: the index of its first element, and the strides between rows and between columns.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a, T> {
    /// The slice.
    pub data: &'a [T],
    /// The index of the first element.
    pub first: usize,
    /// The distance between rows.
    pub row: isize,
    /// The distance between columns.
    pub col: isize,
}

impl<T> Matrix<'_, T> {
    /// Whether all of `rows × cols` elements are in the slice.
    #[must_use]
    pub fn holds(&self, rows: usize, cols: usize) -> bool {
        let far = |n: usize, step: isize| isize::try_from(n.saturating_sub(1)).ok().and_then(|n| n.checked_mul(step));
        let (Some(down), Some(right), Ok(first)) =
            (far(rows, self.row), far(cols, self.col), isize::try_from(self.first))
        else {
            return false;
        };
        let least = first.checked_add(down.min(0)).and_then(|x| x.checked_add(right.min(0)));
        let most = first.checked_add(down.max(0)).and_then(|x| x.checked_add(right.max(0)));
        least.is_some_and(|x| x >= 0) && most.and_then(|x| usize::try_from(x).ok()).is_some_and(|x| x < self.data.len())
    }

    #[cfg(feature = "matmul")]
    fn start(&self) -> *const T {
        self.data.as_ptr().wrapping_add(self.first)
    }

    /// The element in a row and a column that `holds` has checked.
    #[cfg(not(feature = "matmul"))]
    fn at(&self, row: usize, col: usize) -> T
    where
        T: Copy,
    {
        let step = |n: usize, step: isize| n.cast_signed().wrapping_mul(step);
        self.data[self.first.wrapping_add_signed(step(row, self.row) + step(col, self.col))]
    }
}

/// The element types for which there is a matrix product.
pub(crate) trait Multiply: Copy {
    /// `c = a · b + 0`, or `c += a · b` if `add`. `c` is `m × n`, a row every `row` elements; `a` is `m × k`, `b` is `k × n`.
    fn product(c: (&mut [Self], usize), shape: [usize; 3], add: bool, a: Matrix<'_, Self>, b: Matrix<'_, Self>);
}

macro_rules! multiply {
    ($($t:ident $krate:ident;)*) => {$(
        impl Multiply for $t {
            fn product((c, row): (&mut [$t], usize), [m, n, k]: [usize; 3], add: bool, a: Matrix<'_, $t>, b: Matrix<'_, $t>) {
                let end = m.saturating_sub(1).checked_mul(row).and_then(|last| last.checked_add(n)).unwrap_or(usize::MAX);
                let fits = m > 0 && n > 0 && k > 0 && row >= n && c.len() >= end && a.holds(m, k) && b.holds(k, n);
                debug_assert!(fits, "a product of {m} x {k} and {k} x {n} beyond its operands");
                if !fits {
                    return;
                }
                #[cfg(not(feature = "matmul"))]
                for i in 0..m {
                    let sums = &mut c[i * row..][..n];
                    if !add {
                        sums.fill(0.0);
                    }
                    for l in 0..k {
                        let left = a.at(i, l);
                        sums.iter_mut().enumerate().for_each(|(j, sum)| *sum += left * b.at(l, j));
                    }
                }
                #[cfg(feature = "matmul")]
                {
                    let Ok(step) = isize::try_from(row) else { return };
                    // The crate prefers columns, so it is given the transposed product: cᵀ = bᵀ · aᵀ.
                    // SAFETY: `c` has m rows of n elements, as `end` says, and they do not overlap, as `row` is at least n;
                    // `holds` found every element of `a` and `b` in their slices.
                    unsafe {
                        $krate::gemm::$t::get_gemm_fn()(
                            n, m, k,
                            c.as_mut_ptr(), step, 1, add,
                            b.start(), b.row, b.col,
                            a.start(), a.row, a.col,
                            1.0, 1.0, false, false, false, Parallelism::None,
                        );
                    }
                    if !add {
                        // The crate leaves the zero out of short sums, so that they may be −0.
                        c.chunks_mut(row).take(m).for_each(|sums| sums[..n].iter_mut().for_each(|sum| *sum += 0.0));
                    }
                }
            }
        }
    )*};
}
multiply! { f32 gemm_f32; f64 gemm_f64; }
