//! Conversions of tiles between layouts, in registers or through shared memory.

use super::tile::{Origin, Staged};
use super::vector::Place;
use super::{Lower, Reg};
use crate::ir::Elem;
use crate::lane::{IntBin, OpKind, Region, Space};
use crate::layout::convert::neighbours;
use crate::layout::{Bit, Coords, Encoding, Layout, Swizzle};

impl Lower<'_> {
    /// Creates a buffer in shared memory.
    pub(super) fn stage(&mut self, name: &str, encoding: Encoding) -> Staged {
        let buffer = self.b.buffer(name, encoding.bytes(), encoding.align());
        Staged { buffer, encoding, base: None, slot: None, origin: Origin::default(), ordered: false }
    }

    /// Marks the following accesses as reads or writes of a region.
    pub(super) fn touch(&mut self, region: Region, write: bool) {
        self.b.op(OpKind::Access { region, write }, &[]);
    }

    /// Stores a tile to a buffer, in which 4-bit elements occupy a byte each.
    pub(super) fn write_buffer(&mut self, staged: &Staged, regs: &[Reg], layout: &Layout, elem: Elem) {
        if self.store_matrices(staged, regs, layout, elem) {
            return;
        }
        self.touch(staged.region(), true);
        let elem = in_buffer(elem);
        let first = self.is_first_copy(layout);
        let inside = self.is_element(layout);
        for group in groups(layout, staged) {
            let place = self.place(staged, layout, group[0]);
            let values: Vec<Reg> = group.iter().filter_map(|r| regs.get(*r).copied()).collect();
            let mask = match (first, inside.as_ref().map(|m| m[group[0]])) {
                (Some(a), Some(b)) => Some(self.b.and(a, b)),
                (a, b) => a.or(b),
            };
            self.store_vector(place, elem, &values, mask);
        }
    }

    /// Loads a tile from a buffer. Padding of the layout is loaded from unspecified positions inside the buffer.
    pub(super) fn read_buffer(&mut self, staged: &Staged, layout: &Layout, elem: Elem) -> Vec<Reg> {
        self.touch(staged.region(), false);
        let elem = in_buffer(elem);
        let inside = self.is_element(layout);
        let zero = self.zero(elem);
        let mut out = vec![zero; layout.registers()];
        for group in groups(layout, staged) {
            let place = self.place(staged, layout, group[0]);
            let mask = inside.as_ref().map(|m| (m[group[0]], zero));
            let n = u32::try_from(group.len()).unwrap_or(1);
            let loaded = self.load_vector(place, elem, n, mask);
            for (r, reg) in group.iter().zip(loaded) {
                out[*r] = reg;
            }
        }
        out
    }

    /// The position in a buffer of the element that this thread holds in a register.
    pub(super) fn place(&mut self, staged: &Staged, layout: &Layout, register: usize) -> Place {
        let at = layout.register_coords(register);
        let thread: Vec<Reg> = (0..layout.rank()).map(|axis| self.thread_coord(layout, axis)).collect();
        let reach = reach(layout);
        self.buffer_place(staged, &thread, reach, at)
    }

    /// The position of an element whose coordinates are the sum of `thread`, at most `reach`, and `part`.
    ///
    /// The linear offset is the sum of those of both parts if adding the coordinates never carries into another row. The constant part is
    /// then a constant, and its whole repetitions of the swizzle (1024 bytes) need no swizzling.
    pub(super) fn buffer_place(&mut self, staged: &Staged, thread: &[Reg], reach: Coords, part: Coords) -> Place {
        let e = &staged.encoding;
        let fast = e.fast_axis();
        let (mut thread, mut reach, mut part) = (thread.to_vec(), reach, part);
        for (own, at) in part.iter_mut().zip(staged.origin.at) {
            *own += at;
        }
        if let Some((axis, by, _)) = staged.origin.moved {
            thread[axis] = self.b.add(thread[axis], by);
            reach[axis] = e.extents[axis] - 1;
        }
        // With panels, the fast coordinate is divided by the row length; a constant part must not carry into the thread's part.
        let carries = (part[fast] % e.row) + reach[fast] >= e.row && e.extents[fast] > e.row;
        if carries {
            let sum: Vec<Reg> = thread.iter().zip(part).map(|(t, p)| self.b.add_const(*t, i64::from(p))).collect();
            let linear = self.linear(e, &sum);
            let offset = self.swizzled(e, linear);
            return self.behind(staged, offset, 0);
        }
        let linear = self.linear(e, &thread);
        let constant = e.linear(part);
        let (low, high) = match e.swizzle {
            Swizzle::None => (0, constant),
            Swizzle::B32 | Swizzle::B64 | Swizzle::B128 => (constant % 1024, constant / 1024 * 1024),
        };
        let linear = self.b.add_const(linear, i64::from(low));
        let offset = self.swizzled(e, linear);
        self.behind(staged, offset, high)
    }

    /// The position some bytes after the start of a tile. Loop-variant offsets are added last, just before constants.
    fn behind(&mut self, staged: &Staged, bytes: Reg, constant: u32) -> Place {
        let start = self.b.one(OpKind::Buffer(staged.buffer), &[]);
        let (moved, skip) = staged.base.map_or((None, 0), |(offset, skip)| (Some(offset), skip));
        let mut terms: Vec<Reg> = [Some(start), Some(bytes), moved].into_iter().flatten().collect();
        terms.sort_by_key(|term| self.b.level(*term));
        let sum = terms[1..].iter().fold(terms[0], |sum, term| self.b.add(sum, *term));
        Place { space: Space::Shared, address: sum, offset: (constant + skip).cast_signed() }
    }

    /// The linear offset of coordinates in bytes, before swizzling.
    fn linear(&mut self, e: &Encoding, at: &[Reg]) -> Reg {
        let fast = e.fast_axis();
        let mut row = self.b.i32(0);
        for axis in e.order.iter().take(e.order.len() - 1) {
            let extent = self.b.i32(e.extents[*axis].cast_signed());
            row = self.b.mul(row, extent);
            row = self.b.add(row, at[*axis]);
        }
        let mut column = at[fast];
        if e.extents[fast] > e.row {
            let width = self.b.i32(e.row.cast_signed());
            let panel = self.b.int(IntBin::DivU, column, width);
            column = self.b.int(IntBin::RemU, column, width);
            let rows = self.b.i32(e.rows().cast_signed());
            let skipped = self.b.mul(panel, rows);
            row = self.b.add(row, skipped);
        }
        let pitch = self.b.i32(e.pitch.cast_signed());
        let bytes = self.b.i32((e.bits / 8).cast_signed());
        let row = self.b.mul(row, pitch);
        let column = self.b.mul(column, bytes);
        self.b.add(row, column)
    }

    fn swizzled(&mut self, e: &Encoding, linear: Reg) -> Reg {
        if e.swizzle == Swizzle::None {
            return linear;
        }
        let three = self.b.i32(3);
        let mask = self.b.i32((e.swizzle.mask() << 4).cast_signed());
        let lines = self.b.int(IntBin::ShrU, linear, three);
        let exchange = self.b.and(lines, mask);
        self.b.int(IntBin::Xor, linear, exchange)
    }
}

