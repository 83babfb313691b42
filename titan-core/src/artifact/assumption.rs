//! The assumptions of a variant's code about the arguments and the device, which are checked before it is launched.

use crate::ir::{HostEnv, HostExpr, HostNames};
use crate::launch::abi::MapParam;

/// A condition on a launch. For an optional tensor that is absent, all conditions hold except that it has a tensor map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assumption {
    /// Tag 0, `u32` parameter, `u32` axis: elements along the axis are contiguous.
    UnitStride {
        /// The tensor parameter.
        param: u32,
        /// The axis of the tensor.
        axis: u32,
    },
    /// Tag 1, `u32` parameter, `u32` bytes: the address of the first element is a multiple of this number of bytes.
    Aligned {
        /// The tensor parameter.
        param: u32,
        /// The alignment in bytes.
        bytes: u32,
    },
    /// Tag 2, `u32` parameter, `u32` axis, `u32` bytes: the distance of adjacent elements along the axis is a multiple of this number of
    /// bytes.
    StrideMultiple {
        /// The tensor parameter.
        param: u32,
        /// The axis of the tensor.
        axis: u32,
        /// The divisor of the distance in bytes.
        bytes: u32,
    },
    /// Tag 3, expression, `i64` divisor. An expression is a `u8` tag and its fields: 0 constant `i64`; 1 shape symbol
    /// `u32`; 2 scalar parameter `u32`; 3 extent, `u32` parameter and `u32` axis; 4 negation and its operand; 16 + the
    /// index in `HostOp::ALL`, and both operands.
    Divisible {
        /// The expression.
        expr: HostExpr,
        /// The divisor of its value.
        by: i64,
    },
    /// Tag 4: the offset of every element of every tensor, in elements, fits in an `i32`.
    Index32,
    /// Tag 5, expression, as above: its value is not 0.
    Holds(HostExpr),
    /// Tag 6, `u32` bytes: the device allows a program this much shared memory.
    SharedMemory {
        /// The minimum in bytes.
        bytes: u32,
    },
    /// Tag 7, `u32` parameter, `u8` index in `Elem::ALL`, `u8` index in `Swizzle::ALL`, list of `u32` extents, parts: `u8` 0
    /// for the whole tensor; 1, `u8` axis; or 2, `u32` table, list of `u8` axes, `u8` 1 and the `u32` parameter whose number of
    /// elements is the number of entries, or `u8` 0. The launch can create this tensor map. The code receives the maps of its assumptions as parameters, in the same order.
    TensorMap(MapParam),
    /// Tag 8, `u32` parameter, list of `u32` extents: what a tile of these extents covers of the tensor lies within 2³¹ bytes from its first element
    /// on, and a line of elements along the last axis within 2³² bytes.
    Reach {
        /// The tensor parameter.
        param: u32,
        /// The extents of the tile.
        tile: Vec<u32>,
    },
    /// Tag 9, `u32` parameter, `u32` axis, `u32` rows: neighbours along the axis are at least a line of elements along the last axis apart, and
    /// this many of them lie within 2³¹ bytes; whatever the extent is, since offsets of rows that there are not must be behind those that there are.
    Apart {
        /// The tensor parameter.
        param: u32,
        /// The axis.
        axis: u32,
        /// The extent of the tile along the axis.
        rows: u32,
    },
}

/// The placement of a tensor argument in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorFact<'a> {
    /// The address of the first element.
    pub address: u64,
    /// The number of bits of an element.
    pub elem_bits: u32,
    /// The extents, one for each axis.
    pub extents: &'a [i64],
    /// The distances of adjacent elements, in elements, for each axis.
    pub strides: &'a [i64],
}

