//! Matrix products: each product of two elements is exact, and they are summed in the accumulator's type, here in the order of k.
//!
//! The one loop of the simulator that is written for speed: `f32` accumulators in `f32` arithmetic, row by row. Its factors have at
//! most 11 significant bits, so that their product is exact in `f32`, or are `f32` themselves, for which a product is rounded once.

use crate::sim::value::{Cells, Num, Tile};
use titan_core::ir::{Elem, TileShape};

/// `a · b + acc`, with `acc` of this element type; leading axes are batches.
pub(in crate::sim) fn mma(a: &Tile, b: &Tile, acc: &Tile, elem: Elem) -> Cells {
    let (m, n) = last(acc.shape);
    let k = last(a.shape).1;
    let batches = acc.shape.len() / (m * n).max(1);
    match (&a.cells, &b.cells, &acc.cells) {
        (Cells::Float(a), Cells::Float(b), Cells::Float(c)) if elem == Elem::F32 => {
            let (a, b) = (singles(a), singles(b));
            let mut c = singles(c);
            for i in 0..batches {
                rows(&a[i * m * k..], &b[i * k * n..], &mut c[i * m * n..(i + 1) * m * n], (m, n, k));
            }
            Cells::Float(c.into_iter().map(f64::from).collect())
        }
        (a, b, c) => {
            let at = |i: usize| {
                let (batch, row, col) = (i / (m * n), i / n % m, i % n);
                let terms = (0..k).map(|j| (a.get((batch * m + row) * k + j), b.get((batch * k + j) * n + col)));
                terms.fold(c.get(i), |sum, (x, y)| match (sum, x, y) {
                    (Num::Float(s), Num::Float(x), Num::Float(y)) => Num::Float(titan_core::num::fma(x, y, s)),
                    (s, x, y) => {
                        Num::Int(titan_core::ir::fold::wrap(elem, s.int().wrapping_add(x.int().wrapping_mul(y.int()))))
                    }
                })
            };
            Cells::collect(elem, (0..c.len()).map(at))
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "values of at most 24 significant bits")]
fn singles(v: &[f64]) -> Vec<f32> {
    v.iter().map(|x| *x as f32).collect()
}

/// The last two extents of a shape: rows and columns.
fn last(shape: TileShape) -> (usize, usize) {
    let extent = |i: usize| {
        shape.rank().checked_sub(i).and_then(|at| shape.get(at)).map_or(1, |d| usize::try_from(*d).unwrap_or(1))
    };
    (extent(2), extent(1))
}

fn rows(a: &[f32], b: &[f32], c: &mut [f32], (m, n, k): (usize, usize, usize)) {
    for (row, c) in c.chunks_exact_mut(n.max(1)).enumerate().take(m) {
        for (j, x) in a[row * k..(row + 1) * k].iter().enumerate() {
            for (c, y) in c.iter_mut().zip(&b[j * n..(j + 1) * n]) {
                *c += x * y;
            }
        }
    }
}
