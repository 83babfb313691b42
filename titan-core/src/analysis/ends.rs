//! Ends of parts of tensors as expressions that depend on the program only by one number, such as that of a group.
//!
//! Bulk copies stop at the extents of their tensor map. A part `lo..hi` of a tensor along its last axis, or a part of a part, or one of a tensor
//! with more than three axes needs a map that ends at `hi`, and only the device knows `hi`. If it depends on the program only by an element
//! of an array of offsets, there are no more such maps than the array has elements. A kernel that runs before makes all of them, one for each
//! element, and the programs copy by the map of their number.
//!
//! **Example.** Columns `off[e]..off[e + 1]` of a matrix:
//!
//! ```text
//! %lo = get %off[%e] : i32
//! %1 = const 1 : i32
//! %f = add %e, %1 : i32
//! %hi = get %off[%f] : i32
//! %xe = slice<1> %x, %lo, %hi : tensor<bf16, 2>
//! ```
//!
//! There is one entry for each element of `%off`, and entry `n` is for columns that end at `min(off[n], dim(x, 1))`. Of a program it is entry
//! `%e + 1`. That this is the number of an element of `%off` is ensured by `get`, which traps otherwise.
//!
//! The beginning of a part does not matter: it is added to the coordinates of a copy. So only ends must be such expressions, and the beginnings
//! of parts of which there are parts along the same axis.
//!
//! Deliberately absent: ends that are computed in other ways, for which the number of possible values is not known.

use super::boxes::cut;
use crate::ir::{Access, BinOp, Const, Def, Elem, Kernel, OpKind, ParamKind, Ty, Value};
use std::fmt;

/// An `i32` expression over the arguments of a launch and the number of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// A constant.
    Const(i32),
    /// A scalar argument.
    Scalar(u32),
    /// The extent of a tensor argument along an axis.
    Extent(u32, u8),
    /// An element of a tensor argument with one axis; 0 outside of the tensor.
    Element(u32, At),
    /// The result of an operation, which wraps at 2³².
    Binary(EndOp, Box<End>, Box<End>),
}

/// The index of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// A constant.
    Fixed(i32),
    /// The number of the entry plus a constant.
    Entry(i32),
}

/// An operation of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub enum EndOp {
    Add,
    Sub,
    Mul,
    Min,
    Max,
}

impl End {
    fn binary(self, op: EndOp, other: End) -> End {
        End::Binary(op, Box::new(self), Box::new(other))
    }
}

/// The entry of a program: `value + plus`, which is the number of an element of the tensor argument `of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The argument: a tensor with one axis.
    pub of: u32,
    /// The value of the kernel.
    pub value: Value,
    /// The constant that is added to it.
    pub plus: i32,
}

/// The parts of a tensor that a view may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ends {
    /// The entry of a program; `None` if the ends are the same for all programs, so that there is one entry.
    pub entry: Option<Entry>,
    /// The axes of the tensor argument along which the view is a part of it, each with its end, in ascending order.
    pub of_axes: Vec<(u8, End)>,
}

/// The reason why the end of a part is no such expression; displayed as the end of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoEnd {
    /// It depends on two values that select elements of arguments.
    Numbers([String; 2]),
    /// It depends on a value that is computed otherwise.
    Computed(String),
    /// It depends on an argument that the kernel writes.
    Written(String),
}

impl fmt::Display for NoEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoEnd::Numbers([a, b]) => {
                write!(f, "its end depends on elements of arguments at two numbers, `{a}` and `{b}`")
            }
            NoEnd::Computed(value) => {
                write!(f, "its end depends on `{value}`, which is no `i32` argument and no element of an array of them")
            }
            NoEnd::Written(tensor) => write!(f, "its end depends on `{tensor}`, which the kernel writes"),
        }
    }
}

/// The depth to which expressions are followed. They are trees: a value that is used twice is followed twice.
const DEPTH: u32 = 8;

/// The ends of the parts that a view of a tensor argument may be.
///
/// # Errors
/// The reason why they are not known ahead of the kernel.
pub fn of_view(k: &Kernel, view: Value) -> Result<Ends, NoEnd> {
    let mut views = Vec::new();
    let mut tensor = view;
    while let Some(op) = k.def_op(tensor) {
        views.push(op);
        tensor = op.args[0];
    }
    let Def::Param(param) = k.value(tensor).def else { return Err(NoEnd::Computed(k.display_name(tensor))) };
    let param = u32::try_from(param).unwrap_or(u32::MAX);
    let rank = if let Ty::Tensor(_, rank) = k.ty(tensor) { rank } else { 0 };
    let mut run = Run { k, entry: None };
    // For each axis of the view so far: the axis of the argument, and where the part begins and ends along it, if it is one.
    let mut axes: Vec<(u8, Option<(Start, End)>)> = (0..rank).map(|axis| (axis, None)).collect();
    for op in views.into_iter().rev() {
        if let OpKind::Index(axis) = op.kind {
            axes.remove(usize::from(axis));
            continue;
        }
        let Some((axis, part)) = cut(op).and_then(|axis| axes.get_mut(usize::from(axis))) else { continue };
        let extent = || End::Extent(param, *axis);
        let (start, end) = if op.kind == OpKind::Segment {
            (Start::Element(op.args[1], op.args[2]), run.element(op.args[1], op.args[2], 1)?)
        } else {
            (Start::Value(op.args[1]), run.end(op.args[2], DEPTH)?)
        };
        // Bounds are clipped before they are added, so that the sums are less than 2^31, unless the part is empty.
        let end = end.binary(EndOp::Min, extent());
        *part = Some(match part.take() {
            None => (start, end),
            Some((outer, last)) => {
                let outer = run.start(outer, extent())?;
                let end = outer.clone().binary(EndOp::Add, end).binary(EndOp::Min, last);
                (Start::Sum(outer, Box::new(start)), end)
            }
        });
    }
    let of_axes = axes.into_iter().filter_map(|(axis, part)| Some((axis, part?.1))).collect();
    Ok(Ends { entry: run.entry, of_axes })
}

