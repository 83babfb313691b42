//! Compares overlap with a list of all nibbles.

use proptest::prelude::*;
use titan_core::ir::Elem;
use titan_core::launch::Footprint;

#[derive(Clone, Debug)]
struct Tensor {
    elem: Elem,
    first: i64,
    axes: Vec<(i64, i64)>,
}

impl Tensor {
    fn footprint(&self) -> Footprint {
        Footprint::new(self.elem, self.first, self.axes.iter().copied())
    }

    /// The positions of all nibbles.
    fn nibbles(&self) -> Vec<i64> {
        let unit = i64::from(self.elem.bits() / 4);
        let mut all = vec![self.first];
        for (extent, stride) in &self.axes {
            all = all.iter().flat_map(|at| (0..*extent).map(move |i| at + i * stride)).collect();
        }
        all.iter().flat_map(|at| (0..unit).map(move |n| at * unit + n)).collect()
    }
}

fn f32s(first: i64, axes: &[(i64, i64)]) -> Footprint {
    Footprint::new(Elem::F32, first, axes.iter().copied())
}

#[test]
fn columns_of_one_matrix_are_apart_although_their_intervals_meet() {
    let (left, right) = (f32s(0, &[(9, 10), (4, 1)]), f32s(4, &[(9, 10), (6, 1)]));
    assert!(!left.overlaps(&right));
    assert!(left.overlaps(&f32s(3, &[(9, 10), (6, 1)])));
}

#[test]
fn the_parts_of_the_last_axis_of_three_are_apart() {
    let part = |first, n| f32s(first, &[(3, 40), (5, 8), (n, 1)]);
    assert!(!part(0, 3).overlaps(&part(3, 5)));
    assert!(part(0, 4).overlaps(&part(3, 5)));
}

#[test]
fn every_other_row_is_apart_from_the_rows_between() {
    assert!(!f32s(0, &[(5, 14), (7, 1)]).overlaps(&f32s(7, &[(5, 14), (7, 1)])));
}

#[test]
fn an_empty_tensor_shares_nothing_and_is_covered() {
    let (empty, rows) = (f32s(3, &[(0, 7), (7, 1)]), f32s(0, &[(5, 7), (7, 1)]));
    assert!(!empty.overlaps(&rows) && !rows.overlaps(&empty) && !empty.overlaps(&empty));
    assert!(rows.covers(&empty));
    assert!(Footprint::whole(0).is_empty());
}

#[test]
fn as_many_elements_as_bytes_may_leave_gaps() {
    // The sums 2 i + 3 j for i, j < 4 are sixteen numbers from 0 to 15; 6 occurs twice, and 1 never.
    let sums = f32s(0, &[(4, 2), (4, 3)]);
    assert!(!sums.covers(&f32s(0, &[(1, 0), (2, 1)])));
    let dense = f32s(0, &[(4, 1), (4, 3)]);
    assert!(dense.covers(&f32s(5, &[(1, 0), (2, 4)])));
}

/// Tensors too large for any memory: every answer is conservative, and nothing overflows.
#[test]
fn numbers_at_the_ends_of_their_types_overlap_with_what_is_near() {
    let ends = [i64::MIN, i64::MIN + 1, -1, 0, 1, 2, i64::MAX - 1, i64::MAX];
    let near = f32s(0, &[(4, 1)]);
    for first in ends {
        for extent in ends {
            for stride in ends {
                let tensor = f32s(first, &[(extent, stride), (3, 1), (extent, stride)]);
                if extent <= 0 {
                    assert!(tensor.is_empty() && !tensor.overlaps(&near));
                } else if first == 0 {
                    assert!(tensor.overlaps(&near) && near.overlaps(&tensor), "{extent} {stride}");
                }
                let (all, _) = (tensor.covers(&near), near.covers(&tensor));
                // Two, three and two adjacent elements, in either direction, are five elements, and may include the four.
                let reaches = (-1..=2).contains(&first);
                assert!(!all || extent <= 0 || reaches || extent > 4, "{first} {extent} {stride}");
            }
        }
    }
    // These are more axes than are distinguished.
    let many = f32s(0, &[(2, 512); 12]);
    assert!(many.overlaps(&f32s(7, &[(1, 1)])) && !many.covers(&near));
}

fn tensor() -> impl Strategy<Value = Tensor> {
    let elem = prop::sample::select(vec![Elem::I4, Elem::I8, Elem::F16, Elem::F32, Elem::F64]);
    (elem, 20i64..50, prop::collection::vec((0i64..5, -7i64..12), 1..4)).prop_map(|(elem, first, axes)| {
        let first = first * 16 / i64::from(elem.bits() / 4);
        Tensor { elem, first, axes }
    })
}

proptest! {
    #[test]
    fn overlap_is_exact_for_small_tensors(a in tensor(), b in tensor()) {
        let (na, nb) = (a.nibbles(), b.nibbles());
        let (fa, fb) = (a.footprint(), b.footprint());
        prop_assert_eq!(fa.overlaps(&fb), na.iter().any(|x| nb.contains(x)), "{:?} {:?}", a, b);
        prop_assert_eq!(fa.overlaps(&fb), fb.overlaps(&fa));
        if fa.covers(&fb) {
            prop_assert!(nb.iter().all(|x| na.contains(x)), "{:?} {:?}", a, b);
        }
        if let (Some(least), Some(most)) = (na.iter().min(), na.iter().max()) {
            let unit = i64::from(a.elem.bits() / 4);
            prop_assert_eq!(fa.elements(), (i128::from(least / unit), i128::from(most / unit)));
            prop_assert_eq!(fa.bytes(), i128::from(least / 2)..i128::from(most / 2 + 1));
        } else {
            prop_assert!(fa.is_empty());
        }
    }
}
