//! The arguments of a launch, and the checks of them on which safety depends.

use crate::plan::{ParamKind, Plan, ScalarSlot};
use crate::runtime::launch::{TensorArg, TensorPlace};
use crate::runtime::memory::Memory;
use titan_core::ir::{Access, Const, Elem, Loc, ParamKind as SigParam, Signature};
use titan_core::launch::{ArgInfo, Arguments, given_grid};

/// A scalar argument, of the parameter's element type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// The value of an integer or `bool`.
    Int(i64),
    /// The value of a float; it is rounded once to the parameter's type.
    Float(f64),
}

/// An argument of a launch.
#[derive(Clone, Debug)]
pub enum Arg {
    /// A tensor.
    Tensor {
        /// The memory that contains the elements.
        memory: Memory,
        /// The offset of the first element, in bytes.
        offset: usize,
        /// The extent of each axis.
        extents: Vec<i32>,
        /// The stride of each axis, in elements.
        strides: Vec<i64>,
    },
    /// No tensor, for an optional parameter.
    Absent,
    /// A scalar.
    Scalar(Scalar),
}

/// An argument of a launch that is borrowed from whoever keeps it.
#[derive(Clone, Copy, Debug)]
pub enum ArgRef<'a> {
    /// A tensor.
    Tensor {
        /// The memory that contains the elements.
        memory: &'a Memory,
        /// The offset of the first element, in bytes.
        offset: usize,
        /// The extent of each axis.
        extents: &'a [i32],
        /// The stride of each axis, in elements.
        strides: &'a [i64],
    },
    /// No tensor, for an optional parameter.
    Absent,
    /// A scalar.
    Scalar(Scalar),
}

impl Arg {
    /// The argument, borrowed.
    #[must_use]
    pub fn borrowed(&self) -> ArgRef<'_> {
        match self {
            Arg::Tensor { memory, offset, extents, strides } => {
                ArgRef::Tensor { memory, offset: *offset, extents, strides }
            }
            Arg::Absent => ArgRef::Absent,
            Arg::Scalar(value) => ArgRef::Scalar(*value),
        }
    }
}

impl<'a> ArgRef<'a> {
    fn extents(&self) -> &'a [i32] {
        self.place().map_or(&[], |place| place.extents)
    }

    /// The place of the argument, if it is a tensor.
    #[inline]
    pub(crate) fn place(&self) -> Option<TensorPlace<'a>> {
        match *self {
            ArgRef::Tensor { memory, offset, extents, strides } => {
                Some(TensorPlace { memory, offset, extents, strides })
            }
            ArgRef::Absent | ArgRef::Scalar(_) => None,
        }
    }
}

/// The reason why a launch did not complete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A program trapped. Outputs contain what the programs had stored when they stopped.
    #[error("{message} (line {}, column {}, program {program:?})", loc.line, loc.column)]
    Trap {
        /// The message of the trap.
        message: String,
        /// The location in the kernel.
        loc: Loc,
        /// The coordinates of the program in the grid.
        program: [u32; 3],
    },
    /// The arguments do not fit the kernel, or a launch with them would not be safe.
    #[error("bad arguments: {0}")]
    BadArguments(String),
    /// A memory is in use by another launch or by the host in another thread.
    #[error("the memory of `{0}` is in use")]
    InUse(String),
    /// The host has no memory for the tiles of the programs. Outputs contain what the programs had stored when they stopped.
    #[error("out of memory: {bytes} bytes for the tiles of a program")]
    OutOfMemory {
        /// The number of bytes that were requested.
        bytes: usize,
    },
}

