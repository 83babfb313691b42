//! The coordinates of the elements that a thread holds, from its lane and warp number.

use super::{Lower, Reg};
use crate::ir::Pred;
use crate::lane::{IntBin, OpKind};
use crate::layout::{Bit, Layout};

impl Lower<'_> {
    /// The contribution of the lane and warp number to the coordinate along an axis.
    pub(super) fn thread_coord(&mut self, layout: &Layout, axis: usize) -> Reg {
        let lane = self.b.one(OpKind::LaneId, &[]);
        let warp = self.warp_number();
        let of_lane = self.number_coord(layout.lane_bits(), lane, axis);
        let of_warp = self.number_coord(layout.warp_bits(), warp, axis);
        self.b.add(of_lane, of_warp)
    }

    /// The index of this warp in its warp set.
    pub(super) fn warp_number(&mut self) -> Reg {
        let warp = self.b.one(OpKind::WarpId, &[]);
        self.b.add_const(warp, -i64::from(self.warp_set.first))
    }

    /// The contribution of the bits of a number to a coordinate. A run of bits with doubling steps is computed by one shift and mask.
    pub(super) fn number_coord(&mut self, bits: &[Bit], number: Reg, axis: usize) -> Reg {
        let step = |i: usize| match bits.get(i) {
            Some(Bit::Step { axis: own, by }) if usize::from(*own) == axis => Some(*by),
            Some(Bit::Copy | Bit::Step { .. }) | None => None,
        };
        let mut sum = self.b.i32(0);
        let mut i = 0;
        while i < bits.len() {
            let Some(first) = step(i) else {
                i += 1;
                continue;
            };
            let run = (0..).take_while(|n| step(i + n) == Some(first << n)).count();
            let part = self.bits(number, i, run, bits.len());
            let by = self.b.i32(first.cast_signed());
            let part = self.b.mul(part, by);
            sum = self.b.add(sum, part);
            i += run;
        }
        sum
    }

    /// The `n` bits of a number of `of` bits that start at bit `from`.
    fn bits(&mut self, number: Reg, from: usize, n: usize, of: usize) -> Reg {
        let amount = self.b.i32(i32::try_from(from).unwrap_or(0));
        let shifted = self.b.int(IntBin::ShrU, number, amount);
        if from + n >= of {
            return shifted;
        }
        let mask = self.b.i32((1 << n) - 1);
        self.b.and(shifted, mask)
    }

    /// Whether this thread is the first of those that hold copies of the same elements; `None` if the layout has no copies.
    pub(super) fn is_first_copy(&mut self, layout: &Layout) -> Option<Reg> {
        let mask =
            |bits: &[Bit]| bits.iter().enumerate().filter(|(_, b)| **b == Bit::Copy).map(|(i, _)| 1i32 << i).sum();
        let (lanes, warps): (i32, i32) = (mask(layout.lane_bits()), mask(layout.warp_bits()));
        if lanes == 0 && warps == 0 {
            return None;
        }
        let zero = self.b.i32(0);
        let mut holds = self.b.pred(true);
        for (mask, kind) in [(lanes, OpKind::LaneId), (warps, OpKind::WarpId)] {
            if mask != 0 {
                let number = if kind == OpKind::WarpId { self.warp_number() } else { self.b.one(kind, &[]) };
                let mask = self.b.i32(mask);
                let copies = self.b.and(number, mask);
                let none = self.b.cmp_u(Pred::Eq, copies, zero);
                holds = self.b.and(holds, none);
            }
        }
        Some(holds)
    }

    /// Whether this is the first thread of the warp set.
    pub(super) fn is_first_thread(&mut self) -> Reg {
        let thread = self.b.one(OpKind::ThreadId, &[]);
        let first = self.b.i32((self.warp_set.first * self.target.lanes).cast_signed());
        self.b.cmp_u(Pred::Eq, thread, first)
    }

    /// For each register, whether it holds an element of the tile, not padding; `None` if the layout has no padding.
    pub(super) fn is_element(&mut self, layout: &Layout) -> Option<Vec<Reg>> {
        let padded: Vec<usize> = (0..layout.rank()).filter(|axis| layout.is_padded(*axis)).collect();
        if padded.is_empty() {
            return None;
        }
        let mut out = Vec::with_capacity(layout.registers());
        for r in 0..layout.registers() {
            let at = layout.register_coords(r);
            let mut holds = self.b.pred(true);
            for axis in &padded {
                let inside = self.is_inside(layout, *axis, at[*axis]);
                holds = self.b.and(holds, inside);
            }
            out.push(holds);
        }
        Some(out)
    }

    /// Whether the sum of the thread's coordinate and `part` is within the extent of the tile.
    pub(super) fn is_inside(&mut self, layout: &Layout, axis: usize, part: u32) -> Reg {
        let extent = layout.extents()[axis];
        if part + super::convert::reach(layout)[axis] < extent {
            return self.b.pred(true);
        }
        if part >= extent {
            return self.b.pred(false);
        }
        let at = self.thread_coord(layout, axis);
        let at = self.b.add_const(at, i64::from(part));
        let extent = self.b.i32(extent.cast_signed());
        self.b.cmp_s(Pred::Lt, at, extent)
    }
}
