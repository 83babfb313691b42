//! Types of SSA values: scalars, tiles and tensors.

use super::{BarrierTy, Elem, Pipe, Token};
use std::fmt;
use std::ops::Deref;

/// The extents of a tile, rank 1 to 4, row-major: the last axis is contiguous.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TileShape {
    rank: u8,
    dims: [i32; 4],
}

impl TileShape {
    /// The maximum rank.
    pub const MAX_RANK: usize = 4;
    /// The maximum number of elements: 2²⁰, which is 4 MiB of `f32`.
    pub const MAX_LEN: i64 = 1 << 20;

    /// A shape with these extents; `None` if the rank is 0 or above 4. The extents are checked by [`TileShape::problem`].
    #[must_use]
    pub fn new(dims: &[i32]) -> Option<Self> {
        let rank = u8::try_from(dims.len()).ok().filter(|r| (1..=4).contains(r))?;
        let mut padded = [1; 4];
        padded[..dims.len()].copy_from_slice(dims);
        Some(TileShape { rank, dims: padded })
    }

    /// A description of the error in the extents; `None` if they are valid.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        if let Some(d) = self.iter().find(|d| **d < 1) {
            return Some(format!("an extent of a tile is {d}, but extents start at 1"));
        }
        let len = self.iter().fold(1i64, |n, d| n.saturating_mul(i64::from(*d)));
        (len > Self::MAX_LEN).then(|| format!("a tile of {len} elements; at most {} fit on chip", Self::MAX_LEN))
    }

    /// The number of elements. Meaningful for shapes without a [`TileShape::problem`].
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a tile is never empty")]
    pub fn len(&self) -> usize {
        self.iter().fold(1usize, |n, d| n.saturating_mul(usize::try_from(*d).unwrap_or(0)))
    }

    /// The number of axes.
    #[must_use]
    pub const fn rank(&self) -> usize {
        self.rank as usize
    }

    /// The shape without axis `axis`; `None` at rank 1, or if there is no such axis.
    #[must_use]
    pub fn without(&self, axis: usize) -> Option<Self> {
        if axis >= self.rank() {
            return None;
        }
        let rest: Vec<i32> = self.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, d)| *d).collect();
        Self::new(&rest)
    }

    /// The shape with an axis of extent `n` inserted before axis `axis`.
    #[must_use]
    pub fn with(&self, axis: usize, n: i32) -> Option<Self> {
        if axis > self.rank() {
            return None;
        }
        let mut dims = self.to_vec();
        dims.insert(axis, n);
        Self::new(&dims)
    }
}

impl Deref for TileShape {
    type Target = [i32];
    fn deref(&self) -> &[i32] {
        &self.dims[..self.rank()]
    }
}

impl fmt::Display for TileShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, d) in self.iter().enumerate() {
            if i > 0 {
                f.write_str("x")?;
            }
            d.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for TileShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{self}]")
    }
}

/// The type of an SSA value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ty {
    /// One element, which has the same value in all threads of a program.
    Scalar(Elem),
    /// A tile: an immutable array in registers.
    Tile(Elem, TileShape),
    /// A tensor in device memory, or a view of one, with extents and strides known at run time.
    Tensor(Elem, u8),
    /// A tile of a tensor, as the source of a copy.
    Source(Elem, TileShape),
    /// A tile in shared memory, such as one of a stage.
    Smem(Elem, TileShape),
    /// An MMA in flight, with the type of its result. A linear type.
    Compute(Elem, TileShape),
    /// An accumulator, with the maximum number of its MMAs in flight. A linear type.
    Acc(Elem, TileShape, u8),
    /// A token: the permission to do one thing with one stage of a ring. A linear type.
    Token(Token, Pipe),
    /// A type of the barrier dialects.
    Barrier(BarrierTy),
}

impl Ty {
    /// The type of indices.
    pub const I32: Ty = Ty::Scalar(Elem::I32);
    /// The type of conditions.
    pub const BOOL: Ty = Ty::Scalar(Elem::Bool);