/// The beginning of a part, which becomes an expression only if there is a part of the part.
enum Start {
    Value(Value),
    /// The element of a tensor at an index.
    Element(Value, Value),
    /// The beginning of the enclosing part, and that in the part.
    Sum(End, Box<Start>),
}

struct Run<'a> {
    k: &'a Kernel,
    entry: Option<Entry>,
}

impl Run<'_> {
    fn start(&mut self, start: Start, extent: End) -> Result<End, NoEnd> {
        let (outer, end) = match start {
            Start::Value(value) => (None, self.end(value, DEPTH)?),
            Start::Element(tensor, at) => (None, self.element(tensor, at, 0)?),
            Start::Sum(outer, inner) => (Some(outer), self.start(*inner, extent.clone())?),
        };
        let clipped = end.binary(EndOp::Max, End::Const(0)).binary(EndOp::Min, extent);
        Ok(match outer {
            Some(outer) => outer.binary(EndOp::Add, clipped),
            None => clipped,
        })
    }

    fn end(&mut self, value: Value, depth: u32) -> Result<End, NoEnd> {
        let k = self.k;
        let computed = || NoEnd::Computed(k.display_name(value));
        if depth == 0 || k.ty(value) != Ty::Scalar(Elem::I32) {
            return Err(computed());
        }
        let op = match k.value(value).def {
            Def::Param(param) => return Ok(End::Scalar(u32::try_from(param).map_err(|_| computed())?)),
            Def::BlockArg(..) => return Err(computed()),
            Def::Result(op, _) => k.op(op),
        };
        let binary = |of| match of {
            BinOp::Add => Some(EndOp::Add),
            BinOp::Sub => Some(EndOp::Sub),
            BinOp::Mul => Some(EndOp::Mul),
            BinOp::Min => Some(EndOp::Min),
            BinOp::Max => Some(EndOp::Max),
            BinOp::Div
            | BinOp::Rem
            | BinOp::And
            | BinOp::Or
            | BinOp::Xor
            | BinOp::Shl
            | BinOp::Shr
            | BinOp::MulHi
            | BinOp::Powf => None,
        };
        match (&op.kind, &op.args[..]) {
            (OpKind::Const(Const::Int(_, v)), _) => i32::try_from(*v).map(End::Const).map_err(|_| computed()),
            (OpKind::Dim(axis), [tensor]) => match k.value(*tensor).def {
                Def::Param(param) => Ok(End::Extent(u32::try_from(param).map_err(|_| computed())?, *axis)),
                Def::Result(..) | Def::BlockArg(..) => Err(computed()),
            },
            (OpKind::Get, [tensor, at]) => self.element(*tensor, *at, 0),
            (OpKind::Binary(of), [a, b]) => {
                let of = binary(*of).ok_or_else(computed)?;
                Ok(self.end(*a, depth - 1)?.binary(of, self.end(*b, depth - 1)?))
            }
            _ => Err(computed()),
        }
    }

    /// The element `at + plus` of a tensor.
    fn element(&mut self, tensor: Value, at: Value, plus: i32) -> Result<End, NoEnd> {
        let k = self.k;
        let name = || k.display_name(tensor);
        let Def::Param(param) = k.value(tensor).def else { return Err(NoEnd::Computed(name())) };
        let of = u32::try_from(param).map_err(|_| NoEnd::Computed(name()))?;
        match k.sig.params.get(param).map(|p| &p.kind) {
            Some(ParamKind::Tensor { access: Access::Mut, .. }) => return Err(NoEnd::Written(name())),
            Some(ParamKind::Tensor { elem: Elem::I32, optional: false, shape, .. }) if shape.len() == 1 => {}
            Some(ParamKind::Tensor { .. } | ParamKind::Scalar(_)) | None => return Err(NoEnd::Computed(name())),
        }
        let (value, plus) = self.sum(at, i64::from(plus));
        let far = |plus: i64| i32::try_from(plus).map_err(|_| NoEnd::Computed(k.display_name(at)));
        let Some(value) = value else { return Ok(End::Element(of, At::Fixed(far(plus)?))) };
        // The first element that is found gives the number of the entry.
        let entry = *self.entry.get_or_insert(Entry { of, value, plus: far(plus)? });
        if entry.value != value {
            return Err(NoEnd::Numbers([entry.value, value].map(|v| k.display_name(v))));
        }
        Ok(End::Element(of, At::Entry(far(plus - i64::from(entry.plus))?)))
    }

    /// A value as the sum of another one and a constant; of a constant there is no other one.
    fn sum(&self, mut value: Value, mut plus: i64) -> (Option<Value>, i64) {
        let k = self.k;
        loop {
            if let Some(c) = k.int_constant(value) {
                return (None, plus.saturating_add(c));
            }
            let Some(op) = k.def_op(value) else { return (Some(value), plus) };
            let [a, b] = op.args[..] else { return (Some(value), plus) };
            (value, plus) = match (&op.kind, k.int_constant(a), k.int_constant(b)) {
                (OpKind::Binary(BinOp::Add), _, Some(c)) => (a, plus.saturating_add(c)),
                (OpKind::Binary(BinOp::Add), Some(c), None) => (b, plus.saturating_add(c)),
                (OpKind::Binary(BinOp::Sub), _, Some(c)) => (a, plus.saturating_sub(c)),
                _ => return (Some(value), plus),
            };
        }
    }
}
