//! Reductions: within a thread, across lanes by shuffles, across warps through shared memory.
//!
//! Whatever is combined is a tuple of registers, so that sums, extrema with their places and functions of the user's are one
//! algorithm. Padding takes part as the neutral element.

use super::tile::{Held, Staged, register_index};
use super::{Lower, LowerError, Reg, scalar};
use crate::ir::{ArgOp, Const, Elem, Op, Pred, ReduceOp, UnOp};
use crate::lane::{self, Shuffle, Ty};
use crate::layout::{Bit, Encoding, Layout};
use std::collections::BTreeMap;

/// What is combined: as many registers as `elems`, for each element.
pub(super) type Tuple = Vec<Reg>;

/// How two tuples become one.
#[derive(Clone, Copy)]
pub(super) enum Combine<'a> {
    /// A sum, product or extremum.
    Plain(ReduceOp, Elem),
    /// An extremum and its index.
    Place(ArgOp, Elem),
    /// The function of an operation's region.
    Region(&'a Op),
}

/// A reduction: along which axis of which layout, of what, how.
struct Line<'a> {
    layout: &'a Layout,
    axis: usize,
    elems: &'a [Elem],
    neutral: &'a [Reg],
    f: Combine<'a>,
}

impl Lower<'_> {
    pub(super) fn plain_reduce(&mut self, op: &Op, f: ReduceOp, axis: usize) -> Result<(), LowerError> {
        let elem = self.k.ty(op.args[0]).elem();
        let acc = elem.accumulator();
        let neutral = scalar::constant(&mut self.b, scalar::neutral(f, acc));
        let (layout, regs) = self.home_regs(op.args[0])?;
        let items = self.cast_all(&regs, elem, acc).into_iter().map(|r| vec![r]).collect();
        let line = Line { layout: &layout, axis, elems: &[acc], neutral: &[neutral], f: Combine::Plain(f, acc) };
        let out = self.reduce(items, &line)?;
        let regs: Vec<Reg> = out.iter().map(|t| t[0]).collect();
        let regs = self.cast_all(&regs, acc, elem);
        self.reduced(op, 0, &regs, &layout.without(axis))
    }

    /// By a function of the user's.
    pub(super) fn reduce_with(&mut self, op: &Op, axis: usize) -> Result<(), LowerError> {
        let elem = self.k.ty(op.args[0]).elem();
        let neutral = self.scalar(op.args[1]);
        let (layout, regs) = self.home_regs(op.args[0])?;
        let items = regs.into_iter().map(|r| vec![r]).collect();
        let line = Line { layout: &layout, axis, elems: &[elem], neutral: &[neutral], f: Combine::Region(op) };
        let out: Vec<Reg> = self.reduce(items, &line)?.iter().map(|t| t[0]).collect();
        self.reduced(op, 0, &out, &layout.without(axis))
    }

    /// Holds a result of a reduction: a scalar if nothing is left of the shape, which rank 1 is not reduced to.
    fn reduced(&mut self, op: &Op, which: usize, regs: &[Reg], layout: &Layout) -> Result<(), LowerError> {
        let result = op.results[which];
        if let crate::ir::Ty::Scalar(_) = self.k.ty(result) {
            self.hold(result, Held::Scalar(regs[0]));
            return Ok(());
        }
        let home = self.home(result);
        let regs = self.convert(regs, layout, &home, self.k.ty(result).elem())?;
        self.hold(result, Held::Tile(regs));
        Ok(())
    }

    pub(super) fn cast_all(&mut self, regs: &[Reg], from: Elem, to: Elem) -> Vec<Reg> {
        if from == to {
            return regs.to_vec();
        }
        regs.iter().map(|r| scalar::cast(&mut self.b, &self.plan.target, from, to, *r)).collect()
    }

    /// The extremum along an axis and where it is. Padding is NaN, or the worst integer, beyond every index.
    pub(super) fn arg_reduce(&mut self, op: &Op, f: ArgOp, axis: usize) -> Result<(), LowerError> {
        let elem = self.k.ty(op.args[0]).elem();
        let worst = if elem.is_float() {
            Const::Float(elem, f64::NAN)
        } else {
            scalar::neutral(if f == ArgOp::Max { ReduceOp::Max } else { ReduceOp::Min }, elem)
        };
        let neutral = [scalar::constant(&mut self.b, worst), self.b.i32(i32::MAX)];
        let (layout, regs) = self.home_regs(op.args[0])?;
        let thread = self.thread_coord(&layout, axis);
        let mut items = Vec::new();
        for (r, reg) in regs.iter().enumerate() {
            let at = self.b.add_const(thread, i64::from(layout.register_coords(r)[axis]));
            items.push(vec![*reg, at]);
        }
        let f = Combine::Place(f, elem);
        let line = Line { layout: &layout, axis, elems: &[elem, Elem::I32], neutral: &neutral, f };
        let out = self.reduce(items, &line)?;
        let narrow = layout.without(axis);
        for which in 0..2 {
            let regs: Vec<Reg> = out.iter().map(|t| t[which]).collect();
            self.reduced(op, which, &regs, &narrow)?;
        }
        Ok(())
    }

    /// Reduces tuples along an axis. The result is in the layout without the axis; all threads that held a part have it.
    fn reduce(&mut self, items: Vec<Tuple>, line: &Line<'_>) -> Result<Vec<Tuple>, LowerError> {
        let (layout, axis, f) = (line.layout, line.axis, line.f);
        let items = self.neutralize(items, layout, axis, line.neutral);
        let narrow = layout.without(axis);
        let index = register_index(&narrow);
        let mut lines: BTreeMap<usize, Vec<Tuple>> = BTreeMap::new();
        for (r, item) in items.into_iter().enumerate() {
            let mut at = layout.register_coords(r).to_vec();
            at.remove(axis);
            at.push(0);
            if let Some(line) = index.get(&[at[0], at[1], at[2], at[3]]) {
                lines.entry(*line).or_default().push(item);
            }
        }
        let mut out = Vec::new();
        for (_, line) in lines {
            let mut all = self.tree(line, f)?;
            for mask in layout.lanes_along(axis) {
                let other: Tuple = all.iter().map(|r| self.shuffle(*r, Shuffle::Xor(mask), None)).collect();
                all = self.combine(f, &all, &other)?;
            }
            out.push(all);
        }
        if layout.warps_along(axis).is_empty() { Ok(out) } else { self.across_warps(&out, line, &narrow) }
    }

    /// Padding becomes the neutral element.
    fn neutralize(&mut self, items: Vec<Tuple>, layout: &Layout, axis: usize, neutral: &[Reg]) -> Vec<Tuple> {
        if !layout.is_padded(axis) {
            return items;
        }
        let mut out = Vec::new();
        for (r, item) in items.into_iter().enumerate() {
            let inside = self.is_inside(layout, axis, layout.register_coords(r)[axis]);
            out.push(item.iter().zip(neutral).map(|(x, n)| self.b.select(inside, *x, *n)).collect());
        }
        out
    }

    /// Combines neighbours pairwise: short chains.
    fn tree(&mut self, mut items: Vec<Tuple>, f: Combine<'_>) -> Result<Tuple, LowerError> {
        while items.len() > 1 {
            let mut next = Vec::with_capacity(items.len().div_ceil(2));
            for pair in items.chunks(2) {
                next.push(match pair {
                    [a, b] => self.combine(f, a, b)?,
                    [a] => a.clone(),
                    _ => Vec::new(),
                });
            }
            items = next;
        }
        Ok(items.pop().unwrap_or_default())
    }

    /// Parts of different warps: each writes its own, all read all.
    fn across_warps(&mut self, items: &[Tuple], line: &Line<'_>, narrow: &Layout) -> Result<Vec<Tuple>, LowerError> {
        let masks = line.layout.warps_along(line.axis);
        let parts = 1u32 << masks.len();
        let every = narrow.batched(parts);
        // The same, but each warp holds the part of its own.
        let mut extents = vec![parts];
        extents.extend(narrow.extents());
        let mut part = 1;
        let warps: Vec<Bit> = every
            .warp_bits()
            .iter()
            .enumerate()
            .map(|(i, bit)| {
                if !masks.contains(&(1 << i)) {
                    return *bit;
                }
                part *= 2;
                Bit::Step { axis: 0, by: part / 2 }
            })
            .collect();
        let own = Layout::new(&extents, every.register_bits().to_vec(), every.lane_bits().to_vec(), warps);
        let order: Vec<usize> = (0..extents.len()).collect();
        let mut columns: Vec<Vec<Reg>> = Vec::new();
        for (i, elem) in line.elems.iter().enumerate() {
            let regs: Vec<Reg> = items.iter().map(|t| t[i]).collect();
            let bits = super::convert::in_buffer(*elem).bits();
            let staged: Staged = self.stage("reduction", Encoding::padded(&extents, bits, &order, 0));
            self.write_buffer(&staged, &regs, &own, *elem);
            columns.push(self.read_buffer(&staged, &every, *elem));
        }
        let lines = items.len();
        let mut out = Vec::new();
        for at in 0..lines {
            let tuples: Vec<Tuple> =
                (0..parts as usize).map(|p| columns.iter().map(|c| c[p * lines + at]).collect()).collect();
            out.push(self.tree(tuples, line.f)?);
        }
        Ok(out)
    }

    /// Two tuples become one; the first stands for the earlier elements.
    pub(super) fn combine(&mut self, f: Combine<'_>, x: &[Reg], y: &[Reg]) -> Result<Tuple, LowerError> {
        match f {
            Combine::Plain(op, elem) => Ok(vec![scalar::combine(&mut self.b, &self.plan.target, op, elem, x[0], y[0])]),
            Combine::Place(op, elem) => {
                let takes = self.better(op, elem, x, y);
                Ok(vec![self.b.select(takes, y[0], x[0]), self.b.select(takes, y[1], x[1])])
            }
            Combine::Region(op) => {
                let Some(region) = op.regions.first().copied() else { return Ok(x.to_vec()) };
                let args = self.k.block(region).args.clone();
                for (arg, reg) in args.iter().zip([x[0], y[0]]) {
                    self.hold(*arg, Held::Scalar(reg));
                }
                self.inline(region)
            }
        }
    }

    /// Whether the second of two candidates is the one: better, or as good and earlier. NaN is worse than any number.
    fn better(&mut self, op: ArgOp, elem: Elem, x: &[Reg], y: &[Reg]) -> Reg {
        let target = &self.plan.target;
        let b = &mut self.b;
        let pred = if op == ArgOp::Max { Pred::Gt } else { Pred::Lt };
        let mut wins = scalar::compare(b, target, pred, elem, y[0], x[0]);
        let mut ties = scalar::compare(b, target, Pred::Eq, elem, y[0], x[0]);
        if elem.is_float() {
            let x_nan = scalar::unary(b, target, UnOp::IsNan, elem, x[0]);
            let y_nan = scalar::unary(b, target, UnOp::IsNan, elem, y[0]);
            let y_number = b.not(y_nan);
            let only = b.and(x_nan, y_number);
            wins = b.or(wins, only);
            let both = b.and(x_nan, y_nan);
            ties = b.or(ties, both);
        }
        let earlier = b.cmp_s(Pred::Lt, y[1], x[1]);
        let first = b.and(ties, earlier);
        b.or(wins, first)
    }

    /// The register of another lane, of any width.
    pub(super) fn shuffle(&mut self, reg: Reg, from: Shuffle, index: Option<Reg>) -> Reg {
        let one = |b: &mut lane::Builder, r: Reg| {
            let mut args = vec![r];
            args.extend(index);
            b.one(lane::OpKind::Shuffle(from), &args)
        };
        match self.b.ty(reg) {
            Ty::B32 => one(&mut self.b, reg),
            Ty::B64 => {
                let halves = self.b.op(lane::OpKind::Unpack, &[reg]);
                let moved: Vec<Reg> = halves.iter().map(|h| one(&mut self.b, *h)).collect();
                self.b.one(lane::OpKind::Pack, &moved)
            }
            Ty::B16 => {
                let wide = self.b.one(lane::OpKind::Extend { from: 16, signed: false, to: Ty::B32 }, &[reg]);
                let moved = one(&mut self.b, wide);
                self.b.one(lane::OpKind::Truncate(Ty::B16), &[moved])
            }
            Ty::Pred => {
                let wide = self.b.one(lane::OpKind::FromPred, &[reg]);
                let moved = one(&mut self.b, wide);
                let zero = self.b.i32(0);
                self.b.cmp_u(Pred::Ne, moved, zero)
            }
        }
    }
}
