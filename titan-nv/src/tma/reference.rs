//! The effect of a bulk tensor copy, element by element: a reference for emulators and lowerings.
//!
//! It is as simple as possible, and shares no code with what it checks: the permutations of the swizzles are written down as the
//! PTX ISA manual prints them, coordinates and positions are counted one by one.
//!
//! ```text
//! tma(x, sa; ga, gs, bs, gr, er, op):
//!     for every position i of the tile, of ceil(bs / er) elements, dimension 0 fastest:
//!         p = x + i * er                              where in the tensor
//!         s = sa + bytes of the positions before i    where in shared memory, then swizzled
//!         load:   shared[s] = 0 <= p < gs ? global[ga + p * gr] : fill
//!         store:  if 0 <= p < gs: global[ga + p * gr] = shared[s]
//! ```
//!
//! Source: PTX ISA, "Tensors" (tiled mode, out-of-boundary access, traversal stride, swizzling modes); CUDA driver API,
//! `cuTensorMapEncodeTiled`.
//!
//! Deliberately absent: limits ([`TensorMap::check`]), barriers, and when the copy happens.

use super::{Fill, MAX_RANK, Swizzle, TensorMap};

/// The direction of a bulk tensor copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From global memory to shared memory.
    Load,
    /// From shared memory to global memory.
    Store,
}

/// The reason why the effect of a copy is undefined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Undefined {
    /// The number of coordinates differs from that of the map's dimensions.
    #[error("a map of {rank} dimensions is used with {coordinates} coordinates")]
    Coordinates {
        /// The number of dimensions of the map.
        rank: u8,
        /// The number of coordinates.
        coordinates: usize,
    },
    /// Rows are narrower than the swizzle: the manuals do not specify their distance.
    #[error("rows of {bytes} bytes in shared memory are narrower than the swizzle's {span}")]
    Rows {
        /// The size of a row, in bytes.
        bytes: u64,
        /// The number of bytes that the swizzle permutes.
        span: u32,
    },
    /// An element lies outside of the memory that was given.
    #[error("byte {at} of {memory} memory is accessed, which has {bytes} bytes")]
    Outside {
        /// The memory, by name.
        memory: &'static str,
        /// The position of the element's first byte.
        at: u64,
        /// The size of the memory, in bytes.
        bytes: usize,
    },
}

/// The unit at each position of a line of 128 bytes of shared memory, in units of 16 bytes, line by line, until the pattern repeats. PTX
/// ISA, "Swizzling Modes", the table of each mode.
const LINES_32B: [[u64; 8]; 2] = [[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6]];
const LINES_64B: [[u64; 8]; 4] =
    [[0, 1, 2, 3, 4, 5, 6, 7], [1, 0, 3, 2, 5, 4, 7, 6], [2, 3, 0, 1, 6, 7, 4, 5], [3, 2, 1, 0, 7, 6, 5, 4]];
const LINES_128B: [[u64; 8]; 8] = [
    [0, 1, 2, 3, 4, 5, 6, 7],
    [1, 0, 3, 2, 5, 4, 7, 6],
    [2, 3, 0, 1, 6, 7, 4, 5],
    [3, 2, 1, 0, 7, 6, 5, 4],
    [4, 5, 6, 7, 0, 1, 2, 3],
    [5, 4, 7, 6, 1, 0, 3, 2],
    [6, 7, 4, 5, 2, 3, 0, 1],
    [7, 6, 5, 4, 3, 2, 1, 0],
];

/// The position of a byte of the plain layout. The unit at a position, and the position of a unit, are given by the same table: each
/// line is its own inverse.
fn swizzled(swizzle: Swizzle, plain: u64) -> u64 {
    let lines: &[[u64; 8]] = match swizzle {
        Swizzle::None => &[[0, 1, 2, 3, 4, 5, 6, 7]],
        Swizzle::B32 => &LINES_32B,
        Swizzle::B64 => &LINES_64B,
        Swizzle::B128 => &LINES_128B,
    };
    let (line, unit, byte) = (plain / 128, plain / 16 % 8, plain % 16);
    let units = lines.iter().cycle().nth(index(line % lines.len() as u64)).copied().unwrap_or_default();
    line * 128 + units[index(unit)] * 16 + byte
}

/// A number of bytes or elements as an index of memory; one that does not fit is past the end of all memory.
fn index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// The memories that a copy accesses.
#[derive(Debug)]
pub struct Memory<'a> {
    /// Global memory, whose first byte is the tensor's first element (`ga`).
    pub global: &'a mut [u8],
    /// Shared memory, whose first byte has the address 0.
    pub shared: &'a mut [u8],
}

