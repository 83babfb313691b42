//! The order of output tiles in groups of rows, for matrix products: programs that run concurrently then read few rows of one factor and
//! few columns of the other, which stay in the L2 cache.
//!
//! ```text
//! rows in groups of 2      0 2 4
//!                          1 3 5
//!                          6 7 8     the last group has one row
//! ```
//!
//! It is a bijection of the box onto itself. A position and its image are in the same group of rows. Within a group of `s` rows and `w`
//! columns, `l = r·w + c` and `l = c'·s + r'` each number the same `s·w` positions. Positions outside the box are unchanged, so the whole
//! function is a bijection.

/// The position that comes at index `row·width + column` of the grouped order. Rows are taken in groups of `rows`, and each group is
/// traversed column by column; `extents` are height and width. A position outside the box is unchanged.
#[must_use]
pub fn grouped([row, column]: [i32; 2], [height, width]: [i32; 2], rows: i32) -> [i32; 2] {
    if !(0..height).contains(&row) || !(0..width).contains(&column) || rows < 1 {
        return [row, column];
    }
    let first = row - row % rows;
    let size = i64::from((height - first).min(rows));
    let local = i64::from(row - first) * i64::from(width) + i64::from(column);
    // Both numbers are less than an extent, so they fit in `i32`.
    let narrow = |v: i64| i32::try_from(v).unwrap_or(0);
    [first + narrow(local % size), narrow(local / size)]
}