/// Checks that the grid is one that the kernel can have: for those it is proved that programs write disjoint parts of the outputs.
pub(crate) fn check_grid(
    signature: &Signature,
    most: [i64; 3],
    args: &[ArgRef<'_>],
    grid: [u32; 3],
) -> Result<(), RunError> {
    // The extents of all arguments, one after the other.
    let mut extents = Vec::with_capacity(args.iter().map(|arg| arg.extents().len()).sum());
    extents.extend(args.iter().flat_map(ArgRef::extents).map(|n| i64::from(*n)));
    let mut rest = extents.as_slice();
    let mut infos = Vec::with_capacity(args.len());
    for (arg, param) in args.iter().zip(&signature.params) {
        let (extents, others) = rest.split_at(arg.extents().len());
        rest = others;
        infos.push(match (arg, &param.kind) {
            (ArgRef::Tensor { strides, .. }, SigParam::Tensor { elem, .. }) => {
                ArgInfo::Tensor { elem: *elem, extents, strides }
            }
            (ArgRef::Scalar(Scalar::Int(v)), SigParam::Scalar(elem)) => ArgInfo::Scalar(Const::Int(*elem, *v)),
            (ArgRef::Scalar(Scalar::Float(v)), SigParam::Scalar(elem)) => ArgInfo::Scalar(Const::Float(*elem, *v)),
            (ArgRef::Tensor { .. } | ArgRef::Absent | ArgRef::Scalar(_), _) => ArgInfo::Absent,
        });
    }
    let checked = Arguments::check(signature, &infos).and_then(|_| given_grid(grid));
    checked.map_err(|error| RunError::BadArguments(error.to_string()))?;
    if grid.iter().zip(most).any(|(given, most)| i64::from(*given) > most) {
        return Err(RunError::BadArguments(format!("a grid of {grid:?} programs, proved for at most {most:?}")));
    }
    Ok(())
}

/// The scalar arguments and their slots.
pub(crate) fn scalars(plan: &Plan, args: &[ArgRef<'_>]) -> Result<Vec<(ScalarSlot, u64)>, RunError> {
    let mut scalars = Vec::new();
    for (param, arg) in plan.params.iter().zip(args) {
        let ParamKind::Scalar { slot, elem } = param.kind else { continue };
        let bits = match arg {
            ArgRef::Scalar(value) => scalar_bits(elem, *value),
            ArgRef::Tensor { .. } | ArgRef::Absent => None,
        };
        let Some(bits) = bits else {
            return Err(RunError::BadArguments(format!("`{}` is an `{elem}`", param.name)));
        };
        scalars.push((slot, bits));
    }
    Ok(scalars)
}

/// The tensor arguments.
pub(crate) fn tensors<'a>(plan: &'a Plan, args: &[ArgRef<'a>]) -> Result<Vec<Option<TensorArg<'a>>>, RunError> {
    let mut tensors = Vec::with_capacity(args.len());
    for (param, arg) in plan.params.iter().zip(args) {
        let name = param.name.as_str();
        let bad = |what: String| Err(RunError::BadArguments(format!("`{name}` {what}")));
        tensors.push(match (param.kind, *arg, arg.place()) {
            (ParamKind::Tensor { elem, rank, access, .. }, _, Some(place)) => {
                if place.extents.len() != rank {
                    return bad(format!("is a tensor of rank {rank}, not {}", place.extents.len()));
                }
                Some(TensorArg { name, place, elem, written: access == Access::Mut })
            }
            (ParamKind::Tensor { optional: true, .. }, ArgRef::Absent, _) | (ParamKind::Scalar { .. }, _, _) => None,
            (ParamKind::Tensor { .. }, ArgRef::Scalar(_), _) => return bad("is a tensor".to_owned()),
            (ParamKind::Tensor { .. }, ArgRef::Absent | ArgRef::Tensor { .. }, _) => {
                return bad("is not optional".to_owned());
            }
        });
    }
    Ok(tensors)
}

/// The scalar slot of an argument, if it is of the right kind.
fn scalar_bits(elem: Elem, value: Scalar) -> Option<u64> {
    match value {
        Scalar::Int(v) if elem == Elem::Bool => Some(u64::from(v != 0)),
        Scalar::Int(v) if elem.is_int() => Some(titan_core::ir::fold::wrap(elem, v).cast_unsigned()),
        Scalar::Float(v) if elem.is_float() => {
            Some((crate::ops::cast::cast(Elem::F64, elem).scalar)([v.to_bits(), 0, 0]))
        }
        Scalar::Int(_) | Scalar::Float(_) => None,
    }
}