    /// The element type; `bool` for tokens and values of the barrier dialects, which have none.
    #[must_use]
    pub const fn elem(self) -> Elem {
        match self {
            Ty::Scalar(e)
            | Ty::Tile(e, _)
            | Ty::Tensor(e, _)
            | Ty::Source(e, _)
            | Ty::Smem(e, _)
            | Ty::Compute(e, _)
            | Ty::Acc(e, ..) => e,
            Ty::Token(..) | Ty::Barrier(_) => Elem::Bool,
        }
    }

    /// Whether the type is linear: its values must be consumed exactly once on every path.
    #[must_use]
    pub const fn is_linear(self) -> bool {
        matches!(self, Ty::Compute(..) | Ty::Acc(..) | Ty::Token(..))
    }

    /// Whether loops may carry values of the type, and branches may yield them.
    #[must_use]
    pub const fn is_carried(self) -> bool {
        matches!(self, Ty::Scalar(_) | Ty::Tile(..)) || self.is_linear()
    }

    /// The ring of a token.
    #[must_use]
    pub const fn ring(self) -> Option<Pipe> {
        match self {
            Ty::Token(_, pipe) => Some(pipe),
            Ty::Scalar(_)
            | Ty::Tile(..)
            | Ty::Tensor(..)
            | Ty::Source(..)
            | Ty::Smem(..)
            | Ty::Compute(..)
            | Ty::Acc(..)
            | Ty::Barrier(_) => None,
        }
    }

    /// The extents of a tile, whether it is in registers, in a tensor, in shared memory, or the result of an MMA in flight.
    #[must_use]
    pub const fn tile_shape(self) -> Option<TileShape> {
        match self {
            Ty::Tile(_, s) | Ty::Source(_, s) | Ty::Smem(_, s) | Ty::Compute(_, s) | Ty::Acc(_, s, _) => Some(s),
            Ty::Scalar(_) | Ty::Tensor(..) | Ty::Token(..) | Ty::Barrier(_) => None,
        }
    }

    /// Whether the elements of a value are held in registers: tiles, and the results of MMAs in flight.
    #[must_use]
    pub const fn is_in_registers(self) -> bool {
        matches!(self, Ty::Tile(..) | Ty::Compute(..) | Ty::Acc(..))
    }

    /// The same type with another element type.
    #[must_use]
    pub const fn with_elem(self, elem: Elem) -> Ty {
        match self {
            Ty::Scalar(_) => Ty::Scalar(elem),
            Ty::Tile(_, s) => Ty::Tile(elem, s),
            Ty::Tensor(_, r) => Ty::Tensor(elem, r),
            Ty::Source(_, s) => Ty::Source(elem, s),
            Ty::Smem(_, s) => Ty::Smem(elem, s),
            Ty::Compute(_, s) => Ty::Compute(elem, s),
            Ty::Acc(_, s, keep) => Ty::Acc(elem, s, keep),
            Ty::Token(..) | Ty::Barrier(_) => self,
        }
    }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Ty::Scalar(e) => f.write_str(e.name()),
            Ty::Tile(e, s) => {
                f.write_str("tile<")?;
                s.fmt(f)?;
                f.write_str("x")?;
                f.write_str(e.name())?;
                f.write_str(">")
            }
            Ty::Tensor(e, r) => write!(f, "tensor<{e}, {r}>"),
            Ty::Source(e, s) => write!(f, "source<{s}x{e}>"),
            Ty::Smem(e, s) => write!(f, "smem<{s}x{e}>"),
            Ty::Compute(e, s) => write!(f, "compute<{s}x{e}>"),
            Ty::Acc(e, s, keep) => write!(f, "acc<{keep}, {s}x{e}>"),
            Ty::Token(token, pipe) => write!(f, "{token}<{}>", pipe.index()),
            Ty::Barrier(raw) => raw.fmt(f),
        }
    }
}
