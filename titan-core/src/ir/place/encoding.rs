//! Shared-memory encodings.

use super::Coords;

/// How 16-byte chunks are exchanged within the lines of 128 bytes: the chunk's number is XORed with low bits of the line's
/// number. The four modes are those of tensor maps (CUDA driver API, `CUtensorMapSwizzle`; PTX ISA, "Swizzling modes").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Swizzle {
    /// No exchange.
    None,
    /// Rows of 32 bytes: 1 bit.
    B32,
    /// Rows of 64 bytes: 2 bits.
    B64,
    /// Rows of 128 bytes: 3 bits.
    B128,
}

impl Swizzle {
    /// Every mode, in declaration order.
    pub const ALL: [Swizzle; 4] = [Swizzle::None, Swizzle::B32, Swizzle::B64, Swizzle::B128];

    /// The bytes of a row, which is what repeats; 16 without exchange.
    #[must_use]
    pub const fn row_bytes(self) -> u32 {
        match self {
            Swizzle::None => 16,
            Swizzle::B32 => 32,
            Swizzle::B64 => 64,
            Swizzle::B128 => 128,
        }
    }

    /// The low bits of the line's number that take part.
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
/// The last axis of `order` (given from the slowest to the fastest) is cut into panels of `row` elements; panels lie one after
/// the other, each row after row, where a row is named by the other axes, row-major in their order. Then chunks are exchanged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Encoding {
    /// The tile's extents.
    pub extents: Vec<u32>,
    /// Bits of an element: 8 and more.
    pub bits: u32,
    /// The axes from the slowest to the fastest.
    pub order: Vec<usize>,
    /// Elements of a row of a panel.
    pub row: u32,
    /// Bytes from row to row: those of the elements, or more to spread banks.
    pub pitch: u32,
    /// The exchange.
    pub swizzle: Swizzle,
}

impl Encoding {
    /// The encoding that matrix instructions read without bank conflicts: the widest swizzle whose rows the tile has. If the
    /// rows are not a multiple of 32 bytes, a plain one with rows on multiples of 16 bytes.
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

    /// Row-major with rows padded by `pad` bytes, or by one element if that is more: for exchanges between register layouts. Without
    /// padding if `pad` is 0.
    #[must_use]
    pub fn padded(extents: &[u32], bits: u32, order: &[usize], pad: u32) -> Self {
        let fast = order.last().and_then(|a| extents.get(*a)).copied().unwrap_or(1);
        let pad = if pad == 0 { 0 } else { pad.max(bits / 8) };
        let pitch = (fast * bits / 8).next_multiple_of(pad.max(1)) + pad;
        Encoding { extents: extents.to_vec(), bits, order: order.to_vec(), row: fast, pitch, swizzle: Swizzle::None }
    }

    /// Checks consistency.
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

    /// The axis whose neighbours are neighbours in memory.
    #[must_use]
    pub fn fast_axis(&self) -> usize {
        self.order.last().copied().unwrap_or(0)
    }

    /// Rows of a panel.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.order.iter().rev().skip(1).map(|a| self.extents[*a]).product()
    }

    /// Bytes of the buffer.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        let panels = self.extents.get(self.fast_axis()).map_or(1, |n| n.div_ceil(self.row));
        panels * self.rows() * self.pitch
    }

    /// The alignment of the buffer: 8 lines, after which a swizzle repeats.
    #[must_use]
    pub fn align(&self) -> u32 {
        if self.swizzle == Swizzle::None { 16 } else { 128 * (self.swizzle.mask() + 1) }
    }

    /// The tile as its transpose: the same bytes, axis `i` of the result is axis `perm[i]` of this one.
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

    /// Its offset without the swizzle.
    #[must_use]
    pub fn linear(&self, at: Coords) -> u32 {
        let fast = at[self.fast_axis()];
        let (panel, column) = (fast / self.row, fast % self.row);
        let row = self.order.iter().rev().skip(1).rev().fold(0, |row, axis| row * self.extents[*axis] + at[*axis]);
        (panel * self.rows() + row) * self.pitch + column * self.bits / 8
    }

    /// How many neighbours along the fast axis, from a multiple of their number on, are neighbours in memory and begin on a
    /// multiple of their bytes: a power of two, of at most 16 bytes. What of them lies beyond a row is its padding.
    #[must_use]
    pub fn vector(&self) -> u32 {
        let bytes = (1 << self.pitch.trailing_zeros().min(4)).min(1 << (self.row * self.bits / 8).max(1).ilog2());
        (bytes * 8 / self.bits).max(1)
    }
}
