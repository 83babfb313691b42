//! Inclusive scans, in a layout in which each thread holds adjacent elements along the axis: first within a thread, then across its lanes,
//! then from one repetition of the layout to the next. No two warps share a line.

use super::reduce::{Combine, Tuple};
use super::tile::LoweredValue;
use super::{Lower, LowerError, Reg};
use crate::collections::SortedMap;
use crate::ir::{Elem, Op, Pred, ReduceOp};
use crate::lane::{self, IntBin, Shuffle};
use crate::layout::Layout;

impl Lower<'_> {
    /// Scans a tile along an axis with a function of the language.
    pub(super) fn scan_plain(&mut self, op: &Op, f: ReduceOp, axis: usize) -> Result<(), LowerError> {
        let acc = self.k.ty(op.args[0]).elem().accumulator();
        self.scan_tile(op, axis, acc, Combine::Plain(f, acc))
    }

    /// Scans a tile along an axis with a function of the user's.
    pub(super) fn scan_with(&mut self, op: &Op, axis: usize) -> Result<(), LowerError> {
        let elem = self.k.ty(op.args[0]).elem();
        self.scan_tile(op, axis, elem, Combine::Region(op))
    }

    /// Scans a tile along an axis, with the accumulator type `acc`.
    fn scan_tile(&mut self, op: &Op, axis: usize, acc: Elem, f: Combine<'_>) -> Result<(), LowerError> {
        let elem = self.k.ty(op.args[0]).elem();
        let layout = self.layout(op.args[0]);
        let regs = self.regs(op.args[0]);
        let regs = self.cast_all(&regs, elem, acc);
        let out = self.scan(&regs, &layout, axis, f)?;
        let out = self.cast_all(&out, acc, elem);
        self.define(op.results[0], LoweredValue::Tile(out));
        Ok(())
    }

    /// Scans each line of registers along the axis.
    fn scan(&mut self, regs: &[Reg], layout: &Layout, axis: usize, f: Combine<'_>) -> Result<Vec<Reg>, LowerError> {
        let mut lines: SortedMap<Vec<u32>, Vec<(u32, usize)>> = SortedMap::new();
        for r in 0..layout.registers() {
            let mut at = layout.register_coords(r).to_vec();
            let along = at.remove(axis);
            lines.entry(at).or_default().push((along, r));
        }
        let chunk = 1usize << layout.register_bits().len();
        let mut out = regs.to_vec();
        for (_, mut line) in lines {
            line.sort_unstable();
            let mut carry: Option<Tuple> = None;
            for part in line.chunks(chunk) {
                let numbers: Vec<usize> = part.iter().map(|(_, r)| *r).collect();
                let items: Vec<Reg> = numbers.iter().map(|r| regs[*r]).collect();
                let (scanned, total) = self.scan_chunk(&items, layout, axis, carry.as_ref(), f)?;
                for (r, reg) in numbers.iter().zip(scanned) {
                    out[*r] = reg;
                }
                carry = Some(total);
            }
        }
        Ok(out)
    }

    /// Scans one repetition of the layout. Returns its elements, and the total, which all lanes of a line have.
    fn scan_chunk(
        &mut self,
        items: &[Reg],
        layout: &Layout,
        axis: usize,
        carry: Option<&Tuple>,
        f: Combine<'_>,
    ) -> Result<(Vec<Reg>, Tuple), LowerError> {
        let mut own: Vec<Reg> = Vec::new();
        for item in items {
            let next = match own.last() {
                Some(before) => self.combine(f, &[*before], &[*item])?[0],
                None => *item,
            };
            own.push(next);
        }
        let lanes = 1u32 << layout.lanes_along(axis).len();
        let lane = self.b.one(lane::OpKind::LaneId, &[]);
        let mask = self.b.i32(lanes.cast_signed() - 1);
        let place = self.b.and(lane, mask);
        let mut total = vec![own[own.len() - 1]];
        let mut by = 1;
        // A scan over the lanes of a line in log₂ steps: each combines the total of the lane `by` below with the own one.
        while by < lanes {
            let below: Tuple = total.iter().map(|r| self.shuffle(*r, Shuffle::Up(by), None)).collect();
            let joined = self.combine(f, &below, &total)?;
            let far = self.b.i32(by.cast_signed());
            let has = self.b.cmp_s(Pred::Ge, place, far);
            total = vec![self.b.select(has, joined[0], total[0])];
            by *= 2;
        }
        let mut out = own;
        if lanes > 1 {
            // Each element is combined with the total of all lanes below.
            let before: Tuple = total.iter().map(|r| self.shuffle(*r, Shuffle::Up(1), None)).collect();
            let zero = self.b.i32(0);
            let has = self.b.cmp_s(Pred::Gt, place, zero);
            for reg in &mut out {
                let joined = self.combine(f, &before, &[*reg])?;
                *reg = self.b.select(has, joined[0], *reg);
            }
        }
        if let Some(carry) = carry {
            for reg in &mut out {
                *reg = self.combine(f, carry, &[*reg])?[0];
            }
            total = self.combine(f, carry, &total)?;
        }
        if lanes > 1 {
            // The last lane of the line holds the total.
            let last = self.b.int(IntBin::Or, lane, mask);
            total = vec![self.shuffle(total[0], Shuffle::Index, Some(last))];
        }
        Ok((out, total))
    }
}