impl TensorFact<'_> {
    /// Whether the distance of the first element to every other element, in elements, fits in an `i32`.
    fn fits_index32(&self) -> bool {
        if self.extents.contains(&0) {
            return true;
        }
        let reach = self.extents.iter().zip(self.strides).try_fold((0i64, 0i64), |(low, high), (n, stride)| {
            let span = n.checked_sub(1)?.checked_mul(*stride)?;
            Some((low.checked_add(span.min(0))?, high.checked_add(span.max(0))?))
        });
        reach.is_some_and(|(low, high)| i32::try_from(low).is_ok() && i32::try_from(high).is_ok())
    }

    /// Whether the elements of a tile of these extents, of which the first one is in the tensor too, are less than 2³¹ bytes from that; and no line
    /// of elements along the last axis has more than 2³² bytes. Sums are of 128 bits, so that none overflows.
    fn reaches(&self, tile: &[u32]) -> bool {
        let axes = self.extents.iter().zip(self.strides).zip(tile);
        let spans = axes.map(|((n, stride), tile)| {
            let steps = (*n).min(i64::from(*tile)).saturating_sub(1).max(0);
            // A stride along which there is one element is arbitrary.
            (steps == 0 || *stride >= 0).then_some(i128::from(steps) * i128::from(*stride))
        });
        let elements = spans.sum::<Option<i128>>();
        let line = self.extents.last().zip(self.strides.last()).map_or(0, |(n, by)| i128::from(*n) * i128::from(*by));
        // 16 bytes are the longest access.
        let within = |elements: i128, bytes: i128| elements * i128::from(self.elem_bits) / 8 + 16 <= bytes;
        let same_rank = tile.len() == self.extents.len();
        same_rank && elements.is_some_and(|elements| within(elements, 1 << 31)) && within(line, 1 << 32)
    }

    /// Whether lines of elements along the last axis do not overlap if they are neighbours along an axis, and a number of them lie within 2³¹ bytes.
    fn lines_are_apart(&self, axis: u32, rows: u32) -> bool {
        let stride = usize::try_from(axis).ok().and_then(|axis| self.strides.get(axis)).map(|n| i128::from(*n));
        let line = self.extents.last().zip(self.strides.last()).map(|(n, by)| i128::from(*n) * i128::from(*by));
        let within = |stride: i128| stride * i128::from(rows) * i128::from(self.elem_bits) / 8 <= 1 << 31;
        stride.zip(line).is_some_and(|(stride, line)| stride >= line.max(0) && within(stride))
    }

    /// Whether the distance of adjacent elements along an axis satisfies a condition. It is ignored along axes with one element.
    fn stride_is(&self, axis: u32, right: impl Fn(i64) -> bool) -> bool {
        let axis = usize::try_from(axis).unwrap_or(usize::MAX);
        let stride = self.extents.get(axis).zip(self.strides.get(axis));
        stride.is_some_and(|(n, stride)| *n <= 1 || right(*stride))
    }
}

/// The arguments of a launch, and properties of its device.
pub trait TensorFacts: HostEnv {
    /// The number of parameters.
    fn params(&self) -> u32;
    /// A tensor argument; `None` for scalars and for optional tensors that are absent.
    fn tensor(&self, param: u32) -> Option<TensorFact<'_>>;
    /// The maximum shared memory of a program on the device, in bytes.
    fn shared_memory(&self) -> u32;
    /// Whether the device supports tensor maps, and this one can be created for the tensor.
    ///
    /// # Errors
    /// The reason why not, with axes numbered as in the signature.
    fn tensor_map(&self, map: &MapParam) -> Result<(), String>;
}

impl Assumption {
    /// Whether the assumption holds. One that cannot be evaluated does not hold.
    #[must_use]
    pub fn holds(&self, facts: &dyn TensorFacts) -> bool {
        match self {
            Assumption::UnitStride { param, axis } => {
                facts.tensor(*param).is_none_or(|t| t.stride_is(*axis, |stride| stride == 1))
            }
            Assumption::Aligned { param, bytes } => {
                facts.tensor(*param).is_none_or(|t| t.address.checked_rem(u64::from(*bytes)) == Some(0))
            }
            Assumption::StrideMultiple { param, axis, bytes } => facts.tensor(*param).is_none_or(|t| {
                let unit = i128::from(*bytes) * 8;
                t.stride_is(*axis, |stride| (i128::from(stride) * i128::from(t.elem_bits)).checked_rem(unit) == Some(0))
            }),
            Assumption::Divisible { expr, by } => expr.eval(facts).is_ok_and(|v| v.checked_rem(*by) == Some(0)),
            Assumption::Index32 => (0..facts.params()).filter_map(|p| facts.tensor(p)).all(|t| t.fits_index32()),
            Assumption::Holds(expr) => expr.eval(facts).is_ok_and(|v| v != 0),
            Assumption::SharedMemory { bytes } => *bytes <= facts.shared_memory(),
            Assumption::TensorMap(map) => facts.tensor_map(map).is_ok(),
            Assumption::Reach { param, tile } => facts.tensor(*param).is_none_or(|t| t.reaches(tile)),
            Assumption::Apart { param, axis, rows } => {
                facts.tensor(*param).is_none_or(|t| t.lines_are_apart(*axis, *rows))
            }
        }
    }

