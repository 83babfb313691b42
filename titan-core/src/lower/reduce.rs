//! Reductions over the lanes of a warp: within each thread, then across lanes by shuffles.
//!
//! The combined items are tuples of registers, so that sums, extrema with indices and user-defined functions share one algorithm. Padding
//! is replaced by the neutral element.
use super::tile::{LoweredValue, register_index};
use super::{Lower, LowerError, Reg, scalar};
use crate::collections::SortedMap;
use crate::ir::{ArgOp, Const, Elem, Fold, Op, Pred, ReduceOp, UnOp};
use crate::lane::{self, Shuffle, Ty};
use crate::layout::Layout;

/// An item of a reduction: a tuple of registers, one for each element type in `elems`.
pub(super) type Tuple = Vec<Reg>;

/// The function that combines two tuples.
#[derive(Clone, Copy)]
pub(super) enum Combine<'a> {
    /// A sum, product or extremum.
    Plain(ReduceOp, Elem),
    /// An extremum and its index.
    Place(ArgOp, Elem),
    /// The combining region of an operation.
    Region(&'a Op),
}

/// A reduction: its axis, layout, element types and combining function.
struct Line<'a> {
    layout: &'a Layout,
    axis: usize,
    neutral: &'a [Reg],
    f: Combine<'a>,
}

/// The number of lines whose shuffles are in flight together.
const TOGETHER: usize = 4;

impl Lower<'_> {
    /// Reduces a tile along an axis, separately for the elements that each warp holds.
    pub(super) fn fold(&mut self, op: &Op, f: Fold, axis: usize) -> Result<(), LowerError> {
        let elem = self.k.ty(op.args[0]).elem();
        let layout = self.layout(op.args[0]);
        let columns: Vec<Vec<Reg>> = match f {
            Fold::Plain(_) | Fold::With => vec![self.regs(op.args[0])],
            Fold::Arg(_) => vec![self.regs(op.args[0]), self.regs(op.args[1])],
        };
        let (neutral, f) = match f {
            Fold::Plain(f) => (vec![scalar::constant(&mut self.b, scalar::neutral(f, elem))], Combine::Plain(f, elem)),
            Fold::With => (vec![self.scalar(op.args[1])], Combine::Region(op)),
            Fold::Arg(f) => {
                // Padding is NaN, or the worst integer, with an index greater than all others, so that it never wins.
                let worst = if elem.is_float() {
                    Const::Float(elem, f64::NAN)
                } else {
                    scalar::neutral(if f == ArgOp::Max { ReduceOp::Max } else { ReduceOp::Min }, elem)
                };
                let worst = scalar::constant(&mut self.b, worst);
                (vec![worst, self.b.i32(i32::MAX)], Combine::Place(f, elem))
            }
        };
        let items = (0..layout.registers()).map(|r| columns.iter().map(|c| c[r]).collect()).collect();
        let out = self.reduce(items, &Line { layout: &layout, axis, neutral: &neutral, f })?;
        for (which, result) in op.results.iter().enumerate() {
            let regs: Vec<Reg> = out.iter().map(|t| t[which]).collect();
            let scalar = matches!(self.k.ty(*result), crate::ir::Ty::Scalar(_));
            self.define(*result, if scalar { LoweredValue::Scalar(regs[0]) } else { LoweredValue::Tile(regs) });
        }
        Ok(())
    }

    pub(super) fn cast_all(&mut self, regs: &[Reg], from: Elem, to: Elem) -> Vec<Reg> {
        if from == to {
            return regs.to_vec();
        }
        regs.iter().map(|r| scalar::cast(&mut self.b, self.target, from, to, *r)).collect()
    }

    /// Reduces tuples along an axis. The result has the layout without the axis; every thread that held elements of a line has the line's
    /// result.
    fn reduce(&mut self, items: Vec<Tuple>, line: &Line<'_>) -> Result<Vec<Tuple>, LowerError> {
        let (layout, axis, f) = (line.layout, line.axis, line.f);
        let items = self.neutralize(items, layout, axis, line.neutral);
        let narrow = layout.without(axis);
        let index = register_index(&narrow);
        let mut lines: SortedMap<usize, Vec<Tuple>> = SortedMap::new();
        for (r, item) in items.into_iter().enumerate() {
            let mut at = layout.register_coords(r).to_vec();
            at.remove(axis);
            at.push(0);
            if let Some(line) = index.get(&[at[0], at[1], at[2], at[3]]) {
                lines.entry(*line).or_default().push(item);
            }
        }
        let lines: Vec<Vec<Tuple>> = lines.into_iter().map(|(_, line)| line).collect();
        // An assembler orders instructions so that the shuffles of several lines are in flight together; elsewhere they are in that order here.
        let together = if self.target.keeps_order { TOGETHER } else { 1 };
        let mut out = Vec::new();
        for lines in lines.chunks(together) {
            let mut all: Vec<Tuple> = lines.iter().map(|line| self.tree(line.clone(), f)).collect::<Result<_, _>>()?;
            for mask in layout.lanes_along(axis) {
                let others: Vec<Tuple> = all.iter().map(|own| self.of_lanes(own, mask)).collect();
                let pairs = all.iter().zip(&others);
                all = pairs.map(|(own, other)| self.combine(f, own, other)).collect::<Result<_, _>>()?;
            }
            out.extend(all);
        }
        Ok(out)
    }

    /// A tuple of the lane whose number differs in the bits of a mask.
    fn of_lanes(&mut self, own: &[Reg], mask: u32) -> Tuple {
        own.iter().map(|r| self.shuffle(*r, Shuffle::Xor(mask), None)).collect()
    }

    /// Replaces padding by the neutral element.
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

    /// Combines adjacent items pairwise, as a tree, so that dependency chains are short.
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

    /// Combines two tuples; the elements of the first come before those of the second.
    pub(super) fn combine(&mut self, f: Combine<'_>, x: &[Reg], y: &[Reg]) -> Result<Tuple, LowerError> {
        match f {
            Combine::Plain(op, elem) => Ok(vec![scalar::combine(&mut self.b, self.target, op, elem, x[0], y[0])]),
            Combine::Place(op, elem) => {
                let takes = self.better(op, elem, x, y);
                Ok(vec![self.b.select(takes, y[0], x[0]), self.b.select(takes, y[1], x[1])])
            }
            Combine::Region(op) => {
                let Some(region) = op.regions.first().copied() else {
                    return Err(self.defect("a reduction by a function that it does not have"));
                };
                let args = self.k.block(region).args.clone();
                for (arg, reg) in args.iter().zip([x[0], y[0]]) {
                    self.define(*arg, LoweredValue::Scalar(reg));
                }
                self.inline(region)
            }
        }
    }

    /// Whether the second candidate replaces the first: it is better, or equal with a smaller index. NaN is worse than any number.
    fn better(&mut self, op: ArgOp, elem: Elem, x: &[Reg], y: &[Reg]) -> Reg {
        let target = self.target;
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

    /// A register from another lane, of any width.
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
