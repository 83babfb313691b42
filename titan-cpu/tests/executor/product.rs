//! Matrix products on slices, against loops.

use titan_cpu::internals::{Matrix, product};

#[test]
fn products_of_every_order_agree_with_loops() {
    let (m, n, k) = (5, 7, 11);
    let a: Vec<f32> = (0u8..55).map(|i| f32::from(i % 13) - 6.0).collect();
    let b: Vec<f32> = (0u8..77).map(|i| f32::from(i % 17) - 8.0).collect();
    for (a_row, a_col) in [(11isize, 1isize), (1, 5)] {
        for (b_row, b_col) in [(7isize, 1isize), (1, 11)] {
            for add in [false, true] {
                let mut c = vec![2.0f32; m * n];
                let at = |i: usize, s: isize| i * s.unsigned_abs();
                let mut want = vec![if add { 2.0 } else { 0.0 }; m * n];
                for i in 0..m {
                    for j in 0..n {
                        for l in 0..k {
                            want[i * n + j] += a[at(i, a_row) + at(l, a_col)] * b[at(l, b_row) + at(j, b_col)];
                        }
                    }
                }
                let left = Matrix { data: &a, first: 0, row: a_row, col: a_col };
                let right = Matrix { data: &b, first: 0, row: b_row, col: b_col };
                product((&mut c, n), [m, n, k], add, left, right);
                assert_eq!(c, want);
            }
        }
    }
}

/// A sum to which a zero is added is never −0, however short it is.
#[test]
fn sums_of_negative_zeros_are_added_to_a_zero() {
    let (a, b) = ([-1.0f32; 16], [0.0f32; 16]);
    for k in 1..=16 {
        for (m, n) in [(1, 1), (1, 2), (2, 1), (2, 2), (4, 1)].into_iter().filter(|(m, n)| m * k <= 16 && n * k <= 16) {
            for (add, before) in [(false, -0.0), (false, f32::NAN), (true, 0.0)] {
                let mut c = vec![before; m * n];
                let left = Matrix { data: &a, first: 0, row: k as isize, col: 1 };
                let right = Matrix { data: &b, first: 0, row: n as isize, col: 1 };
                product((&mut c, n), [m, n, k], add, left, right);
                assert!(c.iter().all(|sum| sum.to_bits() == 0), "{m} × {n} × {k}, add: {add}: {c:?}");
            }
        }
    }
}

#[test]
fn a_matrix_knows_its_bounds() {
    let data = [0.0f32; 12];
    let matrix = |first, row, col| Matrix { data: &data, first, row, col };
    assert!(matrix(0, 4, 1).holds(3, 4));
    assert!(!matrix(1, 4, 1).holds(3, 4));
    assert!(matrix(11, -4, -1).holds(3, 4));
    assert!(!matrix(10, -4, -1).holds(3, 4));
    assert!(matrix(3, 0, 0).holds(100, 100));
}