/// The element type in a buffer: 4-bit elements occupy a byte.
pub(super) const fn in_buffer(elem: Elem) -> Elem {
    match elem {
        Elem::I4 => Elem::I8,
        Elem::U4 => Elem::U8,
        Elem::Bool
        | Elem::F64
        | Elem::F32
        | Elem::Tf32
        | Elem::F16
        | Elem::Bf16
        | Elem::E4m3
        | Elem::E5m2
        | Elem::I64
        | Elem::I32
        | Elem::I16
        | Elem::I8
        | Elem::U64
        | Elem::U32
        | Elem::U16
        | Elem::U8 => elem,
    }
}

/// The maximum coordinates that lane and warp contribute.
pub(super) fn reach(layout: &Layout) -> Coords {
    let mut reach = [0; 4];
    for bit in layout.lane_bits().iter().chain(layout.warp_bits()) {
        if let Bit::Step { axis, by } = bit {
            reach[usize::from(*axis)] += by;
        }
    }
    reach
}

/// The registers in groups that are contiguous in a buffer, of up to 16 bytes each. Padding counts as part of its group.
fn groups(layout: &Layout, staged: &Staged) -> Vec<Vec<usize>> {
    let n = neighbours(layout, &staged.encoding).min(staged.origin.multiple(staged.encoding.fast_axis()));
    let all: Vec<usize> = (0..layout.registers()).collect();
    all.chunks(n as usize).map(<[usize]>::to_vec).collect()
}
