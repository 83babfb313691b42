//! Boxes of tensors as pieces that are adjacent in global and in shared memory.
//!
//! The elements of a box are in shared memory in the order of the tensor's dimensions, the innermost first, and swizzled by
//! units of 16 bytes. Elements outside of the tensor are filled by loads, and left out by stores. Addresses wrap at 2⁶⁴: kernels reach
//! parts of a tensor by extents and strides whose products are multiples of that (`titan-nv/tests/triton/device.rs`).
//!
//! Source: PTX ISA, "Tensors", "Tiled mode", "Out-of-bounds access", "Element strides".

use super::error::ErrorCode;
use super::exec::Fail;
use super::job::{Other, Piece};
use crate::tma::{Fill, TensorMap};

/// The unit of swizzling, in bytes.
const UNIT: u64 = 16;

/// The pieces of the box whose first element is at `coords`, when it lies at `shared`.
pub(crate) fn pieces(map: &TensorMap, coords: &[i64], shared: u64, is_load: bool) -> Result<Vec<Piece>, Fail> {
    let size = u64::from(map.element.bytes());
    let row_bytes = u64::from(map.box_extents[0]) * size;
    if map.swizzle.span().is_some_and(|span| u64::from(span) != row_bytes) {
        let message = format!("a swizzled box with rows of {row_bytes} bytes, fewer than the swizzle, is not emulated");
        return Err(Fail::new(ErrorCode::Unknown, message));
    }
    let dims = map.dims();
    let rows: u64 = (1..dims).map(|dim| u64::from(map.tile(dim))).product();
    let outside = Other::Outside(pattern(map));
    let mut all = Vec::new();
    for row in 0..rows {
        let (mut rest, mut start, mut is_inside) = (row, map.address.cast_signed(), true);
        for (dim, coord) in coords.iter().enumerate().take(dims).skip(1) {
            let n = u64::from(map.tile(dim));
            let at = coord + (rest % n * u64::from(map.element_strides[dim])).cast_signed();
            rest /= n;
            is_inside &= at >= 0 && at.cast_unsigned() < map.extents[dim];
            start = start.wrapping_add(at.wrapping_mul(map.strides[dim - 1].cast_signed()));
        }
        // The innermost dimension has no element stride.
        let first = (-coords[0]).clamp(0, i64::from(map.box_extents[0])).cast_unsigned();
        let end = (map.extents[0].cast_signed() - coords[0]).clamp(0, i64::from(map.box_extents[0])).cast_unsigned();
        let (first, end) = if is_inside { (first * size, end.max(first) * size) } else { (0, 0) };
        let mut at = 0;
        while at < row_bytes {
            let limit = (at / UNIT + 1) * UNIT;
            let (until, is_data) = match at {
                _ if at < first => (limit.min(first), false),
                _ if at < end => (limit.min(end), true),
                _ => (limit, false),
            };
            let global = start.wrapping_add(coords[0] * size.cast_signed() + at.cast_signed());
            let other = if is_data { Other::Global(global.cast_unsigned()) } else { outside };
            if is_load || is_data {
                let shared = map.swizzle.apply(shared + row * row_bytes + at);
                all.push(Piece { shared, other, bytes: u32::try_from(until - at).unwrap_or(0) });
            }
            at = until;
        }
    }
    Ok(all)
}

/// The bytes that fill elements outside of the tensor. No manual gives the bits of the NaN: here they are all set.
fn pattern(map: &TensorMap) -> [u8; 8] {
    match map.fill {
        Fill::Nan => [0xFF; 8],
        Fill::Zero => [0; 8],
    }
}
