//! Tensors and views: addresses, extents and strides in registers, with the assumptions about them.

use super::tile::LoweredValue;
use super::vector::elem_bytes;
use super::{Lower, LowerError, Reg};
use crate::analysis::vector::{self, Packing};
use crate::ir::{Access, DimSpec, Elem, HostExpr, Op, ParamKind, Pred, Symbol};
use crate::lane::{self, IntBin, Region};
use crate::launch::abi::Slot;

/// A tensor or view.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// The number of the parameter that it is a view of.
    pub(super) param: u32,
    /// Whether the kernel may write the parameter; if so, accesses are marked.
    pub(super) written: bool,
    pub(super) elem: Elem,
    /// The address of the first element; for 4-bit elements, the address of the parameter: see `start`.
    pub(super) address: Reg,
    /// For 4-bit elements, the number of elements from `address` to the first one, 64 bits; `None` for 0.
    pub(super) start: Option<Reg>,
    /// How 4-bit elements are arranged in bytes.
    pub(super) packing: Packing,
    /// The extents, 32 bits each.
    pub(super) extents: Vec<Reg>,
    /// If the view was last cut to a part `lo..hi` of its tensor along an axis: `lo` and `hi`, 32 bits each.
    pub(super) part: Option<(Reg, Reg)>,
    /// The strides in elements, 64 bits each.
    pub(super) strides: Vec<Reg>,
    /// Whether any coordinate is inside of the view; `None` if it is not known to be empty.
    pub(super) exists: Option<Reg>,
    /// Whether the plan's assumptions about the parameter hold for the view: rows are aligned to 16 bytes, and their size is a multiple of
    /// 16 bytes.
    pub(super) aligned: bool,
}

impl View {
    pub(super) const fn region(&self) -> Region {
        Region::Tensor(self.param)
    }
}

