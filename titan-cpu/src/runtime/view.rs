//! Views of tensors during a launch, which convert coordinates to addresses.
//!
//! A view has four axes, and before them an outer one; a tensor of lower rank has leading axes of extent 1, so that the last
//! axis is always number 3. Tiles have four axes at most, so only single elements, rows and parts of a tensor of rank 5 use
//! the outer axis, and [`View::outer`] then returns a view without it.
//! Element offsets count elements from the start of the memory; for the 4-bit types, nibbles.

use super::launch::{Covered, Slot};
use super::memory::Lease;
use std::marker::PhantomData;
use std::ptr::NonNull;
use titan_core::ir::Elem;

/// A tensor or a part of one. Cheap to copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'m> {
    /// The start of the memory.
    pub(super) bytes: NonNull<u8>,
    /// The number of elements of the memory.
    pub(super) len: i64,
    pub(super) elem: Elem,
    /// The element at coordinate zero.
    pub(super) base: i64,
    extents: [i32; 4],
    strides: [i64; 4],
    /// Extent and stride of the first axis of a tensor of rank 5; 1 and 0 below.
    first: (i32, i64),
    rank: usize,
    pub(super) writable: bool,
    /// The span of the tensor, if nothing in the launch writes there.
    frozen: Option<Frozen<'m>>,
    /// Whether nothing in the launch writes to a byte of the tensor, also where its elements are parts of bytes.
    pub(super) unwritten: bool,
    /// Whether other programs may be accessing the elements, although no correct launch does that: then every access is atomic.
    pub(super) contended: bool,
    /// Whether every coordinate is outside.
    outside: bool,
    /// Whether it is, or is a part of, a tensor that the launch has.
    given: bool,
    lease: PhantomData<&'m Lease>,
}

/// The identity of a view's elements. Two views of one launch with equal keys have the same elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ViewKey {
    bytes: usize,
    base: i64,
    extents: [i32; 4],
    strides: [i64; 4],
    first: (i32, i64),
}

/// Memory that a launch only reads.
#[derive(Clone, Copy, Debug)]
struct Frozen<'m> {
    bytes: &'m [u8],
    /// The element with which the bytes begin.
    origin: i64,
}

// SAFETY: a view is an address in a memory that is leased for `'m`, by the launch whose threads share it. What those threads
// may do with the address is said in the header of `runtime`.
unsafe impl Send for View<'_> {}
// SAFETY: as above.
unsafe impl Sync for View<'_> {}

/// The part of a tile that is inside of a tensor: for each axis, the first element and the one after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inside {
    pub(crate) lo: [i64; 4],
    pub(crate) hi: [i64; 4],
}

impl Inside {
    pub(crate) fn is_all(&self, shape: [i32; 4]) -> bool {
        self.lo == [0; 4] && self.hi == shape.map(i64::from)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lo.iter().zip(&self.hi).any(|(lo, hi)| lo >= hi)
    }

    /// Calls `f` for each row, with its leading coordinates.
    pub(crate) fn rows(&self, mut f: impl FnMut([i64; 3])) {
        if self.is_empty() {
            return;
        }
        for i in self.lo[0]..self.hi[0] {
            for j in self.lo[1]..self.hi[1] {
                for k in self.lo[2]..self.hi[2] {
                    f([i, j, k]);
                }
            }
        }
    }
}

impl<'m> View<'m> {
    /// The view of a bound tensor.
    pub(super) fn new(lease: &'m Lease, slot: &Slot) -> Self {
        let (bytes, len, exclusive) = lease.parts();
        View {
            bytes,
            len: elements(slot.elem, len),
            elem: slot.elem,
            base: slot.base,
            extents: slot.extents,
            strides: slot.strides,
            first: slot.first,
            rank: slot.rank,
            writable: slot.writable && exclusive,
            frozen: Frozen::new(lease, slot),
            unwritten: slot.frozen,
            contended: false,
            outside: false,
            given: true,
            lease: PhantomData,
        }
    }

    /// The view of an absent tensor: every coordinate is outside.
    pub(crate) fn absent(elem: Elem, rank: usize) -> Self {
        View {
            bytes: NonNull::dangling(),
            len: 0,
            elem,
            base: 0,
            extents: [0; 4],
            strides: [0; 4],
            first: (0, 0),
            rank,
            writable: false,
            frozen: None,
            unwritten: false,
            contended: false,
            outside: true,
            given: false,
            lease: PhantomData,
        }
    }

    /// Whether the launch has the tensor.
    pub(crate) fn is_given(&self) -> bool {
        self.given
    }

    pub(crate) fn elem(&self) -> Elem {
        self.elem
    }

    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// The index among the four axes of an axis of the tensor; `None` for the one before them.
    fn axis(&self, axis: u8) -> Option<usize> {
        (4 + usize::from(axis)).checked_sub(self.rank.min(5)).map(|axis| axis.min(3))
    }

    /// The extent along an axis of the tensor.
    pub(crate) fn extent(&self, axis: u8) -> i32 {
        self.axis(axis).map_or(self.first.0, |axis| self.extents[axis])
    }

    /// The extents of the last four axes.
    pub(crate) fn extents(&self) -> [i32; 4] {
        self.extents
    }

    /// For a tensor of rank 5, the part at this coordinate of its first axis; for others, the view itself.
    #[inline]
    pub(crate) fn outer(&self, at: i64) -> Self {
        if self.rank < 5 { *self } else { self.index(0, i32::try_from(at).unwrap_or(-1)) }
    }

