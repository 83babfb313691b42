//! Shared-memory encodings.

use super::Coords;

/// A swizzle of shared memory: 16-byte chunks are permuted within lines of 128 bytes, by XOR of the chunk's number with low bits of the
/// line's number. The four modes are those of tensor maps (CUDA driver API, `CUtensorMapSwizzle`; PTX ISA, "Swizzling modes").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Swizzle {
    /// No permutation.
    None,
    /// Rows of 32 bytes: 1 bit is XORed.
    B32,
    /// Rows of 64 bytes: 2 bits are XORed.
    B64,
    /// Rows of 128 bytes: 3 bits are XORed.
    B128,
}

impl Swizzle {
    /// Every mode, in declaration order.
    pub const ALL: [Swizzle; 4] = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128];

    /// The width of a row in bytes, within which chunks are permuted; 16 (one chunk) without a swizzle.
    #[must_use]
    pub const fn row_bytes(self) -> u32 {
        match self {
            Swizzle::None => 16,
            Swizzle::B32 => 32,
            Swizzle::B64 => 64,
            Swizzle::B128 => 128,
        }
    }

    /// The mask of the low bits of the line's number that are XORed into the chunk's number.
    #[must_use]
    pub const fn mask(self) -> u32 {
        self.row_bytes() / 16 - 1
    }

    /// The swizzled position of the byte at a linear offset.
    #[must_use]
    pub const fn apply(self, offset: u32) -> u32 {
        offset ^ (((offset >> 7) & self.mask()) << 4)
    }
}

/// The encoding of a tile in a buffer of shared memory.
///
/// The last axis of `order` (given from the slowest to the fastest) is cut into panels of `row` elements. The panels lie one after the
/// other; a panel has one row for each position along the remaining axes, in row-major order. The swizzle is applied to the resulting
/// offsets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Encoding {
    /// The extents of the tile.
    pub extents: Vec<u32>,
    /// Bits of an element, at least 8.
    pub bits: u32,
    /// The axes from the slowest to the fastest.
    pub order: Vec<usize>,
    /// The number of elements in one row of a panel.
    pub row: u32,
    /// The distance between the starts of consecutive rows in bytes: the size of a row, or more to avoid bank conflicts.
    pub pitch: u32,
    /// The swizzle, which is applied last.
    pub swizzle: Swizzle,
}

impl Encoding {
    /// The encoding that matrix instructions read without bank conflicts: the widest swizzle whose row size divides the tile's rows. If the
    /// rows are not a multiple of 32 bytes, there is no swizzle, and each row begins at a multiple of 16 bytes.
    #[must_use]
    pub fn swizzled(extents: &[u32], bits: u32, order: &[usize]) -> Self {
        let fast = order.last().and_then(|a| extents.get(*a)).copied().unwrap_or(1);
        let bytes = fast * bits / 8;
        let modes = [Swizzle::B128, Swizzle::B64, Swizzle::B32];
        let (row, pitch, swizzle) = match modes.into_iter().find(|m| bytes.is_multiple_of(m.row_bytes())) {
            Some(mode) => (mode.row_bytes() * 8 / bits, mode.row_bytes(), mode),
            None => (fast, bytes.next_multiple_of(16), Swizzle::None),
        };
        Encoding { extents: extents.to_vec(), bits, order: order.to_vec(), row, pitch, swizzle }
    }

    /// The encoding of core matrices: panels of one 16-byte chunk, so that 8 rows of a panel are 128 adjacent bytes, without a swizzle. The
    /// rows of the tile are a multiple of 16 bytes. MMAs of warpgroups read it from any chunk of a row on; each panel is a box of its own.
    #[must_use]
    pub fn core_matrices(extents: &[u32], bits: u32, order: &[usize]) -> Self {
        let pitch = Swizzle::None.row_bytes();
        let row = pitch * 8 / bits.max(1);
        Encoding { extents: extents.to_vec(), bits, order: order.to_vec(), row, pitch, swizzle: Swizzle::None }
    }

    /// A row-major encoding with rows padded by `pad` bytes, or by one element if that is more, for exchanges between register layouts.
    /// There is no padding if `pad` is 0.
    #[must_use]
    pub fn padded(extents: &[u32], bits: u32, order: &[usize], pad: u32) -> Self {
        let fast = order.last().and_then(|a| extents.get(*a)).copied().unwrap_or(1);
        let pad = if pad == 0 { 0 } else { pad.max(bits / 8) };
        let pitch = (fast * bits / 8).next_multiple_of(pad.max(1)) + pad;
        Encoding { extents: extents.to_vec(), bits, order: order.to_vec(), row: fast, pitch, swizzle: Swizzle::None }
    }

