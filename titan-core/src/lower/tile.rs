//! Lowered values, flexible tiles and elementwise operations.

use super::barrier::{Barriers, Bytes};
use super::staging::Source;
use super::tensor::View;
use super::{Lower, LowerError, Reg, scalar};
use crate::collections::SortedMap;
use crate::ir::{BinOp, Elem, Op, OpKind, Ty, Value};
use crate::lane;
use crate::layout::{Coords, Encoding, Layout};

/// The maximum number of quotients that are computed together: all operands and results are live in registers.
const QUOTIENTS: usize = 32;

/// The lowered form of a value of the tile IR.
#[derive(Clone, Debug)]
pub(super) enum LoweredValue {
    /// A scalar.
    Scalar(Reg),
    /// A tensor or view.
    Tensor(View),
    /// A tile in registers, one for each element.
    Tile(Vec<Reg>),
    /// A tile in packed words, for operands of matrix instructions.
    Packed(Vec<Reg>),
    /// A tile in shared memory.
    Buffer(Staged),
    /// A region of shared memory.
    Region(Bytes),
    /// An array of mbarriers, or one of them.
    Barriers(Barriers),
    /// The source of a copy: a tile of a tensor that is not loaded to registers.
    Source(Box<Source>),
}

/// A tile in shared memory.
#[derive(Clone, Debug)]
pub(super) struct Staged {
    /// The number of the buffer.
    pub(super) buffer: u32,
    /// The encoding of the tile.
    pub(super) encoding: Encoding,
    /// The offset of the tile in the buffer in bytes: a computed and a constant part; `None` for 0.
    pub(super) base: Option<(Reg, u32)>,
    /// The index of the slot from which the offset is computed, and the size of a slot in bytes; `None` if there are no slots.
    pub(super) slot: Option<(Reg, u32)>,
    /// The position of the tile's first element in the encoding.
    pub(super) origin: Origin,
    /// Whether the protocol of a ring orders the accesses to the tile.
    pub(super) ordered: bool,
}

/// The position of the first element of a part of a tile in shared memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Origin {
    /// The constant part of the coordinates.
    pub(super) at: Coords,
    /// A computed offset along one axis, with a power of two that divides it.
    pub(super) moved: Option<(usize, Reg, u32)>,
}

impl Origin {
    /// A power of two that divides the first coordinate along an axis.
    pub(super) fn multiple(&self, axis: usize) -> u32 {
        let constant = 1 << self.at[axis].trailing_zeros().min(7);
        match self.moved {
            Some((moved, _, multiple)) if moved == axis => constant.min(multiple),
            Some(_) | None => constant,
        }
    }
}

impl Staged {
    /// The transposed tile in the same memory, for two axes.
    pub(super) fn transposed(&self) -> Staged {
        let [i, j, k, l] = self.origin.at;
        let moved = self.origin.moved.map(|(axis, by, multiple)| (1 - axis.min(1), by, multiple));
        let origin = Origin { at: [j, i, k, l], moved };
        Staged { encoding: self.encoding.permuted(&[1, 0]), origin, ..self.clone() }
    }

    /// The region that accesses to the tile are marked with.
    pub(super) const fn region(&self) -> lane::Region {
        if self.ordered { lane::Region::Ring(self.buffer) } else { lane::Region::Buffer(self.buffer) }
    }
}

/// The width of the register that holds an element.
pub(super) const fn reg_ty(elem: Elem) -> lane::Ty {
    match elem {
        Elem::Bool => lane::Ty::Pred,
        Elem::F16 | Elem::Bf16 => lane::Ty::B16,
        Elem::F64 | Elem::I64 | Elem::U64 => lane::Ty::B64,
        Elem::F32
        | Elem::Tf32
        | Elem::E4m3
        | Elem::E5m2
        | Elem::I32
        | Elem::I16
        | Elem::I8
        | Elem::I4
        | Elem::U32
        | Elem::U16
        | Elem::U8
        | Elem::U4 => lane::Ty::B32,
    }
}

