//! Maps for parts of a tensor: one map, made by the launch, by which code copies parts `lo..hi` along an axis whose bounds only it knows.
//!
//! A copy stops at the extents of its map, and a part ends elsewhere. So the map says that the axis has 2³⁰ rows, and coordinates are such
//! that row `hi` of the tensor is row 2³⁰ of the map. Two more dimensions move the copy back to where the part lies. With the distance `s`
//! of rows in bytes:
//!
//! ```text
//! dimension     extent        stride        coordinate of row i of the part
//! the axis      2^30          s             2^30 - (hi - lo) + i
//! the first     0x7fff0000    s             hi
//! the last      0x7fff0000    2^34 - s      2^30
//! ```
//!
//! The sum of coordinates times strides, in bytes:
//!
//! ```text
//!   (2^30 - (hi - lo) + i) s + hi s + 2^30 (2^34 - s)
//! = (2^30 + lo + i) s + 2^64 - 2^30 s
//! = 2^64 + (lo + i) s
//! ```
//!
//! Addresses have 64 bits, so this is row `lo + i` of the tensor, which is row `i` of the part.
//!
//! **Where a copy stops.** Row `i` is inside of the map exactly if `2^30 - (hi - lo) + i < 2^30`, which is `i < hi - lo`, provided that
//! `0 <= i`, which code checks. So loads write zeros for rows behind the part, and stores write none of them. If the part has rows, the two
//! other coordinates are inside of their extents: `hi` is at most the extent of the tensor, which is at most 2³⁰. No coordinate
//! overflows: code replaces rows outside of the part by 2³⁰, and the last row of a box is at most 255 further.
//!
//! **Example.** Rows of 64 halves, so `s` = 128, and row 1 of the part 5..8 has the coordinates 2³⁰ - 3 + 1, 8 and 2³⁰. They are
//! `(2^30 - 2) 128 + 8 * 128 + 2^30 (2^34 - 128)` = 2⁶⁴ + 768 bytes from the beginning of the tensor, where row 6 lies. Row 3 would be row 8 of
//! the tensor, which is not in the part; its first coordinate is 2³⁰, outside of the map.
//!
//! **Limits.** Both strides must be multiples of 16 bytes, positive and less than 2⁴⁰, which they are if `s` is a multiple of 16 less than 2³⁴.
//! The tensor has at most three dimensions, since a map has five. Along the innermost dimension there are no parts: its stride is not a
//! field of a map.
//!
//! Deliberately absent: how code computes the coordinates (`titan_core::launch::abi::MapParam` states them), and parts of parts.

use super::{MAX_RANK, TensorMap, TensorMapError, Unfit};

/// The number of rows of a map for parts, and the coordinate along its last dimension.
const ROWS: u64 = 1 << 30;
/// The extents of the two more dimensions, which no coordinate reaches.
const MOST: u64 = 0x7fff_0000;
/// The sum of the strides of the two more dimensions: 2³⁰ of it wrap at 2⁶⁴.
const WRAPS: u64 = 1 << 34;

impl TensorMap {
    /// The map for parts along a dimension of the tensor that this map describes.
    pub(super) fn for_parts(self, dim: usize) -> Result<TensorMap, Unfit> {
        let rank = self.dims();
        if rank + 2 > MAX_RANK {
            return Err(TensorMapError::Rank(self.rank.saturating_add(2)).into());
        }
        if dim == 0 || dim >= rank {
            return Err(Unfit::PartDimension { dim });
        }
        let row = self.strides[dim - 1];
        let back = WRAPS.checked_sub(row).filter(|back| *back > 0).ok_or(Unfit::PartStride { dim, bytes: row })?;
        let mut map = self;
        map.rank += 2;
        map.extents[dim] = ROWS;
        (map.extents[rank], map.extents[rank + 1]) = (MOST, MOST);
        (map.strides[rank - 1], map.strides[rank]) = (row, back);
        map.check()?;
        Ok(map)
    }
}