    /// Checks that the fields are consistent.
    ///
    /// # Errors
    /// A description of the inconsistency.
    pub fn check(&self) -> Result<(), String> {
        let rank = self.extents.len();
        let mut axes = self.order.clone();
        axes.sort_unstable();
        if rank == 0 || axes.iter().copied().ne(0..rank) {
            return Err(format!("the order of {rank} axes names each of them once"));
        }
        if ![8, 16, 32, 64].contains(&self.bits) {
            return Err(format!("elements of {} bits: 8, 16, 32 and 64 are possible", self.bits));
        }
        let bytes = u64::from(self.row) * u64::from(self.bits / 8);
        let rows: u64 = self.extents.iter().map(|n| u64::from(*n)).product::<u64>().max(1);
        if self.row == 0 || u64::from(self.pitch) < bytes || u64::from(self.pitch).saturating_mul(rows) >= 1 << 31 {
            return Err(format!("rows of {bytes} bytes, {} bytes apart", self.pitch));
        }
        if self.swizzle != Swizzle::None && (self.pitch != self.swizzle.row_bytes() || bytes != u64::from(self.pitch)) {
            return Err(format!("a swizzle of rows of {} bytes", self.swizzle.row_bytes()));
        }
        Ok(())
    }

    /// The axis along which consecutive elements are adjacent in memory.
    #[must_use]
    pub fn fast_axis(&self) -> usize {
        self.order.last().copied().unwrap_or(0)
    }

    /// Whether the panels have rows of one 16-byte chunk and no swizzle.
    #[must_use]
    pub fn has_core_matrices(&self) -> bool {
        let bytes = Swizzle::None.row_bytes();
        self.swizzle == Swizzle::None && self.pitch == bytes && self.row * self.bits == 8 * bytes
    }

    /// The number of rows of a panel.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.order.iter().rev().skip(1).map(|a| self.extents[*a]).product()
    }

    /// The size of the buffer in bytes.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        let panels = self.extents.get(self.fast_axis()).map_or(1, |n| n.div_ceil(self.row));
        panels * self.rows() * self.pitch
    }

    /// The alignment of the buffer in bytes: a swizzle repeats after 2, 4 or 8 lines of 128 bytes. Boxes of core matrices begin at lines.
    #[must_use]
    pub fn align(&self) -> u32 {
        match self.swizzle {
            Swizzle::None if !self.has_core_matrices() => 16,
            Swizzle::None | Swizzle::B32 | Swizzle::B64 | Swizzle::B128 => 128 * (self.swizzle.mask() + 1),
        }
    }

    /// The encoding of the transposed tile in the same bytes: axis `i` of the result is axis `perm[i]` of this one.
    #[must_use]
    pub fn permuted(&self, perm: &[u8]) -> Encoding {
        let place = |a: usize| perm.iter().position(|p| usize::from(*p) == a).unwrap_or(a);
        Encoding {
            extents: perm.iter().map(|p| self.extents[usize::from(*p)]).collect(),
            order: self.order.iter().map(|a| place(*a)).collect(),
            ..self.clone()
        }
    }

    /// The offset of an element in the buffer, in bytes.
    #[must_use]
    pub fn offset(&self, at: Coords) -> u32 {
        self.swizzle.apply(self.linear(at))
    }

    /// The offset of an element in bytes, before the swizzle is applied.
    #[must_use]
    pub fn linear(&self, at: Coords) -> u32 {
        let fast = at[self.fast_axis()];
        let (panel, column) = (fast / self.row, fast % self.row);
        let row = self.order.iter().rev().skip(1).rev().fold(0, |row, axis| row * self.extents[*axis] + at[*axis]);
        (panel * self.rows() + row) * self.pitch + column * self.bits / 8
    }

    /// The width of vector accesses, in elements along the fast axis: this many elements, starting at a multiple of their number, are
    /// contiguous in memory and aligned to their total size. It is a power of two, and at most 16 bytes. A vector may extend into the
    /// padding of a row.
    #[must_use]
    pub fn vector(&self) -> u32 {
        let bytes = (1 << self.pitch.trailing_zeros().min(4)).min(1 << (self.row * self.bits / 8).max(1).ilog2());
        (bytes * 8 / self.bits).max(1)
    }
}