impl Lower<'_> {
    pub(super) fn define(&mut self, value: Value, lowered: LoweredValue) {
        self.lowered[value.index()] = Some(lowered);
    }

    /// The register of a scalar.
    pub(super) fn scalar(&mut self, value: Value) -> Reg {
        match &self.lowered[value.index()] {
            Some(LoweredValue::Scalar(reg)) => *reg,
            _ => {
                self.b.fail(format!("{value} is not a scalar"));
                self.b.i32(0)
            }
        }
    }

    pub(super) fn scalars(&mut self, values: &[Value]) -> Vec<Reg> {
        values.iter().map(|v| self.scalar(*v)).collect()
    }

    /// The extents of a tile.
    pub(super) fn extents(&self, value: Value) -> Vec<u32> {
        self.k.ty(value).tile_shape().map(Into::into).unwrap_or_default()
    }

    /// The layout of a tile in registers.
    pub(super) fn layout(&mut self, value: Value) -> Layout {
        match self.k.layout(value) {
            Some(layout) => layout.clone(),
            None => {
                self.b.fail(format!("{value} has no layout"));
                Layout::new(&[1], Vec::new(), Vec::new(), Vec::new())
            }
        }
    }

    /// The registers of a tile, one for each element that the thread holds.
    pub(super) fn regs(&mut self, value: Value) -> Vec<Reg> {
        match self.lowered[value.index()].clone() {
            Some(LoweredValue::Tile(regs)) => regs,
            Some(LoweredValue::Packed(words)) => self.unpacked(value, &words),
            Some(
                LoweredValue::Scalar(_)
                | LoweredValue::Tensor(_)
                | LoweredValue::Buffer(_)
                | LoweredValue::Region(_)
                | LoweredValue::Barriers(_)
                | LoweredValue::Source(_),
            )
            | None => {
                self.b.fail(format!("{value} is not a tile in registers"));
                Vec::new()
            }
        }
    }

    /// A tile in which every element is the scalar.
    pub(super) fn splat(&mut self, op: &Op) {
        let layout = self.layout(op.results[0]);
        let reg = self.scalar(op.args[0]);
        self.define(op.results[0], LoweredValue::Tile(vec![reg; layout.registers()]));
    }

    /// A tile of the coordinates along its only axis.
    pub(super) fn iota(&mut self, op: &Op) {
        let layout = self.layout(op.results[0]);
        let at = self.thread_coord(&layout, 0);
        let parts: Vec<Coords> = (0..layout.registers()).map(|r| layout.register_coords(r)).collect();
        let regs = parts.iter().map(|c| self.b.add_const(at, i64::from(c[0]))).collect();
        self.define(op.results[0], LoweredValue::Tile(regs));
    }

    /// A tile whose elements repeat along a new axis.
    pub(super) fn broadcast(&mut self, op: &Op, axis: usize) {
        let layout = self.layout(op.results[0]);
        let regs = self.regs(op.args[0]);
        let narrow = self.layout(op.args[0]);
        let regs = self.spread(&regs, &narrow, &layout, axis);
        self.define(op.results[0], LoweredValue::Tile(regs));
    }

    /// Broadcasts the registers of a tile along a new axis: each to all registers of the wider tile with the same other coordinates.
    pub(super) fn spread(&mut self, regs: &[Reg], narrow: &Layout, layout: &Layout, axis: usize) -> Vec<Reg> {
        let index = register_index(narrow);
        let pick = |r: usize| {
            let mut at = layout.register_coords(r).to_vec();
            at.remove(axis);
            at.push(0);
            index.get(&[at[0], at[1], at[2], at[3]]).and_then(|i| regs.get(*i)).copied()
        };
        let out: Vec<Option<Reg>> = (0..layout.registers()).map(pick).collect();
        out.into_iter().map(|r| r.unwrap_or_else(|| self.missing())).collect()
    }

    pub(super) fn missing(&mut self) -> Reg {
        self.b.fail("a register that a layout does not have".to_owned());
        self.b.i32(0)
    }

    /// An elementwise operation on the registers of tiles in a layout; scalar operands are used for all elements. Elements whose operands
    /// are the same registers are computed once.
    pub(super) fn elementwise(&mut self, op: &Op, layout: &Layout) -> Result<Vec<Reg>, LowerError> {
        let mut columns = Vec::new();
        for arg in &op.args {
            columns.push(if matches!(self.k.ty(*arg), Ty::Scalar(_)) {
                vec![self.scalar(*arg); layout.registers()]
            } else {
                self.regs(*arg)
            });
        }
        let mut done: SortedMap<Vec<Reg>, Reg> = SortedMap::new();
        if let (OpKind::Binary(BinOp::Div), [numerators, divisors]) = (&op.kind, columns.as_slice()) {
            done = self.quotients(self.k.ty(op.args[0]).elem(), numerators, divisors);
        }
        let mut out = Vec::with_capacity(layout.registers());
        for i in 0..layout.registers() {
            let args: Vec<Reg> = columns.iter().filter_map(|c| c.get(i).copied()).collect();
            let reg = match done.get(&args) {
                Some(reg) => *reg,
                None => {
                    let reg = self.element(op, &args)?;
                    done.insert(args, reg);
                    reg
                }
            };
            out.push(reg);
        }
        Ok(out)
    }

    /// The quotients of the elements of a tile, by their operands. Quotients by the same register share one reciprocal.
    fn quotients(&mut self, elem: Elem, numerators: &[Reg], divisors: &[Reg]) -> SortedMap<Vec<Reg>, Reg> {
        let mut rows: SortedMap<Reg, Vec<Reg>> = SortedMap::new();
        for (x, y) in numerators.iter().zip(divisors) {
            let row = rows.entry(*y).or_default();
            if !row.contains(x) {
                row.push(*x);
            }
        }
        let mut done = SortedMap::new();
        for (y, row) in rows {
            for part in row.chunks(QUOTIENTS) {
                let quotients = scalar::quotients(&mut self.b, self.target, elem, part, y);
                done.extend(part.iter().zip(quotients).map(|(x, q)| (vec![*x, y], q)));
            }
        }
        done
    }

    /// An elementwise operation on one element.
    pub(super) fn element(&mut self, op: &Op, args: &[Reg]) -> Result<Reg, LowerError> {
        let target = self.target;
        let elem = self.k.ty(op.args[0]).elem();
        let b = &mut self.b;
        Ok(match (&op.kind, args) {
            (OpKind::Unary(f), [x]) => scalar::unary(b, target, *f, elem, *x),
            (OpKind::Binary(f), [x, y]) => scalar::binary(b, target, *f, elem, *x, *y),
            (OpKind::Cmp(pred), [x, y]) => scalar::compare(b, target, *pred, elem, *x, *y),
            (OpKind::Select, [p, x, y]) => b.select(*p, *x, *y),
            (OpKind::MulAdd, [x, y, z]) => scalar::mul_add(b, target, elem, *x, *y, *z),
            (OpKind::Cast(to), [x]) => scalar::cast(b, target, elem, *to, *x),
            (OpKind::Bitcast(to), [x]) => scalar::bitcast(b, elem, *to, *x),
            (kind, _) => {
                let message = format!("{kind:?} is not elementwise");
                b.fail(message);
                return Ok(self.missing());
            }
        })
    }
}

/// The register that holds each element, by the contribution of the register to its coordinates.
pub(super) fn register_index(layout: &Layout) -> SortedMap<Coords, usize> {
    (0..layout.registers()).map(|r| (layout.register_coords(r), r)).collect()
}