    /// Whether it depends on the device alone, and not on the arguments of a launch.
    #[must_use]
    pub fn is_of_device(&self) -> bool {
        match self {
            Assumption::SharedMemory { .. } => true,
            Assumption::UnitStride { .. }
            | Assumption::Aligned { .. }
            | Assumption::StrideMultiple { .. }
            | Assumption::Divisible { .. }
            | Assumption::Index32
            | Assumption::Holds(_)
            | Assumption::Reach { .. }
            | Assumption::Apart { .. }
            | Assumption::TensorMap(_) => false,
        }
    }

    /// The reason why it does not hold, as a sentence without a full stop; `None` if it holds.
    #[must_use]
    pub fn violation(&self, facts: &dyn TensorFacts, names: &dyn HostNames) -> Option<String> {
        if self.holds(facts) {
            return None;
        }
        let why = match self {
            Assumption::TensorMap(map) => facts.tensor_map(map).err(),
            Assumption::UnitStride { .. }
            | Assumption::Aligned { .. }
            | Assumption::StrideMultiple { .. }
            | Assumption::Divisible { .. }
            | Assumption::Index32
            | Assumption::Holds(_)
            | Assumption::Reach { .. }
            | Assumption::Apart { .. }
            | Assumption::SharedMemory { .. } => None,
        };
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        Some(format!("it needs that {}{why}", self.sentence(names)))
    }

    /// The assumption as a sentence with the kernel's parameters by name, without a full stop: `` `a` starts at a multiple of 16 bytes ``.
    #[must_use]
    pub fn sentence(&self, names: &dyn HostNames) -> String {
        let param = |p: &u32| names.param(*p as usize);
        match self {
            Assumption::UnitStride { param: p, axis } => format!("`{}` is contiguous along axis {axis}", param(p)),
            Assumption::Aligned { param: p, bytes } => format!("`{}` starts at a multiple of {bytes} bytes", param(p)),
            Assumption::StrideMultiple { param: p, axis, bytes } => {
                format!("neighbours of `{}` along axis {axis} are a multiple of {bytes} bytes apart", param(p))
            }
            Assumption::Divisible { expr, by } => format!("`{}` is a multiple of {by}", expr_text(expr, names)),
            Assumption::Index32 => "every tensor has offsets of less than 2^31 elements".to_owned(),
            Assumption::Holds(expr) => format!("`{}`", expr_text(expr, names)),
            Assumption::SharedMemory { bytes } => {
                format!("the device grants a program {} KiB of shared memory", bytes / 1024)
            }
            Assumption::TensorMap(map) => {
                format!("`{}` has a tensor map with boxes of {}", param(&map.param), map.boxes())
            }
            Assumption::Reach { param: p, tile } => {
                format!("tiles of {} of `{}` lie within 2^31 bytes, and its rows within 2^32", boxes(tile), param(p))
            }
            Assumption::Apart { param: p, axis, rows } => {
                let p = param(p);
                format!("rows of `{p}` along axis {axis} do not overlap, and {rows} of them lie within 2^31 bytes")
            }
        }
    }

    /// The short form, for tables and logs: `aligned(a, 16)`.
    #[must_use]
    pub fn text(&self, names: &dyn HostNames) -> String {
        let param = |p: &u32| names.param(*p as usize);
        match self {
            Assumption::UnitStride { param: p, axis } => format!("unit_stride({}, {axis})", param(p)),
            Assumption::Aligned { param: p, bytes } => format!("aligned({}, {bytes})", param(p)),
            Assumption::StrideMultiple { param: p, axis, bytes } => {
                format!("stride_multiple({}, {axis}, {bytes})", param(p))
            }
            Assumption::Divisible { expr, by } => format!("divisible({}, {by})", expr_text(expr, names)),
            Assumption::Index32 => "index32".to_owned(),
            Assumption::Holds(expr) => format!("holds({})", expr_text(expr, names)),
            Assumption::SharedMemory { bytes } => format!("shared_memory({bytes})"),
            Assumption::TensorMap(map) => format!("tensor_map({}, {})", param(&map.param), map.boxes()),
            Assumption::Reach { param: p, tile } => format!("reach({}, {})", param(p), boxes(tile)),
            Assumption::Apart { param: p, axis, rows } => format!("apart({}, {axis}, {rows})", param(p)),
        }
    }
}

fn boxes(tile: &[u32]) -> String {
    tile.iter().map(u32::to_string).collect::<Vec<_>>().join(" × ")
}

fn expr_text(expr: &HostExpr, names: &dyn HostNames) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = expr.write(&mut text, names);
    text
}