impl Lower<'_> {
    /// Reads the parameter block.
    pub(super) fn parameters(&mut self) {
        for (index, param) in self.k.sig.params.iter().enumerate() {
            let number = u32::try_from(index).unwrap_or(0);
            let held = match &param.kind {
                ParamKind::Tensor { elem, access, shape, .. } => LoweredValue::Tensor(View {
                    param: number,
                    written: *access == Access::Mut,
                    elem: *elem,
                    address: self.slot(Slot::Address(number)),
                    start: None,
                    packing: Packing::Pairs,
                    part: None,
                    extents: (0u8..).zip(shape).map(|(axis, dim)| self.extent((number, axis), dim)).collect(),
                    strides: (0u8..).zip(shape).map(|(axis, _)| self.slot(Slot::Stride(number, axis))).collect(),
                    exists: None,
                    aligned: self.laid.aligned.get(index) == Some(&true),
                }),
                ParamKind::Scalar(elem) => {
                    let word = self.slot(Slot::Scalar { param: number, wide: elem.bits() == 64 });
                    LoweredValue::Scalar(self.scalar_from_word(*elem, word))
                }
            };
            self.define(self.k.param(index), held);
        }
    }

    /// Reads an extent. If a launch ensures that several extents are equal, the first one is read for all of them.
    fn extent(&mut self, (param, axis): (u32, u8), dim: &DimSpec) -> Reg {
        let first = match dim {
            DimSpec::Equals(HostExpr::Symbol(symbol)) => self.bound(*symbol),
            DimSpec::Any | DimSpec::Bind(_) | DimSpec::Equals(_) => None,
        };
        let optional = matches!(
            self.k.sig.params.get(param as usize).map(|p| &p.kind),
            Some(ParamKind::Tensor { optional: true, .. })
        );
        let (param, axis) = first.filter(|_| !optional).unwrap_or((param, axis));
        self.slot(Slot::Extent(param, axis))
    }

    /// The parameter and axis whose extent defines a shape name, if the tensor is not optional.
    fn bound(&self, symbol: Symbol) -> Option<(u32, u8)> {
        (0u32..).zip(&self.k.sig.params).find_map(|(param, p)| match &p.kind {
            ParamKind::Tensor { optional: false, shape, .. } => {
                let axis = shape.iter().position(|dim| *dim == DimSpec::Bind(symbol))?;
                Some((param, u8::try_from(axis).ok()?))
            }
            ParamKind::Tensor { .. } | ParamKind::Scalar(_) => None,
        })
    }

    /// Reads a word of the parameter block.
    pub(super) fn slot(&mut self, slot: Slot) -> Reg {
        let found = self.b.func().slots.iter().position(|s| *s == slot);
        match found.and_then(|i| u32::try_from(i).ok()) {
            Some(i) => self.b.one(lane::OpKind::Slot(i), &[]),
            None => {
                self.b.fail(format!("no parameter word {slot:?}"));
                self.b.i64(0)
            }
        }
    }

    /// Converts the word of a scalar argument to the representation of its element type in the lane IR.
    fn scalar_from_word(&mut self, elem: Elem, word: Reg) -> Reg {
        match elem {
            Elem::Bool => {
                let zero = self.b.i32(0);
                self.b.cmp_u(Pred::Ne, word, zero)
            }
            Elem::F16 | Elem::Bf16 => self.b.one(lane::OpKind::Truncate(lane::Ty::B16), &[word]),
            Elem::F64
            | Elem::F32
            | Elem::Tf32
            | Elem::E4m3
            | Elem::E5m2
            | Elem::I64
            | Elem::I32
            | Elem::I16
            | Elem::I8
            | Elem::I4
            | Elem::U64
            | Elem::U32
            | Elem::U16
            | Elem::U8
            | Elem::U4 => word,
        }
    }

    /// The tensor or view that a value is.
    pub(super) fn view(&mut self, value: crate::ir::Value) -> Result<View, LowerError> {
        match &self.lowered[value.index()] {
            Some(LoweredValue::Tensor(view)) => Ok(view.clone()),
            _ => Err(LowerError::internal(self.k, format!("{value} is no tensor"))),
        }
    }

    /// The extent of a tensor along an axis.
    pub(super) fn dim(&mut self, op: &Op, axis: usize) -> Result<(), LowerError> {
        let view = self.view(op.args[0])?;
        self.define(op.results[0], LoweredValue::Scalar(view.extents[axis]));
        Ok(())
    }

    /// Whether an optional tensor was passed.
    pub(super) fn present(&mut self, op: &Op) -> Result<(), LowerError> {
        let view = self.view(op.args[0])?;
        let zero = self.b.i64(0);
        let passed = self.b.cmp_u(Pred::Ne, view.address, zero);
        self.define(op.results[0], LoweredValue::Scalar(passed));
        Ok(())
    }

    /// The same tensor.
    pub(super) fn shared_view(&mut self, op: &Op) -> Result<(), LowerError> {
        let view = self.view(op.args[0])?;
        self.define(op.results[0], LoweredValue::Tensor(view));
        Ok(())
    }

    /// A view in which the index along one axis is fixed.
    pub(super) fn index_view(&mut self, op: &Op, axis: usize) -> Result<(), LowerError> {
        let mut view = self.view(op.args[0])?;
        let at = self.scalar(op.args[1]);
        let inside = self.b.cmp_u(Pred::Lt, at, view.extents[axis]);
        view.exists = Some(match view.exists {
            Some(exists) => self.b.and(exists, inside),
            None => inside,
        });
        let last = axis + 1 == view.strides.len();
        view.aligned &= !last;
        view.packing = vector::packing(self.k, op.results[0]);
        let stride = view.strides.remove(axis);
        view.extents.remove(axis);
        self.advance(&mut view, at, stride);
        self.define(op.results[0], LoweredValue::Tensor(view));
        Ok(())
    }

    /// A view of a range along an axis, clipped to the tensor.
    pub(super) fn slice_view(&mut self, op: &Op, axis: usize) -> Result<(), LowerError> {
        let mut view = self.view(op.args[0])?;
        let zero = self.b.i32(0);
        let (lo, hi) = (self.scalar(op.args[1]), self.scalar(op.args[2]));
        let lo = self.b.int(IntBin::MaxS, lo, zero);
        let hi = self.b.int(IntBin::MinS, hi, view.extents[axis]);
        let hi = self.b.int(IntBin::MaxS, hi, lo);
        view.extents[axis] = self.b.int(IntBin::Sub, hi, lo);
        view.part = Some((lo, hi));
        let last = axis + 1 == view.strides.len();
        view.packing = vector::packing(self.k, op.results[0]);
        let stride = view.strides[axis];
        self.advance(&mut view, lo, stride);
        view.aligned &= !last;
        self.define(op.results[0], LoweredValue::Tensor(view));
        Ok(())
    }

    /// A view of the rows between two offsets, which must be ascending and inside the tensor.
    pub(super) fn segment_view(&mut self, op: &Op) -> Result<(), LowerError> {
        let mut view = self.view(op.args[0])?;
        let offsets = self.view(op.args[1])?;
        let at = self.scalar(op.args[2]);
        let next = self.b.add_const(at, 1);
        let zero = self.b.i32(0);
        let last = self.b.add_const(offsets.extents[0], -1);
        let not_negative = self.b.cmp_s(Pred::Ge, at, zero);
        let below = self.b.cmp_s(Pred::Lt, at, last);
        let named = self.b.and(not_negative, below);
        self.trap_unless(named, "a segment that the offsets do not have")?;
        // A role continues after a trap, with a segment without rows.
        let guard = self.warp_set.role.is_some().then_some((named, zero));
        let lo = self.masked_element(&offsets, &[at], guard);
        let hi = self.masked_element(&offsets, &[next], guard);
        let a = self.b.cmp_s(Pred::Le, zero, lo);
        let b = self.b.cmp_s(Pred::Le, lo, hi);
        let c = self.b.cmp_s(Pred::Le, hi, view.extents[0]);
        let ab = self.b.and(a, b);
        let ok = self.b.and(ab, c);
        self.trap_unless(ok, "the offsets of a segment are not in order or not inside of the tensor")?;
        let rows = self.b.int(IntBin::Sub, hi, lo);
        view.extents[0] = if guard.is_some() { self.b.select(ok, rows, zero) } else { rows };
        view.part = Some((lo, hi));
        let last = view.strides.len() == 1;
        view.packing = vector::packing(self.k, op.results[0]);
        let stride = view.strides[0];
        self.advance(&mut view, lo, stride);
        view.aligned &= !last;
        self.define(op.results[0], LoweredValue::Tensor(view));
        Ok(())
    }

    /// Moves the start of a view by `n` steps of a stride.
    fn advance(&mut self, view: &mut View, n: Reg, stride: Reg) {
        let wide = self.b.widen(n);
        let elements = self.b.mul(wide, stride);
        if view.elem.bits() < 8 {
            view.start = Some(view.start.map_or(elements, |start| self.b.add(start, elements)));
            return;
        }
        let bytes = self.elements_to_bytes(view.elem, elements);
        view.address = self.b.add(view.address, bytes);
    }

    /// Converts a 64-bit number of elements to bytes.
    pub(super) fn elements_to_bytes(&mut self, elem: Elem, elements: Reg) -> Reg {
        if elem.bits() < 8 {
            let one = self.b.i32(1);
            return self.b.int(IntBin::ShrS, elements, one);
        }
        let bytes = self.b.i64(i64::from(elem_bytes(elem)));
        self.b.mul(elements, bytes)
    }

    /// Marks the following accesses as reads or writes of a tensor, if the kernel writes it anywhere.
    pub(super) fn touch_view(&mut self, view: &View, write: bool) {
        if view.written {
            self.touch(view.region(), write);
        }
    }
}
