//! The order of output tiles in groups of rows, for every small box.

use titan_core::ir::grouped;

/// The same order in its usual formulation, by the number of the group and the remainder.
fn by_number(i: i32, [height, width]: [i32; 2], rows: i32) -> [i32; 2] {
    let in_group = rows * width;
    let first = i / in_group * rows;
    let size = (height - first).min(rows);
    [first + i % in_group % size, i % in_group / size]
}

#[test]
fn every_small_box_is_permuted() {
    for (height, width, rows) in (0..=9).flat_map(|h| (0..=9).flat_map(move |w| (1..=11).map(move |r| (h, w, r)))) {
        let mut seen = vec![false; (height * width) as usize];
        for i in 0..height * width {
            let [m, n] = grouped([i / width, i % width], [height, width], rows);
            assert_eq!([m, n], by_number(i, [height, width], rows), "{i} of {height}x{width} by {rows}");
            assert!((0..height).contains(&m) && (0..width).contains(&n));
            assert!(!std::mem::replace(&mut seen[(m * width + n) as usize], true), "{m}, {n} comes twice");
        }
        assert!(seen.iter().all(|s| *s));
        for [row, column] in [[-1, 0], [0, -1], [height, 0], [0, width], [i32::MIN, i32::MAX]] {
            assert_eq!(grouped([row, column], [height, width], rows), [row, column]);
        }
    }
}

#[test]
fn large_boxes_do_not_overflow() {
    let (height, width) = (1 << 15, 1 << 15);
    assert_eq!(grouped([height - 1, width - 1], [height, width], i32::MAX), [height - 1, width - 1]);
    assert_eq!(grouped([1, 0], [2, i32::MAX], 2), [1, i32::MAX / 2]);
}

#[test]
fn parts_of_consecutive_numbers_are_consecutive() {
    for (height, width, rows) in [(7, 5, 3), (4, 4, 4), (5, 1, 2), (1, 6, 2), (9, 2, 1)] {
        let (mut most, mut widest) = (-1, -1);
        for i in 0..height * width {
            let [m, n] = grouped([i / width, i % width], [height, width], rows);
            assert!(m <= most + 1 && n <= widest + 1 && m <= i && n <= i);
            (most, widest) = (most.max(m), widest.max(n));
        }
    }
}