/// Copies a box of the tensor that starts at the coordinates `x`, innermost first, from or to the shared memory at the address
/// `sa`.
///
/// The elements of a load that lie outside of the tensor are zero, or the NaN whose bits are all set: the manuals do not give the
/// bits of the NaN that hardware writes.
///
/// ```
/// use titan_nv::tma::{Direction, Element, Memory, TensorMap, tma};
/// // 3 rows of 20 bytes that are 32 bytes apart, in boxes of 2 rows of 16 bytes.
/// let map = TensorMap::tiled(Element::U8, 0, &[20, 3], &[32], &[16, 2]);
/// let mut global: Vec<u8> = (0..96).collect();
/// let mut shared = [0xFF; 32];
/// let memory = Memory { global: &mut global, shared: &mut shared };
/// // The second box to the right, from the last row on: 4 bytes of row 2, and nothing else, are in the tensor.
/// tma(&[16, 2], 0, &map, Direction::Load, memory)?;
/// assert_eq!(shared[..5], [80, 81, 82, 83, 0]);
/// assert_eq!(shared[5..], [0; 27]);
/// # Ok::<(), titan_nv::tma::Undefined>(())
/// ```
///
/// # Errors
/// [`Undefined`]: coordinates that do not fit the map, memory that is too short, and rows narrower than the swizzle. What was
/// copied before stays copied.
pub fn tma(x: &[i32], sa: u64, map: &TensorMap, direction: Direction, memory: Memory<'_>) -> Result<(), Undefined> {
    let rank = map.dims();
    if x.len() != rank {
        return Err(Undefined::Coordinates { rank: map.rank, coordinates: x.len() });
    }
    let bytes = u64::from(map.element.bytes());
    let row = u64::from(map.box_extents[0]) * bytes;
    if let Some(span) = map.swizzle.span().filter(|span| row < u64::from(*span)) {
        return Err(Undefined::Rows { bytes: row, span });
    }
    let mut position = [0_u32; MAX_RANK];
    let mut before = 0;
    loop {
        let place = swizzled(map.swizzle, sa + before * bytes);
        copy(source(x, map, &position), place, map, direction, &mut *memory.global, &mut *memory.shared)?;
        before += 1;
        if !next(&mut position[..rank], map) {
            return Ok(());
        }
    }
}

/// The byte of the tensor's memory at which the element at a position of the tile begins; `None` outside of the tensor.
fn source(x: &[i32], map: &TensorMap, position: &[u32; MAX_RANK]) -> Option<u64> {
    let mut byte = 0_u64;
    for (dim, start) in x.iter().enumerate() {
        let step = if dim == 0 { 1 } else { map.element_strides[dim] };
        let p = i64::from(*start) + i64::from(position[dim]) * i64::from(step);
        let p = u64::try_from(p).ok().filter(|p| *p < map.extents[dim])?;
        let stride = if dim == 0 { u64::from(map.element.bytes()) } else { map.strides[dim - 1] };
        // Addresses have 64 bits.
        byte = byte.wrapping_add(p.wrapping_mul(stride));
    }
    Some(byte)
}

/// Copies one element.
fn copy(
    source: Option<u64>,
    place: u64,
    map: &TensorMap,
    direction: Direction,
    global: &mut [u8],
    shared: &mut [u8],
) -> Result<(), Undefined> {
    let bytes = map.element.bytes() as usize;
    let room = shared.len();
    let outside = |memory, at, bytes| Undefined::Outside { memory, at, bytes };
    let to = shared.get_mut(index(place)..).and_then(|rest| rest.get_mut(..bytes));
    let to = to.ok_or_else(|| outside("shared", place, room))?;
    let Some(at) = source else {
        match direction {
            Direction::Load => to.fill(if map.fill == Fill::Nan { 0xFF } else { 0 }),
            Direction::Store => {}
        }
        return Ok(());
    };
    let room = global.len();
    let from = global.get_mut(index(at)..).and_then(|rest| rest.get_mut(..bytes));
    let from = from.ok_or_else(|| outside("global", at, room))?;
    match direction {
        Direction::Load => to.copy_from_slice(from),
        Direction::Store => from.copy_from_slice(to),
    }
    Ok(())
}

/// Counts on to the next position of the tile, dimension 0 fastest; `false` after the last.
fn next(position: &mut [u32], map: &TensorMap) -> bool {
    for (dim, i) in position.iter_mut().enumerate() {
        let step = if dim == 0 { 1 } else { map.element_strides[dim].max(1) };
        *i += 1;
        if *i < map.box_extents[dim].div_ceil(step) {
            return true;
        }
        *i = 0;
    }
    false
}