    pub(crate) fn strides(&self) -> [i64; 4] {
        self.strides
    }

    /// The view with one axis fixed.
    pub(crate) fn index(&self, axis: u8, at: i32) -> Self {
        let axis = self.axis(axis);
        let mut view = *self;
        let (extent, stride) = axis.map_or(self.first, |axis| (self.extents[axis], self.strides[axis]));
        if at < 0 || at >= extent {
            view.outside = true;
        } else {
            view.base = self.base.wrapping_add(i64::from(at).wrapping_mul(stride));
        }
        // The axes before it move up, and the outer axis, of extent 1 if there is none, takes the first place.
        if let Some(axis) = axis {
            for i in (1..=axis).rev() {
                view.extents[i] = self.extents[i - 1];
                view.strides[i] = self.strides[i - 1];
            }
            (view.extents[0], view.strides[0]) = self.first;
        }
        view.first = (1, 0);
        view.rank = self.rank.saturating_sub(1);
        view
    }

    /// The view of a range of an axis, clipped.
    pub(crate) fn slice(&self, axis: u8, lo: i32, hi: i32) -> Self {
        let axis = self.axis(axis);
        let mut view = *self;
        let (extent, stride) = axis.map_or(self.first, |axis| (self.extents[axis], self.strides[axis]));
        let (lo, hi) = (lo.clamp(0, extent), hi.clamp(0, extent));
        view.base = self.base.wrapping_add(i64::from(lo).wrapping_mul(stride));
        let left = (hi - lo).max(0);
        match axis {
            Some(axis) => view.extents[axis] = left,
            None => view.first.0 = left,
        }
        view
    }

    /// The same view, whose elements other programs may be accessing at the same time.
    pub(crate) fn contended(mut self) -> Self {
        self.contended = true;
        self
    }

    /// Whether the launch may write it.
    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    /// The identity of its elements, if nothing in the launch writes them.
    pub(crate) fn constant(&self) -> Option<ViewKey> {
        self.frozen.filter(|_| !self.outside).map(|_| ViewKey {
            base: self.base,
            extents: self.extents,
            strides: self.strides,
            first: self.first,
            bytes: self.bytes.addr().get(),
        })
    }

    /// The offset of an element, which need not exist.
    pub(crate) fn offset(&self, at: [i64; 4]) -> i64 {
        at.iter().zip(&self.strides).fold(self.base, |sum, (i, s)| sum.wrapping_add(i.wrapping_mul(*s)))
    }

    /// The offset of an element that exists.
    pub(crate) fn offset_inside(&self, at: [i64; 4]) -> Option<i64> {
        let inside = at.iter().zip(&self.extents).all(|(i, n)| *i >= 0 && *i < i64::from(*n));
        (inside && !self.outside).then(|| self.offset(at))
    }

    /// Whether a tile at `start` is completely inside.
    #[inline]
    pub(crate) fn holds(&self, start: [i64; 4], shape: [i32; 4]) -> bool {
        let fits = |axis: usize| {
            start[axis] >= 0 && i64::from(shape[axis]) <= i64::from(self.extents[axis]).wrapping_sub(start[axis])
        };
        !self.outside && fits(3) && fits(2) && fits(1) && fits(0)
    }

    /// The part of a tile at `start` that is inside.
    pub(crate) fn inside(&self, start: [i64; 4], shape: [i32; 4]) -> Inside {
        if self.outside {
            return Inside { lo: [0; 4], hi: [0; 4] };
        }
        let mut part = Inside { lo: [0; 4], hi: shape.map(i64::from) };
        // On axes before the tensor's own, the tile has extent 1 as well.
        for axis in 4 - self.rank.min(4)..4 {
            let n = i64::from(shape[axis]);
            part.lo[axis] = 0.max(start[axis].wrapping_neg()).min(n);
            part.hi[axis] = i64::from(self.extents[axis]).wrapping_sub(start[axis]).clamp(0, n);
        }
        part
    }

    /// A tile that is completely inside, without copying it: a slice of the memory, and the index in it of the tile's first element.
    /// `None` if it is not inside, or if the launch may write it.
    pub(crate) fn frozen_tile(&self, start: [i64; 4], shape: [i32; 4]) -> Option<(&'m [u8], usize)> {
        let frozen = self.frozen.filter(|_| self.holds(start, shape))?;
        Some((frozen.bytes, usize::try_from(self.offset(start).wrapping_sub(frozen.origin)).ok()?))
    }
}

impl<'m> Frozen<'m> {
    /// The span of a tensor that the launch does not write.
    fn new(lease: &'m Lease, slot: &Slot) -> Option<Self> {
        let (start, len, _) = lease.parts();
        let Covered { bytes: [skip, end], origin } = slot.covered.filter(|_| slot.frozen)?;
        if skip > end || end > len {
            return None;
        }
        // SAFETY: the bytes are inside of the memory, as just checked, and the memory is leased for `'m`; `frozen` says that
        // nothing in the launch writes any byte of the span, and the lease that nothing else does.
        let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr().add(skip), end - skip) };
        Some(Frozen { bytes, origin })
    }
}

/// The number of elements in a number of bytes.
pub(super) fn elements(elem: Elem, bytes: usize) -> i64 {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    if elem.bits() == 4 { bytes.saturating_mul(2) } else { bytes / i64::from(elem.bits() / 8) }
}
